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
from loadprint.commands.ab.windows import windows
from loadprint.reading.queries import Store
from loadprint.reading.recording import open_run
from loadprint.reading.segments import windows_of
from reads import known, measured, quantities, unchanged
from recordings import change_column, change_json, change_rows

KEPT = Path(__file__).parents[1] / "recordings" / "v1"


def set_back(run: Path, table: str, column: str, when: dict[str, str]) -> tuple[float, int]:
    """Restart a counter after a read in the middle; returns what is lost, and the tick of the restart.

    `when` selects the rows of the entity. Lost is the step of the interval of the restart.
    """
    path = run / "server" / f"{table}.parquet"

    def is_of_entity(row: dict[str, Any]) -> bool:
        return all(str(row[key]) == value for key, value in when.items())

    rows = sorted(filter(is_of_entity, pq.read_table(path).to_pylist()), key=lambda row: int(row["tick"]))
    at = len(rows) // 2
    base, before, tick = rows[at][column], rows[at - 1][column], int(rows[at]["tick"])

    def value(row: dict[str, Any]) -> Any:
        return _minus(row[column], base) if is_of_entity(row) and row["tick"] >= tick else row[column]

    change_column(path, column, value)
    return float(np.sum(_minus(base, before))), tick


def _minus(after: Any, before: Any) -> Any:
    if isinstance(after, list):
        return [one - other for one, other in zip(after, before, strict=True)]
    return after - before


@pytest.fixture
def real(tmp_path: Path) -> Path:
    shutil.copytree(KEPT / "oltp", tmp_path / "oltp")
    return tmp_path / "oltp"


# table, column, entity, quantity, base units in a step of the source
OF_REAL = [
    ("cpu", "ctxt", {"cpu": "all"}, "host.ctxt", 1.0),
    ("disk", "write_sectors", {"device": "vda"}, "disk.vda.write_sectors", 512.0),
    ("pressure", "total_us", {"resource": "cpu", "severity": "some"}, "pressure.cpu.some.total_us", 1e-6),
    ("tcp", "value", {"metric": "Tcp.RetransSegs"}, "tcp.Tcp.RetransSegs", 1.0),
    ("process", "utime", {"role": "server"}, "process.server.utime", 0.01),
]
OF_COMPLETE = [
    ("mysql", "value", {"metric": "Innodb_data_fsyncs"}, "mysql.fsyncs", 1.0),
    ("energy", "energy_uj", {"zone": "package-0"}, "energy.package.energy_uj", 1e-6),
    ("sockets", "active_opens", {"role": "server"}, "sockets.server.active_opens", 1.0),
    ("ethtool", "value", {"metric": "eth0.pps_allowance_exceeded"}, "allowance.pps", 1.0),
    ("nvme", "volume_iops_exceeded_us", {}, "nvme.volume_iops", 1e-6),
    ("ebpf_syscalls", "count", {"role": "server", "syscall": "read"}, "ebpf_syscalls.server.read.count", 1.0),
    ("ebpf_sched", "sum_ns", {"role": "server", "state": "lock"}, "ebpf_sched.server.lock.sum_ns", 1e-9),
    ("ebpf_tcp", "opened", {"side": "accepted"}, "ebpf_tcp.port.accepted.opened", 1.0),
]


@pytest.mark.parametrize("case", [*OF_REAL, *OF_COMPLETE], ids=lambda case: case[3])
def test_a_counter_that_restarts(
    complete: Path, tmp_path: Path, case: tuple[str, str, dict[str, str], str, float]
) -> None:
    """The increase lacks the interval of the restart and nothing else, and a warning names the counter."""
    table, column, when, name, unit = case
    whole = KEPT / "oltp" if case in OF_REAL else complete
    run = Path(shutil.copytree(whole, tmp_path / "run"))
    lost, tick = set_back(run, table, column, when)
    after = measured(run)
    window = known(after.window)
    first, last = window.ends(table)
    fewer = unchanged(whole).values[name].rate - after.quantities.values[name].rate
    assert fewer == pytest.approx(lost * unit / window.grids[table].lengths.sum(), rel=1e-6)
    assert first < tick <= last
    assert [text for text in after.quantities.warnings if "was reset" in text]


