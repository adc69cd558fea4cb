"""The rule of reading/counters.py in every place that computes an increase: a counter that restarts at zero.

The recordings are real ones, and one with every table, in which one counter is set back at a tick: from then
on it has what it counted since.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from every_table import every_table
from loadprint.commands.ab.windows import windows
from loadprint.metrics.gather import gather
from loadprint.metrics.quantities import Quantities
from loadprint.reading.counters import increase, steps
from loadprint.reading.queries import Store
from loadprint.reading.recording import open_run
from loadprint.series.series import run_series
from recordings import Host, make_run, write_manifest

KEPT = Path(__file__).parents[1] / "recordings" / "v1"


def set_back(run: Path, table: str, column: str, when: dict[str, str]) -> tuple[float, int]:
    """Restart a counter after a read in the middle; returns what is lost, and the tick of the restart.

    `when` selects the rows of the entity. Lost is the step of the interval of the restart.
    """
    path = run / "server" / f"{table}.parquet"
    read = pq.read_table(path)
    rows = read.to_pylist()
    of_entity = sorted(
        (row for row in rows if all(str(row[key]) == value for key, value in when.items())),
        key=lambda row: int(row["tick"]),
    )
    at = len(of_entity) // 2
    base, before = of_entity[at][column], of_entity[at - 1][column]
    for row in of_entity[at:]:
        row[column] = _minus(row[column], base)
    place = read.schema.get_field_index(column)
    changed = pa.array([row[column] for row in rows], read.schema.field(column).type)
    pq.write_table(read.set_column(place, column, changed).cast(read.schema), path)
    write_manifest(run)
    return float(np.sum(_minus(base, before))), int(of_entity[at]["tick"])


def _minus(after: Any, before: Any) -> Any:
    if isinstance(after, list):
        return [one - other for one, other in zip(after, before, strict=True)]
    return after - before


def quantities(run: Path) -> Quantities:
    return gather(open_run(run), Store()).quantities


@pytest.fixture
def real(tmp_path: Path) -> Path:
    shutil.copytree(KEPT / "oltp", tmp_path / "oltp")
    return tmp_path / "oltp"


@pytest.fixture(scope="module")
def complete(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("complete") / "run", Host(more=every_table))


# table, column, entity, quantity, base units in a step of the source
OF_REAL = [
    ("cpu", "ctxt", {"cpu": "all"}, "host.ctxt", 1.0),
    ("disk", "write_sectors", {"device": "vda"}, "disk.vda.write_sectors", 512.0),
    ("pressure", "total_us", {"resource": "cpu", "severity": "some"}, "pressure.cpu_some", 1e-6),
    ("tcp", "value", {"metric": "Tcp.OutSegs"}, "tcp.OutSegs", 1.0),
    ("process", "utime", {"role": "server"}, "process.server.utime", 0.01),
]
OF_COMPLETE = [
    ("mysql", "value", {"metric": "Innodb_data_fsyncs"}, "mysql.fsyncs", 1.0),
    ("energy", "energy_uj", {"zone": "package-0"}, "energy.package", 1e-6),
    ("sockets", "active_opens", {"role": "server"}, "sockets.server.active_opens", 1.0),
    ("ethtool", "value", {"metric": "eth0.pps_allowance_exceeded"}, "allowance.pps", 1.0),
    ("nvme", "volume_iops_exceeded_us", {}, "nvme.volume_iops", 1e-6),
    ("ebpf_syscalls", "count", {"role": "server", "syscall": "read"}, "syscalls.server.read.count", 1.0),
    ("ebpf_sched", "sum_ns", {"role": "server", "state": "lock"}, "sched.server.lock.sum", 1e-9),
    ("ebpf_tcp", "opened", {"side": "accepted"}, "tcp_rtt.opened", 1.0),
    ("ebpf_programs", "run_time_ns", {"cpus": "all"}, "programs.x:x.cpu", 1e-9),
]


def check(whole: Path, run: Path, case: tuple[str, str, dict[str, str], str, float]) -> None:
    """The increase lacks the interval of the restart and nothing else, and a warning names the counter."""
    table, column, when, name, unit = case
    before, (lost, tick) = quantities(whole).get(name), set_back(run, table, column, when)
    after = quantities(run)
    known, probe = after.get(name), table
    assert before is not None
    assert known is not None, after.why(name)
    stamps = gather(open_run(run), Store()).window
    assert stamps is not None
    ticks = sorted(stamps.middle_ns[probe])
    seconds = (stamps.middle_ns[probe][ticks[-1]] - stamps.middle_ns[probe][ticks[0]]) / 1e9
    assert before.rate - known.rate == pytest.approx(lost * unit / seconds, rel=1e-6)
    assert ticks[0] < tick <= ticks[-1]
    assert [text for text in after.warnings if "was reset" in text]


@pytest.mark.parametrize("case", OF_REAL, ids=lambda case: case[3])
def test_a_counter_of_the_kernel_that_restarts(
    real: Path, case: tuple[str, str, dict[str, str], str, float]
) -> None:
    check(KEPT / "oltp", real, case)


@pytest.mark.parametrize("case", OF_COMPLETE, ids=lambda case: case[3])
def test_a_counter_of_another_source_that_restarts(
    complete: Path, tmp_path: Path, case: tuple[str, str, dict[str, str], str, float]
) -> None:
    shutil.copytree(complete, tmp_path / "run")
    check(complete, tmp_path / "run", case)


def test_a_histogram_that_restarts(complete: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(complete, run)
    before = quantities(complete).get("mysql_statements.all.count")
    lost, _ = set_back(run, "mysql_statements", "buckets", {"statements": "all"})
    after = quantities(run)
    known = after.get("mysql_statements.all.count")
    assert before is not None
    assert before.count is not None
    assert known is not None, after.why("mysql_statements.all.count")
    assert known.count == pytest.approx(before.count - lost)
    assert "mysql_statements was reset 1x; counted from zero after each reset" in after.warnings


def test_events_of_the_processor_that_restart(complete: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(complete, run)
    for column in ("value", "enabled_ns", "running_ns"):
        set_back(run, "perf", column, {"event": "cycles", "cpus": "server"})
    before, after = quantities(complete), quantities(run)
    whole, known = before.get("perf.server.cycles"), after.get("perf.server.cycles")
    assert whole is not None
    assert known is not None
    assert known.rate == pytest.approx(whole.rate * 19 / 20)  # of 21 readings, one of 20 intervals is lost
    assert [
        text for text in after.warnings if text.startswith("perf.server.cycles.value of server was reset")
    ]


def test_an_event_that_one_cpu_did_not_count_is_not_taken_as_zero(tmp_path: Path) -> None:
    """Its last readings are null: the counter was not scheduled on the processor."""
    run = make_run(tmp_path / "run", Host(more=every_table))
    path = run / "server" / "perf.parquet"
    rows = pq.read_table(path).to_pylist()
    for row in rows:
        if row["event"] == "cycles" and row["tick"] > 1:
            row["value"] = None
    table = pa.Table.from_pylist(rows, pq.read_schema(path))
    pq.write_table(table, path)
    write_manifest(run)
    found = quantities(run)
    assert found.get("perf.server.cycles") is None
    assert found.get("perf.server.instructions") is not None


def test_a_thread_whose_number_is_used_again(real: Path) -> None:
    """The old thread counts until its last reading, the new one from zero."""
    path = real / "server" / "threads.parquet"
    rows = pq.read_table(path).to_pylist()
    ticks = sorted({row["tick"] for row in rows})
    totals: dict[int, int] = {}
    for row in rows:
        if row["role"] == "server":
            totals[row["tid"]] = totals.get(row["tid"], 0) + (
                row["voluntary_ctxt_switches"] if row["tick"] == ticks[-2] else 0
            )
    busiest = max(totals, key=totals.__getitem__)
    name = "threads.server.voluntary_ctxt_switches"
    before, (lost, _) = (
        quantities(KEPT / "oltp").get(name),
        set_back(real, "threads", "voluntary_ctxt_switches", {"tid": str(busiest)}),
    )
    after = quantities(real).get(name)
    assert before is not None
    assert before.count is not None
    assert after is not None
    assert after.count == before.count - lost


def test_a_chart_has_a_gap_only_in_the_interval_of_the_restart(real: Path) -> None:
    before = run_series(open_run(KEPT / "oltp"), Store(), ["disk.vda"])["disk.vda.writes"]
    set_back(real, "disk", "writes", {"device": "vda"})
    after = run_series(open_run(real), Store(), ["disk.vda"])["disk.vda.writes"]
    gap = np.isnan(after.values) & ~np.isnan(before.values)
    assert gap.sum() == 1
    assert after.values[~gap] == pytest.approx(before.values[~gap], nan_ok=True)


def test_the_status_at_both_ends_has_one_interval(real: Path) -> None:
    path = real / "load" / "server.json"
    server = json.loads(path.read_text())
    server["status_end"]["Questions"] = "1"
    path.write_text(json.dumps(server))
    write_manifest(real)
    found = quantities(real)
    assert found.get("status.Questions") is None
    assert found.why("status.Questions") == "the server restarted in the measure phase"
    assert found.get("status.Com_commit") is not None


def test_a_window_of_an_experiment_with_a_restart_is_not_judged(tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(KEPT / "hidden-index", run)
    before = windows(open_run(run), Store())
    set_back(run, "mysql", "value", {"metric": "Questions"})
    after = windows(open_run(run), Store())
    [restarted] = [window for window in after if window.note == "the server restarted in it"]
    assert restarted.queries is None
    assert [window for window in after if window is not restarted] == [
        window for window in before if window.number != restarted.number
    ]


def test_one_interval_with_a_reset_is_not_known_and_missing_readings_are_skipped() -> None:
    assert increase(np.array([300.0, 50.0])) is None
    skipped = increase(np.array([100.0, np.nan, 130.0, np.nan, 20.0, 25.0]))
    assert skipped is not None
    assert (skipped.amount, skipped.resets) == (30 + 20 + 5, 1)
    each = steps(np.array([100.0, np.nan, 130.0, 20.0]))
    assert np.isnan(each.amounts[:2]).all()
    assert (each.amounts[2], each.reset[2]) == (20, True)
