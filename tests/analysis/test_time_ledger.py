"""Where time goes: the states of connection threads add up to the client's latency, or the rest is shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from loadprint.commands.operands import resolve
from loadprint.comparison.compare_sides import compare
from loadprint.metrics.gather import Measured, gather
from loadprint.reading.queries import Store
from loadprint.reading.recording import open_run
from loadprint.tables.table import Group, Row
from recordings import Host, Rows, make_execution, make_run

SECOND = 10**9
# thread-seconds per second of the host's four threads, which run 100 operations of 35 ms each second
STATES = {
    "on CPU": 1.0,
    "run queue": 0.5,
    "read tablespace": 0.2,
    "read undo": 0.05,
    "write doublewrite": 0.1,
    "flush redo log": 0.3,
    "write binary log": 0.1,
    "lock": 0.4,
    "network": 0.05,
    "client": 1.3,
}
LATENCY = {"count": 2100, "latency_ms": {"mean": 35.0}}


def states(threads: Mapping[str, float]) -> Callable[[range], dict[str, tuple[Rows, dict[str, Any]]]]:
    """The table `ebpf_states`: the same time in every second; the idle threads of the server have all day."""

    def rows(ticks: range) -> dict[str, tuple[Rows, dict[str, Any]]]:
        of_threads = {("connection", state): time for state, time in threads.items()}
        of_threads |= {("other", "other"): 30.0, ("connection", "no connection"): 2.0}
        return {
            "ebpf_states": (
                [
                    {
                        "tick": tick,
                        "role": "server",
                        "threads": kind,
                        "state": state,
                        "time_ns": round(time * tick * SECOND),
                        "count": 100 * tick,
                        # the kernel's samples: 60 % of them in user mode, and not all of the time
                        "user_ns": round(0.3 * tick * SECOND) if state == "on CPU" else None,
                        "system_ns": round(0.2 * tick * SECOND) if state == "on CPU" else None,
                    }
                    for tick in ticks
                    for (kind, state), time in of_threads.items()
                ],
                {"shape": "table"},
            )
        }

    return rows


def host(threads: Mapping[str, float] = STATES, **result: Any) -> Host:
    return Host(more=states(threads), result={"transactions": {"all": LATENCY}} | result)


def measured(path: Path, made: Host) -> Measured:
    make_run(path, made)
    return gather(open_run(path), Store())


def table(path: Path, **sides: Host) -> list[Group]:
    make_execution(path, {name: [made] for name, made in sides.items()}, next(iter(sides)))
    return [group for group in compare(*resolve([str(path)])).groups if group.key.startswith("time_")]


def values(rows: tuple[Row, ...], column: int = 0) -> dict[str, float | None]:
    return {row.key.removeprefix("time_").partition("_per_")[0]: row.cells[column].value for row in rows}


def test_the_states_of_connection_threads_are_the_parts_of_the_latency(tmp_path: Path) -> None:
    run = measured(tmp_path / "run", host())
    seen = {
        name: run.quantities.values[f"ledger.{name}"].rate for name in ("user", "system", "other", "redo")
    }
    assert seen == pytest.approx({"user": 0.6, "system": 0.4, "other": 0.05, "redo": 0.3})
    assert run.quantities.values["ledger.data_read"].rate == pytest.approx(0.25)
    assert run.quantities.values["ledger.data_write"].rate == pytest.approx(0.1)
    assert run.quantities.values["ledger.latency"].rate == pytest.approx(3.5)
    assert run.quantities.values["ledger.server"].rate == pytest.approx(2.7)
    assert run.quantities.values["ledger.unexplained"].rate == pytest.approx(0.0, abs=1e-9)
    assert run.quantities.values["ledger.client"].rate == pytest.approx(0.8)


def test_the_rows_add_up_to_the_latency_of_each_unit_of_work(tmp_path: Path) -> None:
    groups = table(tmp_path / "execution", one=host(), two=host({**STATES, "run queue": 0.4}))
    assert [group.key for group in groups] == ["time_statement", "time_commit", "time_operation"]
    for group, per_second in zip(groups, (2000, 100, 100), strict=True):
        for column in (0, 1):
            total, *parts = values(group.rows, column).values()
            assert total == pytest.approx(3.5 / per_second)
            assert sum(part or 0.0 for part in parts) == pytest.approx(total)
    by_operation = values(groups[-1].rows, 1)
    assert by_operation["run_queue"] == pytest.approx(4e-3)
    assert by_operation["unexplained"] == pytest.approx(1e-3)


def test_row_locks_are_a_part_of_the_waits_on_futexes(tmp_path: Path) -> None:
    run = measured(tmp_path / "run", host())
    assert run.quantities.get("ledger.row_lock") is None
    assert "it is in the row of mutexes" in run.quantities.why("ledger.row_lock")
    assert run.quantities.values["ledger.mutex"].rate == pytest.approx(0.4)


def test_a_ledger_that_does_not_close_is_marked(tmp_path: Path) -> None:
    groups = table(tmp_path / "execution", one=host(), two=host({**STATES, "client": 0.9}))
    row = groups[0].rows[-1]
    assert row.label == "unexplained"
    assert not row.cells[0].notes
    assert "11 % of the latency: this ledger does not close" in " ".join(row.cells[1].notes)


def test_small_rows_are_in_the_full_view_only(tmp_path: Path) -> None:
    (first, *others) = table(tmp_path / "execution", one=host(), two=host())
    views = {row.label: row.view for row in first.rows}
    assert views["run queue"] == views["unexplained"] == "measured"
    assert views["sleep"] == views["throttled (quota)"] == "all"
    assert {row.view for group in others for row in group.rows} == {"all"}


def test_a_server_whose_threads_wait_for_no_client_has_no_rows_but_the_reason(tmp_path: Path) -> None:
    pool = {"lock": 1.0}
    made = host({})
    assert "thread pool" in measured(tmp_path / "run", made).quantities.why("ledger.server")
    (group,) = table(tmp_path / "execution", one=host({}), two=host({}))
    (row,) = group.rows
    assert row.view == "all"
    assert "thread pool" in row.cells[0].notes[0]
    assert measured(tmp_path / "other", host(pool)).quantities.get("ledger.server") is not None


def test_a_generator_without_latency_leaves_the_states(tmp_path: Path) -> None:
    run = measured(tmp_path / "run", host(transactions={}))
    assert run.quantities.get("ledger.server") is not None
    assert run.quantities.get("ledger.unexplained") is not None
    assert "did not report the mean latency" in run.quantities.why("ledger.client")
