"""Rows of the eBPF tables and the MySQL probe, of a host with known rates."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from loadprint.commands.operands import resolve
from loadprint.comparison.compare_sides import compare
from loadprint.metrics.gather import gather
from loadprint.metrics.quantities import Quantities
from loadprint.reading.queries import Store
from loadprint.reading.recording import open_run
from loadprint.tables.views import all_of, usual
from recordings import Host, Rows, make_run

BOUNDS = [0, 1000, 2000, 4000, None]
HISTOGRAM = {"shape": "histogram", "columns": {"buckets": {"bounds": BOUNDS}}}


def histogram(
    entity: dict[str, str], per_second: list[int], sum_ns: int, ticks: range, born: int = 0
) -> Rows:
    """Cumulative buckets that grow at a constant rate from tick `born` on."""
    return [
        {"tick": t, **entity, "sum_ns": sum_ns * t, "buckets": [n * t for n in per_second]}
        for t in ticks
        if t >= born
    ]


def kernel(ticks: range) -> dict[str, tuple[Rows, dict[str, Any]]]:
    """Ninety waits a second of 1 to 2 µs and ten of 2 to 4 µs; twenty fsyncs that begin in mid-window."""
    server = {"role": "server"}
    syscalls = {"write": 300, "fsync": 20, "fdatasync": 5}
    return {
        "ebpf_sched": (
            histogram({**server, "state": "run queue"}, [0, 90, 10, 0], 250_000_000, ticks)
            + histogram({**server, "state": "lock"}, [0, 0, 0, 7], 3_000_000_000, ticks)
            + histogram({**server, "state": "network"}, [0, 0, 0, 0], 0, ticks),
            HISTOGRAM,
        ),
        "ebpf_syscalls": (
            [
                {"tick": t, **server, "syscall": call, "count": rate * t, "errors": 0}
                for call, rate in syscalls.items()
                for t in ticks
            ],
            {"shape": "table"},
        ),
        "ebpf_syscall_latency": (
            histogram({**server, "syscall": "fsync"}, [0, 0, 20, 0], 60_000, ticks, born=8),
            HISTOGRAM,
        ),
    }


def inside(ticks: range) -> dict[str, tuple[Rows, dict[str, Any]]]:
    """A server whose checkpoint age swings between 100 and 300 of 1000 bytes of redo."""
    series: dict[str, Callable[[int], int]] = {
        "Innodb_redo_log_current_lsn": lambda t: 5000 * t + 300,
        "Innodb_redo_log_checkpoint_lsn": lambda t: 5000 * t + (200 if t % 2 else 0),
        "Innodb_redo_log_capacity_resized": lambda t: 1000,
        "Innodb_buffer_pool_pages_dirty": lambda t: 25,
        "Innodb_buffer_pool_pages_data": lambda t: 100,
        "Innodb_data_fsyncs": lambda t: 12 * t,
        "loadprint.queries": lambda t: 3 * t,
        "loadprint.bytes_sent": lambda t: 700 * t,
    }
    rows = [
        {"metric": name, "tick": t, "value": value(t), "text": None}
        for name, value in sorted(series.items())
        for t in ticks
    ]
    return {"mysql": (rows, {"shape": "metrics"})}


def quantities(path: Path, host: Host) -> Quantities:
    return gather(open_run(make_run(path, host)), Store()).quantities


def test_histograms_become_counts_times_and_quantiles(tmp_path: Path) -> None:
    result = quantities(tmp_path / "run", Host(more=kernel))
    rates = {name: quantity.rate for name, quantity in result.values.items()}
    assert rates["sched.server.run queue.count"] == pytest.approx(100)
    assert rates["sched.server.run queue.sum"] == pytest.approx(0.25)
    assert rates["sched.server.lock.sum"] == pytest.approx(3)
    assert rates["sched.server.run queue.p50"] == pytest.approx(1499.5e-9)
    assert rates["sched.server.run queue.p99"] == pytest.approx(2999.5e-9)
    # beyond the last bound there is only a least value
    assert rates["sched.server.lock.p99"] == pytest.approx(4e-6)
    assert rates["syscalls.server.all"] == pytest.approx(325)
    assert rates["syscalls.server.sync"] == pytest.approx(25)
    # nothing waited for the network: no quantile, and a reason
    assert rates["sched.server.network.sum"] == 0
    assert result.get("sched.server.network.p50") is None
    assert "did not occur" in result.why("sched.server.network.p50")


def test_an_entity_that_comes_in_the_window_counts_from_zero(tmp_path: Path) -> None:
    result = quantities(tmp_path / "run", Host(seconds=20, more=kernel))
    fsyncs = result.get("syscall_latency.server.fsync.count")
    # cumulative counts of its last tick, over the whole window
    assert fsyncs is not None
    assert fsyncs.count == 20 * 21


def test_states_of_the_server_and_the_probe_s_own_part(tmp_path: Path) -> None:
    # the generator's window has 21 seconds: 300 questions and 9000 bytes a second, one question its own
    grown = {"Questions": 300 * 21 + 1, "Bytes_sent": 9000 * 21, "Bytes_received": 40 * 21}
    result = quantities(tmp_path / "run", Host(seconds=20, more=inside, grown=grown))
    rates = {name: quantity.rate for name, quantity in result.values.items()}
    assert rates["mysql.redo"] == pytest.approx(5000)
    assert rates["mysql.fsyncs"] == pytest.approx(12)
    assert rates["mysql.checkpoint_age.max"] == 300
    assert 100 < rates["mysql.checkpoint_age.mean"] < 300
    assert rates["status.Questions"] == pytest.approx(300 - 3)
    assert rates["status.Bytes_sent"] == pytest.approx(9000 - 700)
    assert rates["status.Bytes_received"] == pytest.approx(40)
    assert "Qcache_hits" in result.why("mysql.qcache_hits")


def test_the_rows_are_shown_only_where_they_are(tmp_path: Path) -> None:
    with_all = make_run(tmp_path / "all", Host(more=lambda ticks: kernel(ticks) | inside(ticks)))
    without = make_run(tmp_path / "none", Host())
    sides, declared = resolve([str(with_all), str(without)])
    table = compare(sides, declared)
    keys = [group.key for group in table.groups]
    assert {"ebpf", "mysql"} <= set(keys)
    row = table.row("runq_p99")
    assert row is not None
    values = [cell.value for cell in row.cells]
    assert values[0] == pytest.approx(2999.5e-9)
    assert values[1] is None or math.isnan(values[1])
    assert all(row.key != "qcache_hits" for group in usual(table).groups for row in group.rows)
    alone, declared = resolve([str(without), str(without)])
    unmeasured = compare(alone, declared)
    assert not {"ebpf", "mysql"} & {group.key for group in usual(unmeasured).groups}
    everything = all_of(unmeasured)
    row = everything.row("qcache_hits")
    assert row is not None
    assert (row.cells[0].value, row.cells[0].notes[0]) == (None, "probe mysql was not recorded")
