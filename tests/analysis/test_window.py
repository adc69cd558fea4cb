"""Increases of counters: wraps, resets, backward steps; and a window with known percentages."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from loadprint.errors import InputError
from loadprint.metrics.derived import KERNEL, LATENCY, THROUGHPUT
from loadprint.metrics.derived_cpu import cpu_metrics
from loadprint.metrics.derived_devices import DISK
from loadprint.metrics.gather import Measured, gather
from loadprint.metrics.sources import SERVER_RESTARTED
from loadprint.reading.counters import increase
from loadprint.reading.cpusets import parse_cpus
from loadprint.reading.queries import Store
from loadprint.reading.recording import open_run
from loadprint.tables.rows import evaluate
from recordings import SECOND, Host, make_run, write_json, write_manifest


def readings(*values: float) -> np.ndarray:
    return np.array(values, dtype=float)


def test_a_counter_rises_by_last_minus_first() -> None:
    result = increase(readings(5, 7, 7, 20))
    assert result is not None
    assert (result.amount, result.wraps, result.resets) == (15, 0, 0)


def test_a_32_bit_counter_that_wraps_keeps_counting() -> None:
    result = increase(readings(2**32 - 10, 2**32 - 1, 4, 9))
    assert result is not None
    assert (result.amount, result.wraps, result.resets) == (19, 1, 0)


def test_a_reset_counts_on_from_zero_and_is_reported() -> None:
    result = increase(readings(1000, 1010, 3, 8))
    assert result is not None
    assert (result.amount, result.wraps, result.resets) == (10 + 3 + 5, 0, 1)


def test_iowait_may_step_back() -> None:
    result = increase(readings(100, 110, 108, 120), may_step_back=True)
    assert result is not None
    assert (result.amount, result.resets) == (20, 0)


def test_fields_the_kernel_does_not_print_are_not_zero() -> None:
    assert increase(readings(np.nan, np.nan)) is None


def measured(path: Path, host: Host | None = None) -> Measured:
    return gather(open_run(make_run(path, host)), Store())


def value(run: Measured, key: str) -> float:
    table = (
        *cpu_metrics("server"),
        *cpu_metrics("load"),
        *(m.of("vda") for m in DISK),
        *KERNEL,
        *THROUGHPUT,
        *LATENCY,
    )
    result, why = evaluate(next(metric for metric in table if metric.key == key), run)
    assert result is not None, why
    return result


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("cpu_server_user", 10.0),
        ("cpu_server_system", 4.0),
        ("cpu_server_iowait", 20.0),
        ("cpu_server_utilisation", 15.0),
        ("cpu_server_kernel_share", 100 * 5 / 15),
        ("cpu_load_utilisation", 40.0),
        ("process_server_cpu", 0.12),
        ("disk_vda_r_await", 0.002),
        ("disk_vda_w_await", 0.003),
        ("disk_vda_await", 0.0028),
        ("disk_vda_write_kb", 1600 * 512.0),
        ("disk_vda_wareq", 40 * 512.0),
        ("disk_vda_util", 10.0),
        ("switches_server", 1500.0),
        ("switches_host", 4000.0),
        ("interrupts_server", 300.0),
        ("pressure_io", 5.0),
        ("operations", 100.0),
        ("latency_p99", 0.030),
    ],
)
def test_values_known_by_hand(tmp_path: Path, key: str, expected: float) -> None:
    assert value(measured(tmp_path / "run"), key) == pytest.approx(expected, rel=1e-9)


def test_ticks_outside_the_phase_do_not_count(tmp_path: Path) -> None:
    run = measured(tmp_path / "run", Host(seconds=20))
    assert run.window is not None
    assert (run.window.first, run.window.last) == (1, 21)
    assert run.window.ticks == 21


def test_a_value_under_three_steps_of_its_source_is_flagged(tmp_path: Path) -> None:
    cpus = {"0": {"user": 10, "idle": 90}, "1": {"idle": 100}}
    run = measured(tmp_path / "run", Host(seconds=2, cpus=cpus, server_ticks={"utime": 1, "stime": 0}))
    result, said = evaluate(next(m for m in cpu_metrics("server") if m.key == "process_server_cpu"), run)
    assert result is not None
    assert "three steps" in said


def test_a_wrapped_disk_time_is_added_back_and_reported(tmp_path: Path) -> None:
    path = make_run(tmp_path / "run")
    table = pq.read_table(path / "server" / "disk.parquet")
    times = [int(value or 0) for value in table["write_ms"].to_pylist()]
    wrapped = [(2**32 - 100 + value) % 2**32 for value in times]
    place = table.schema.get_field_index("write_ms")
    pq.write_table(table.set_column(place, "write_ms", pa.array(wrapped)), path / "server" / "disk.parquet")
    run = gather(open_run(path), Store())
    assert value(run, "disk_vda_w_await") == pytest.approx(0.003)
    whole = [2**32 - 1500 + value for value in times]
    pq.write_table(
        table.set_column(place, "write_ms", pa.array([v % 2**32 for v in whole])),
        path / "server" / "disk.parquet",
    )
    run = gather(open_run(path), Store())
    assert value(run, "disk_vda_w_await") == pytest.approx(0.003)
    assert any("wrapped" in note for note in run.quantities.warnings)


def test_threads_that_start_or_end_are_counted_and_reported(tmp_path: Path) -> None:
    path = make_run(tmp_path / "run")
    rows = pq.read_table(path / "server" / "threads.parquet").to_pylist()
    fields = (
        "voluntary_ctxt_switches",
        "nonvoluntary_ctxt_switches",
        "on_cpu_ns",
        "run_delay_ns",
        "timeslices",
    )
    born = {"role": "server", "pid": 900, "tid": 77, "comm": "connection"}
    rows += [{"tick": t, **born, **dict.fromkeys(fields, 0), fields[0]: 40 * (t - 5)} for t in range(5, 11)]
    meta = pq.read_schema(path / "server" / "threads.parquet").metadata
    pq.write_table(
        pa.Table.from_pylist(rows).replace_schema_metadata(meta), path / "server" / "threads.parquet"
    )
    run = gather(open_run(path), Store())
    assert value(run, "switches_server") == pytest.approx(1500 + 40 * 5 / 20)
    assert any("server threads ended" in note for note in run.quantities.notes)


def test_a_probe_without_a_table_is_missing_with_its_reason(tmp_path: Path) -> None:
    path = make_run(tmp_path / "run")
    (path / "server" / "pressure.parquet").unlink()
    run = gather(open_run(path), Store())
    result, why = evaluate(next(m for m in KERNEL if m.key == "pressure_io"), run)
    assert result is None
    assert "pressure" in why


@pytest.mark.parametrize(
    ("given", "expected"), [("0-2,5", (0, 1, 2, 5)), ([1, 0], (0, 1)), (3, (3,)), ("", None)]
)
def test_cpu_lists(given: object, expected: object) -> None:
    assert parse_cpus(given, "here") == expected


def test_a_broken_cpu_list_names_its_place() -> None:
    with pytest.raises(InputError, match="here: 'zero' is not a CPU list"):
        parse_cpus("zero", "here")


@pytest.mark.parametrize("bits", [32, 64])
def test_a_counter_of_either_size_that_wraps_keeps_counting(bits: int) -> None:
    # 2^12 below the top: a float near 2^64 has steps of 2^11
    result = increase(readings(2.0**bits - 2**13, 2.0**bits - 2**12, 1000, 1500))
    assert result is not None
    assert (result.amount, result.wraps, result.resets) == (2**13 + 1500, 1, 0)


def test_a_large_counter_that_falls_to_a_large_number_was_reset() -> None:
    result = increase(readings(2.0**63, 2.0**63 + 2**40, 2.0**62))
    assert result is not None
    assert (result.wraps, result.resets) == (0, 1)


def rewrite(path: Path, change: Callable[[dict[str, Any]], dict[str, Any] | None]) -> None:
    """Change or drop the rows of a table, and keep its metadata."""
    table = pq.read_table(path)
    rows = [row for row in map(change, table.to_pylist()) if row is not None]
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path)


def test_a_pid_that_is_used_again_is_another_process(tmp_path: Path) -> None:
    """The second process has used far more than the first: nothing may be subtracted across."""
    run = make_run(tmp_path / "run")
    half = 11

    def reborn(row: dict[str, Any]) -> dict[str, Any] | None:
        if row["role"] == "server" and row["tick"] >= half:
            for name in ("utime", "stime", "voluntary_ctxt_switches", "on_cpu_ns"):
                if name in row:
                    row[name] += 10**9
            if "starttime" in row:
                row["starttime"] += 500
        return row

    rewrite(run / "server" / "process.parquet", reborn)
    rewrite(run / "server" / "threads.parquet", reborn)
    write_manifest(run)
    result = gather(open_run(run), Store())
    assert result.window is not None
    seconds = result.window.last - result.window.first
    cpu = result.quantities.get("process.server.cpu")
    # 9 + 3 ticks of 10 ms a second, but for the second in which one ended and the other began
    assert cpu is not None
    assert cpu.rate == pytest.approx(0.12 * (seconds - 1) / seconds)
    assert SERVER_RESTARTED in result.quantities.warnings
    number = result.quantities.get("threads.server.number")
    assert number is not None
    assert number.rate == 2
    switches = result.quantities.get("threads.server.voluntary_ctxt_switches")
    # the second thread is born in the window and counts from zero, as every such thread does
    assert switches is not None
    assert switches.count is not None
    second = 1000 + 1500 * result.window.last + 10**9
    assert switches.count == 1500 * (half - 1 - result.window.first) + second


def test_a_probe_that_is_read_late_has_a_window_of_its_own(tmp_path: Path) -> None:
    """On a stalled host a background read outlasts its tick: those at both ends are not entirely inside."""
    plain = measured(tmp_path / "plain")
    assert plain.window is not None
    first, last = plain.window.first, plain.window.last

    def late(row: dict[str, Any]) -> dict[str, Any]:
        if row["probe"] in ("nic", "threads") and row["tick"] == first:
            row["start_ns"] -= SECOND
        if row["probe"] in ("nic", "threads") and row["tick"] == last:
            row["end_ns"] += 10 * SECOND
        return row

    run = make_run(tmp_path / "run")
    rewrite(run / "server" / "ticks.parquet", late)
    write_manifest(run)
    result = gather(open_run(run), Store())
    assert result.window is not None
    assert (result.window.first, result.window.last) == (first, last)
    assert result.window.ends("nic") == result.window.ends("threads") == (first + 1, last - 1)
    for name in ("nic.veth0.rx_bytes", "threads.server.voluntary_ctxt_switches"):
        one, other = plain.quantities.get(name), result.quantities.get(name)
        assert one is not None
        assert other is not None
        assert other.rate == pytest.approx(one.rate), name


@pytest.mark.parametrize("hours", [1, -1])
def test_a_clock_that_is_set_while_recording_moves_nothing_within_one_boot(
    tmp_path: Path, hours: int
) -> None:
    step = hours * 3600 * SECOND

    def stepped(row: dict[str, Any]) -> dict[str, Any]:
        return {**row, "realtime_ns": row["realtime_ns"] + (step if row["tick"] >= 7 else 0)}

    plain = measured(tmp_path / "plain")
    run = make_run(tmp_path / "run")
    rewrite(run / "server" / "ticks.parquet", stepped)
    write_manifest(run)
    result = gather(open_run(run), Store())
    assert result.window is not None
    assert plain.window is not None
    assert (result.window.first, result.window.last) == (plain.window.first, plain.window.last)
    assert value(result, "cpu_server_user") == value(plain, "cpu_server_user")

    # Between hosts only the realtime clock relates the two, and it is unknown which half of it was right.
    fingerprint = json.loads((run / "server" / "fingerprint.json").read_text())
    write_json(run / "server" / "fingerprint.json", {**fingerprint, "boot_id": "another"})
    write_manifest(run)
    with pytest.raises(InputError, match="the clock was set by 3600 s during the recording"):
        gather(open_run(run), Store())
