"""Where time goes: the states of connection threads add up to the client's latency, or the rest is shown."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from loadprint.commands.operands import resolve
from loadprint.comparison.compare_sides import compare
from loadprint.metrics.gather import Measured, gather
from loadprint.reading.queries import Store
from loadprint.reading.recording import open_run
from loadprint.tables.table import Group, Row
from recordings import Host, Rows, make_execution, make_run, write_json, write_manifest
from test_probe_rows import HISTOGRAM, histogram

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
# requests in progress, by operation and stage
REQUESTS = {
    ("read", "queue"): 0.02,
    ("read", "device"): 0.15,
    ("write", "queue"): 0.01,
    ("write", "device"): 0.1,
    ("write_fua", "device"): 0.2,
    ("flush", "device"): 0.04,
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


def host(threads: Mapping[str, float] = STATES, /, **result: Any) -> Host:
    return Host(more=states(threads), result={"transactions": {"all": LATENCY}} | result)


def measured(path: Path, made: Host) -> Measured:
    make_run(path, made)
    return gather(open_run(path), Store())


def table(path: Path, **sides: Host) -> list[Group]:
    make_execution(path, {name: [made] for name, made in sides.items()}, next(iter(sides)))
    return [group for group in compare(*resolve([str(path)])).groups if group.key.startswith("time_")]


def values(rows: tuple[Row, ...], column: int = 0) -> dict[str, float | None]:
    return {row.key.removeprefix("time_").partition("_per_")[0]: row.cells[column].value for row in rows}


def with_requests(threads: Mapping[str, float] = STATES, *, device: str = "vda") -> Host:
    """A host whose disk and connections are recorded: each entity has 100 values a second, of one bucket."""

    def rows(ticks: range) -> dict[str, tuple[Rows, dict[str, Any]]]:
        block = [
            {**row, "sum_ns": round(row["tick"] * seconds * SECOND)}
            for (operation, stage), seconds in REQUESTS.items()
            for row in histogram(
                {"device": device, "operation": operation, "stage": stage}, [0, 100, 0, 0], 1, ticks
            )
        ]
        tcp = [
            {"port": "3306", "side": "accepted", "peer": "remote", "retransmits": 0, "opened": 0, **row}
            for row in histogram({}, [50, 50, 0, 0], 1, ticks)
        ]
        probes = {"ebpf_block": (sorted(block, key=lambda row: row["tick"]), HISTOGRAM)}
        return states(threads)(ticks) | probes | {"ebpf_tcp": (tcp, HISTOGRAM)}

    return Host(more=rows, result={"transactions": {"all": LATENCY}})


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


def no_ledger(execution: Path) -> list[str]:
    """The line of the header on missing ledgers."""
    return [text for label, text in compare(*resolve([str(execution)])).facts if label == "no ledger"]


@pytest.mark.parametrize("handling", ["pool-of-threads", "loaded-dynamically"])
def test_threads_of_a_pool_are_not_those_of_connections(tmp_path: Path, handling: str) -> None:
    """Some of them wait for one client: while it logs in."""
    pool = replace(host(), variables={"thread_handling": handling})
    quantities = measured(tmp_path / "run", pool).quantities
    assert not [name for name in quantities.values if name.startswith("ledger.")]
    assert handling in quantities.why("ledger.user")
    (group,) = table(tmp_path / "execution", one=pool, two=pool)
    (row,) = group.rows
    assert handling in row.cells[0].notes[0]
    (text,) = no_ledger(tmp_path / "execution")
    assert text.startswith("of time: the server has a thread pool")
    usual = replace(host(), variables={"thread_handling": "one-thread-per-connection"})
    assert measured(tmp_path / "usual", usual).quantities.get("ledger.server") is not None


def test_a_server_that_ends_in_the_window_has_no_ledger(tmp_path: Path) -> None:
    """The recorder had only the ID of its first process: the rest of the window is missing."""
    run = make_run(tmp_path / "run", host())
    path = run / "server/process.parquet"
    rows = pq.read_table(path)
    kept = [row["tick"] < 11 or row["role"] != "server" for row in rows.to_pylist()]
    pq.write_table(rows.filter(kept), path)
    write_manifest(run)
    quantities = gather(open_run(run), Store()).quantities
    for name in ("ledger.user", "ledger.unexplained", "process.server.cpu"):
        assert quantities.get(name) is None
        assert "--process server=@FILE" in quantities.why(name)


def test_a_generator_without_latency_leaves_the_states(tmp_path: Path) -> None:
    quantities = measured(tmp_path / "run", host(transactions={})).quantities
    assert quantities.get("ledger.server") is not None
    assert quantities.get("ledger.unexplained") is not None
    reason = "the generator did not report the mean latency of its transactions"
    assert {quantities.why(f"ledger.{name}") for name in ("latency", "client")} == {reason}


def test_without_the_number_of_connections_the_rest_cannot_be_divided(tmp_path: Path) -> None:
    quantities = measured(tmp_path / "run", host(threads=None)).quantities
    assert quantities.values["ledger.latency"].rate == pytest.approx(3.5)
    assert quantities.values["ledger.server"].rate == pytest.approx(2.7)
    unknown = "neither the server nor the generator reports the number of connections"
    assert quantities.why("ledger.unexplained") == unknown
    assert quantities.why("ledger.client") == f"it cannot be separated from what is unexplained: {unknown}"


def test_without_a_result_of_the_load_the_file_is_named(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", host())
    (run / "load" / "result.json").unlink()
    quantities = gather(open_run(run), Store()).quantities
    assert quantities.get("ledger.server") is not None
    assert quantities.why("ledger.latency") == "load/result.json is missing"
    assert quantities.why("ledger.client") == "load/result.json is missing"


def test_requests_and_round_trips_are_parts_and_not_in_the_sum(tmp_path: Path) -> None:
    (first, *_) = table(tmp_path / "execution", one=with_requests(), two=with_requests())
    parts = {row.label: row.cells[0].value for row in first.rows if row.part}
    trip = (999 / 2 + (1000 + 1999) / 2) / 2 * 1e-9  # half of the segments in each bucket
    assert parts == pytest.approx(
        {
            "all disk reads, queue": 0.02 / 2000,
            "all disk reads, device": 0.15 / 2000,
            "all disk writes, queue": 0.01 / 2000,
            "all disk writes, device": 0.3 / 2000,
            "all disk flushes": 0.04 / 2000,
            "all TCP round trips": trip,
        }
    )
    total, *rows = (row.cells[0].value or 0.0 for row in first.rows if not row.part)
    assert sum(rows) == pytest.approx(total)
    labels = [row.label for row in first.rows]
    assert labels.index("all disk reads, queue") == labels.index("data read") + 1
    assert labels.index("all disk writes, queue") == labels.index("binary log, write and flush") + 1
    assert labels.index("all TCP round trips") == labels.index("network and client") + 1


def test_a_part_is_shown_with_its_row_only(tmp_path: Path) -> None:
    """Other programs read from the disk; the connection threads do not."""
    idle = with_requests({**STATES, "read tablespace": 0.0, "read undo": 0.0})
    (first, *others) = table(tmp_path / "execution", one=idle, two=idle)
    shown = {row.label for row in first.rows if row.view == "measured"}
    assert "all disk writes, device" in shown
    assert not {"data read", "all disk reads, queue", "of which disk reads, device"} & shown
    assert {row.view for group in others for row in group.rows} == {"all"}


def test_a_multipath_disk_has_the_requests_of_its_paths(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", with_requests(device="nvme0c1n1"))
    path = run / "server" / "fingerprint.json"
    fingerprint = json.loads(path.read_text(encoding="utf-8"))
    write_json(path, fingerprint | {"storage": [{"role": "redo", "disks": ["nvme0n1"]}]})
    assert gather(open_run(run), Store()).quantities.values["ledger.disk_flush"].rate == pytest.approx(0.04)


def test_parts_that_were_not_recorded_have_a_reason(tmp_path: Path) -> None:
    quantities = measured(tmp_path / "plain", host()).quantities
    assert quantities.why("ledger.disk_read_queue") == "probe ebpf_block was not recorded"
    assert quantities.why("ledger.round_trip") == "probe ebpf_tcp was not recorded"
    other = measured(tmp_path / "other", with_requests(device="sdb")).quantities
    assert "no rows of the disks of the server's files" in other.why("ledger.disk_flush")


def slower() -> Host:
    """A host whose operations take 38 ms, with all of the connections' time explained."""
    changed = {"run queue": 0.7, "flush redo log": 0.34, "client": 1.06}
    return host({**STATES, **changed}, transactions={"all": LATENCY | {"latency_ms": {"mean": 38.0}}})


@pytest.mark.parametrize(("repeats", "way"), [(3, ""), (1, ", by single values")])
def test_the_sentence_adds_up_to_the_difference(tmp_path: Path, repeats: int, way: str) -> None:
    sides = {"one": [host()] * repeats, "two": [slower()] * repeats}
    make_execution(tmp_path / "execution", sides, "one")
    compared = compare(*resolve([str(tmp_path / "execution")]))
    sentence = next(one for one in compared.sentences if one.id == "time-difference")
    assert sentence.text == (
        f"two against one: +150 µs of latency per client statement{way}: run queue +100, "
        "network and client +30, redo log write and flush +20, unexplained 0."
    )
    assert [key.partition("_per_")[0] for key in sentence.rows] == [
        "time_latency",
        "time_run_queue",
        "time_client",
        "time_redo",
    ]


def test_without_a_difference_in_latency_there_is_no_sentence(tmp_path: Path) -> None:
    sides = {"one": [host()] * 3, "two": [host({**STATES, "run queue": 0.6, "client": 1.2})] * 3}
    make_execution(tmp_path / "execution", sides, "one")
    compared = compare(*resolve([str(tmp_path / "execution")]))
    assert not [one for one in compared.sentences if one.id == "time-difference"]
