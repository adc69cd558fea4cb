"""Series over a whole recording with known rates."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from loadprint.catalogue.files import catalogue
from loadprint.reading.counters import Floats
from loadprint.reading.recording import open_run
from loadprint.reading.time_series import Series, Span, phases
from reads import known, quantities
from recordings import (
    SECOND,
    Host,
    Tables,
    change_column,
    change_lines,
    change_rows,
    histogram,
    histograms,
    make_run,
    of_mysql,
    write_phases,
    write_table,
)


def _series(path: Path) -> dict[str, Series]:
    return quantities(path).series


def _chart(path: Path, key: str) -> Floats:
    """Values of the chart of a row."""
    [row] = [row for rows in catalogue().groups.values() for row in rows if row.key == key]
    return known(quantities(path).course(row.formula)).values


def test_rates_stand_at_the_middle_of_their_interval_over_the_whole_recording(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", Host(seconds=20))
    series = _series(run)

    user = series["cpu.server.user"]
    # 23 ticks a second apart, the first half a second before `measure`, each read taking 0.1 ms
    assert np.allclose(user.seconds, np.arange(22) + 0.00005)
    assert np.allclose(user.values, 0.10)
    assert np.allclose(series["cpu.load.user"].values, 0.30)
    assert np.allclose(series["disk.vda.write_sectors"].values, 1600 * 512)
    assert np.allclose(series["nic.veth0.tx_bytes"].values, 1_024_000)
    assert np.allclose(series["host.ctxt"].values, 4000)
    assert np.allclose(series["pressure.io.some.total_us"].values, 0.05)
    assert np.allclose(series["process.server.cpu"].values, 0.12)
    assert np.allclose(_chart(run, "rss"), 2048 * 4096)
    assert np.allclose(_chart(run, "switches_server"), 1500)
    assert np.allclose(series["threads.server.on_cpu_ns"].values, 0.125)
    assert np.allclose(series["tcp.Tcp.RetransSegs"].values, 5)
    assert np.allclose(series["interrupts.server"].values, 300)
    assert series["load.events"].seconds[:2].tolist() == [0.5, 1.5]
    assert series["load.events"].values[:3].tolist() == [100, 101, 102]
    assert np.isnan(series["load.events"].values[-1])  # of unknown length
    assert not [key for key in series if key.startswith("nic.lo.")]  # it carried nothing


def test_a_missed_tick_a_failed_read_and_a_reset_are_holes(tmp_path: Path) -> None:
    path = make_run(tmp_path / "run", Host(seconds=20))

    def ticks(row: dict[str, Any]) -> dict[str, Any] | None:
        is_failed = (row["tick"], row["probe"]) == (9, "cpu")
        return None if row["tick"] == 5 else row | ({"status": "failed"} if is_failed else {})

    def cpu(row: dict[str, Any]) -> dict[str, Any] | None:
        return None if row["tick"] in (5, 9) else row | {"user": row["user"] - 1000 * (row["tick"] >= 13)}

    change_rows(path / "server/ticks.parquet", ticks)
    change_rows(path / "server/cpu.parquet", cpu)

    user = _series(path)["cpu.server.user"]

    # the intervals over ticks 5 and 9 are one hole each, and the one that ends with tick 13
    assert np.round(user.seconds[np.isnan(user.values)], 1).tolist() == [4.5, 8.5, 12.0]
    assert np.allclose(user.values[~np.isnan(user.values)], 0.10)


def test_a_tick_that_is_listed_twice_counts_once(tmp_path: Path) -> None:
    path = make_run(tmp_path / "run", Host(seconds=20))
    place = path / "server" / "ticks.parquet"
    ticks = pq.read_table(place)
    pq.write_table(pa.concat_tables([ticks, ticks]), place)

    user = _series(path)["cpu.server.user"]

    assert np.allclose(np.diff(user.seconds), 1.0)
    assert np.allclose(user.values, 0.10)


def test_a_probe_that_reads_every_third_tick_has_no_holes(tmp_path: Path) -> None:
    path = make_run(tmp_path / "run", Host(seconds=20))

    def status(row: dict[str, Any]) -> str:
        return "skipped" if row["probe"] == "disk" and row["tick"] % 3 else "ok"

    change_column(path / "server/ticks.parquet", "status", status)
    change_rows(path / "server/disk.parquet", lambda row: None if row["tick"] % 3 else row)

    reads = _series(path)["disk.vda.reads"]

    assert len(reads.values) == 7
    assert np.allclose(reads.values, 10)


def test_phases_share_the_axis(tmp_path: Path) -> None:
    path = make_run(tmp_path / "run", Host(seconds=20))
    write_phases(path, ("warmup", -5.5, -0.5), ("measure", 0, 21), ("drain", 21.5, None))

    assert phases(open_run(path)) == (
        Span("warmup", -5.5, -0.5),
        Span("measure", 0.0, 21.0),
        Span("drain", 21.5, None),
    )


def test_another_hosts_series_are_joined_by_the_real_time_clock(tmp_path: Path) -> None:
    path = make_run(tmp_path / "run", Host(seconds=20))
    change_lines(
        path / "load" / "phases.jsonl",
        lambda line: line | {"boot_id": "another", "monotonic_ns": line["monotonic_ns"] - 400 * SECOND},
    )

    seconds = _series(path)["cpu.server.user"].seconds

    assert np.allclose(seconds, np.arange(22) + 0.00005, atol=1e-6)


def test_the_servers_own_counters(tmp_path: Path) -> None:
    values: dict[str, int | Callable[[int], int]] = {
        "Innodb_buffer_pool_pages_flushed": 250,
        "Innodb_redo_log_current_lsn": lambda tick: 7 + 10_000 * tick,
        "Innodb_redo_log_checkpoint_lsn": lambda tick: 7,
        "Threads_running": lambda tick: 4,
    }
    run = make_run(tmp_path / "run", Host(seconds=20, more=of_mysql(values)))
    series = _series(run)

    assert np.allclose(series["mysql.pages_flushed"].values, 250)
    assert np.allclose(series["mysql.checkpoint_age"].values, 10_000 * np.arange(23))
    assert np.allclose(series["mysql.checkpoint_age"].seconds, np.arange(23) - 0.5 + 0.00005)
    assert np.allclose(_chart(run, "threads_running"), 4)


def test_a_thread_born_in_between_counts_from_zero(tmp_path: Path) -> None:
    path = make_run(tmp_path / "run", Host(seconds=20))
    rows = pq.read_table(path / "server" / "threads.parquet").to_pylist()
    for tick in (10, 11):
        base = next(r for r in rows if r["tick"] == tick and r["role"] == "server")
        rows.append(
            {**base, "tid": 999, "voluntary_ctxt_switches": 40 * (tick - 9), "nonvoluntary_ctxt_switches": 0}
        )
    write_table(path / "server" / "threads.parquet", rows, {"probe": "threads", "shape": "table"})

    switches = _chart(path, "switches_server")

    assert switches[8:13].tolist() == [1500, 1540, 1540, 1500, 1500]


def test_an_ebpf_entity_had_counted_nothing_before_its_first_row(tmp_path: Path) -> None:
    def sched(ticks: range) -> Tables:
        states = (("lock", 0), ("network", 6))
        rows = (
            histogram(ticks, [3, 1], SECOND // 4, born=born, role="server", state=state)
            for state, born in states
        )
        return {"ebpf_sched": histograms(rows, [0, 1, None])}

    series = _series(make_run(tmp_path / "run", Host(seconds=20, more=sched)))

    assert np.allclose(series["ebpf_sched.server.lock.sum_ns"].values, 0.25)
    network = series["ebpf_sched.server.network.sum_ns"].values
    assert network[:5].tolist() == [0] * 5
    assert network[5:7].tolist() == [1.5, 0.25]


def test_a_recording_without_a_generator_begins_at_zero(tmp_path: Path) -> None:
    path = make_run(tmp_path / "run", Host(seconds=20))
    for name in ("phases.jsonl", "result.json", "throughput.parquet"):
        (path / "load" / name).unlink()
    (path / "manifest.json").unlink()

    assert phases(open_run(path)) == ()
    assert _series(path)["cpu.server.user"].seconds[0] == pytest.approx(0.5, abs=0.001)