def test_a_member_of_a_sum_that_restarts(complete: Path, tmp_path: Path) -> None:
    """The counters of a namespace fall to zero, which is little of the sum with another namespace."""
    run = Path(shutil.copytree(complete, tmp_path / "run"))
    path, name = run / "server/sockets.parquet", "sockets.server.active_opens"
    rows = pq.read_table(path)
    opens = [
        {**row, "namespace": "4026531840", "active_opens": 10**7 + 10 * row["tick"]}
        for row in rows.to_pylist()
        if row["role"] == "server"
    ]
    pq.write_table(pa.concat_tables([rows, pa.Table.from_pylist(opens, schema=rows.schema)]), path)
    before = quantities(run)
    assert before.values[name].rate == pytest.approx(unchanged(complete).values[name].rate + 10)
    lost, _ = set_back(run, "sockets", "active_opens", {"role": "server", "namespace": "x"})
    after = quantities(run)
    assert before.values[name].rate - after.values[name].rate == pytest.approx(lost / 40)
    assert f"{name} was reset 1x; counted from zero after each reset" in after.warnings


def test_a_histogram_that_restarts(complete: Path, tmp_path: Path) -> None:
    run, name = Path(shutil.copytree(complete, tmp_path / "run")), "mysql_statements.all.buckets"
    before = known(unchanged(complete).values[name].count)
    lost, _ = set_back(run, "mysql_statements", "buckets", {"statements": "all"})
    after = quantities(run)
    assert after.values[name].count == pytest.approx(before - lost)
    assert "mysql_statements was reset 1x; counted from zero after each reset" in after.warnings


def test_events_of_the_processor_that_restart(complete: Path, tmp_path: Path) -> None:
    run, name = Path(shutil.copytree(complete, tmp_path / "run")), "perf.server.cycles"
    for column in ("value", "enabled_ns", "running_ns"):
        set_back(run, "perf", column, {"event": "cycles", "cpus": "server"})
    before, after = unchanged(complete), quantities(run)
    # of 41 readings, one of 40 intervals is lost
    assert after.values[name].rate == pytest.approx(before.values[name].rate * 39 / 40)
    assert [text for text in after.warnings if text.startswith(f"{name}.value was reset")]


def test_an_event_that_one_cpu_did_not_count_is_not_taken_as_zero(complete: Path, tmp_path: Path) -> None:
    """Its last readings are null: the counter was not scheduled on the processor."""
    run = Path(shutil.copytree(complete, tmp_path / "run"))
    change_column(
        run / "server/perf.parquet",
        "value",
        lambda row: None if row["event"] == "cycles" and row["tick"] > 1 else row["value"],
    )
    found = quantities(run)
    assert found.get("perf.server.cycles") is None
    assert found.get("perf.server.instructions") is not None


def test_a_thread_whose_number_is_used_again(real: Path) -> None:
    """The old thread counts until its last reading, the new one from zero."""
    rows = pq.read_table(real / "server/threads.parquet").to_pylist()
    tick = sorted({row["tick"] for row in rows})[-2]
    busiest = max(
        (row for row in rows if (row["tick"], row["role"]) == (tick, "server")),
        key=lambda row: int(row["voluntary_ctxt_switches"]),
    )
    name = "threads.server.voluntary_ctxt_switches"
    before = known(unchanged(KEPT / "oltp").values[name].count)
    lost, _ = set_back(real, "threads", "voluntary_ctxt_switches", {"tid": str(busiest["tid"])})
    assert quantities(real).values[name].count == before - lost


def test_a_chart_has_a_gap_only_in_the_interval_of_the_restart(real: Path) -> None:
    before = unchanged(KEPT / "oltp").series["disk.vda.writes"]
    set_back(real, "disk", "writes", {"device": "vda"})
    after = quantities(real).series["disk.vda.writes"]
    gap = np.isnan(after.values) & ~np.isnan(before.values)
    assert gap.sum() == 1
    assert after.values[~gap] == pytest.approx(before.values[~gap], nan_ok=True)


def test_the_status_at_both_ends_has_one_interval(real: Path) -> None:
    status = json.loads((real / "load/server.json").read_text())["status_end"]
    change_json(real / "load/server.json", status_end=status | {"Questions": "1"})
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


def test_a_cpu_that_comes_online_in_a_window_counts_from_its_first_reading(tmp_path: Path) -> None:
    run = Path(shutil.copytree(KEPT / "hidden-index", tmp_path / "run"))
    busy = {window.number: known(window.host_busy) for window in windows(open_run(run), Store(), (0, 1))}
    span = list(windows_of(open_run(run)))[3]
    path, middle = run / "server/cpu.parquet", (span.begin_ns + span.end_ns) / 2
    reads = pq.read_table(run / "server/ticks.parquet").to_pylist()
    online = next(read["tick"] for read in reads if read["probe"] == "cpu" and read["start_ns"] > middle)
    rows = pq.read_table(path)
    pq.write_table(
        rows.filter([row["cpu"] != "1" or row["tick"] >= online for row in rows.to_pylist()]), path
    )
    [after] = [window for window in windows(open_run(run), Store(), (0, 1)) if window.number == span.number]
    assert after.host_busy == pytest.approx(busy[span.number], abs=0.1)


def test_a_window_of_an_experiment_has_the_rates_of_what_was_read_in_it(tmp_path: Path) -> None:
    """A reading at its begin that is missing takes no time from the process, the CPUs or the server."""
    run = Path(shutil.copytree(KEPT / "hidden-index", tmp_path / "run"))
    before, span = windows(open_run(run), Store()), list(windows_of(open_run(run)))[3]
    reads = pq.read_table(run / "server/ticks.parquet").to_pylist()
    for table, columns in (("process", ["utime"]), ("cpu", ["user", "idle"]), ("mysql", ["value"])):
        first = min(
            read["tick"] for read in reads if read["probe"] == table and read["start_ns"] >= span.begin_ns
        )

        def unread(row: dict[str, Any]) -> dict[str, Any]:
            return row | dict.fromkeys(columns if row["tick"] == first else ())  # noqa: B023

        change_rows(run / f"server/{table}.parquet", unread)
    after = windows(open_run(run), Store())
    place = next(place for place, window in enumerate(before) if window.number == span.number)
    for figure in ("queries", "cpu", "host_busy", "commits"):
        was = getattr(before[place], figure)
        assert getattr(after[place], figure) == pytest.approx(was, rel=0.05), figure


def test_the_cpu_time_of_an_experiment_is_that_of_each_process(tmp_path: Path) -> None:
    """A process that appears in a window has counted before it."""
    run = Path(shutil.copytree(KEPT / "hidden-index", tmp_path / "run"))
    before, span = windows(open_run(run), Store())[3], list(windows_of(open_run(run)))[3]
    path = run / "server/process.parquet"
    rows = pq.read_table(path)
    reads = pq.read_table(run / "server/ticks.parquet").to_pylist()
    late = max(read["tick"] for read in reads if read["probe"] == "process" and read["end_ns"] <= span.end_ns)
    other = [
        {**row, "pid": "999", "starttime": 5, "utime": 10**6, "stime": 10**6}
        for row in rows.to_pylist()
        if row["role"] == "server" and row["tick"] >= late - 1
    ]
    pq.write_table(pa.concat_tables([rows, pa.Table.from_pylist(other, schema=rows.schema)]), path)
    after = windows(open_run(run), Store())[3]
    assert (after.number, after.note) == (before.number, "")
    assert after.cpu == pytest.approx(before.cpu)
