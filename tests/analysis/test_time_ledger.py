"""Where time goes: states of connection threads add up to the client's latency, or the rest is shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import Golden
from loadprint.metrics.ledger_rows import BETWEEN, NOT_SUMMED, WAITING, name_of
from loadprint.metrics.quantities import Quantities
from loadprint.tables.table import Group, Row
from reads import compared, known, quantities
from recordings import (
    SECOND,
    Host,
    Tables,
    change_column,
    change_json,
    change_rows,
    counters,
    histogram,
    histograms,
    make_run,
    metrics,
)

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
# of the load's threads: in 0.5 they are between operations
LOAD = {
    "on CPU": 0.25,
    "run queue": 0.1,
    "read other file": 0.05,
    "client": 3.1,
    "sleep": 0.3,
    "lock": 0.1,
    "run queue after pause": 0.1,
}
# of the exchanges of a second, threads: 2.7 - 0.1 + 0.5 is the wait of the load's threads
NETWORK, OVERLAP, STATEMENTS, SAMPLED = 0.5, 0.1, 2000, 50
OF_EXCHANGE = SECOND * SAMPLED / STATEMENTS  # ns of one thread in the sampled exchanges of a second
# requests in progress, by operation and stage
REQUESTS = {
    ("read", "queue"): 0.02,
    ("read", "device"): 0.15,
    ("write", "queue"): 0.01,
    ("write", "device"): 0.1,
    ("write_fua", "device"): 0.2,
    ("flush", "device"): 0.04,
}


def lasting(mean_ms: float, **more: float) -> dict[str, Any]:
    """Transactions of a result with this mean latency."""
    return {"all": {"count": 2100, "latency_ms": {"mean": mean_ms}, **more}}


def states(
    threads: Mapping[str, float], load: Mapping[str, float] = LOAD, **exchanges: Any
) -> Callable[[range], Tables]:
    """The table `ebpf_states`: the same time in every second; the idle threads of the server have all day.

    `exchanges` are columns of `ebpf_exchanges`, of a second.
    """
    of_second = {
        "exchanges": SAMPLED,
        "network_ns": NETWORK * OF_EXCHANGE,
        "overlap_ns": OVERLAP * OF_EXCHANGE,
    }
    of_second |= exchanges
    ends = of_second.pop("ends", "both")
    of_threads = {("server", "connection", state): time for state, time in threads.items()}
    of_threads |= {("server", "other", "other"): 30.0, ("server", "connection", "no connection"): 2.0}
    of_threads |= {("load", "connection", state): time for state, time in load.items()}
    of_threads |= {("load", "other", "sleep"): 2.0}
    # the kernel's samples: 60 % of them in user mode, and not all of the time
    kernel = {"user_ns": 3 * SECOND // 10, "system_ns": SECOND // 5}

    def rows(ticks: range) -> Tables:
        counted = {name: round(value) for name, value in of_second.items()}
        return {
            "ebpf_exchanges": (counters(ticks, counted, start=0, ends=ends), {"shape": "table"}),
            "ebpf_states": (
                [
                    row if state == "on CPU" else row | dict.fromkeys(kernel)
                    for (role, kind, state), time in of_threads.items()
                    for row in counters(
                        ticks,
                        {"time_ns": round(time * SECOND), "count": 100, **kernel},
                        start=0,
                        role=role,
                        threads=kind,
                        state=state,
                    )
                ],
                {"shape": "table"},
            ),
        }

    return rows


def host(threads: Mapping[str, float] = STATES, load: Mapping[str, float] = LOAD, /, **result: Any) -> Host:
    return Host(more=states(threads, load), result={"transactions": lasting(35.0)} | result)


def ledger(path: Path, made: Host | None = None) -> Quantities:
    """The quantities of a run of this host."""
    return quantities(make_run(path, made or host()))


def table(path: Path, **sides: Host) -> list[Group]:
    whole = compared(path, **{name: [made] for name, made in sides.items()})
    return [group for group in whole.groups if group.key.startswith("time_")]


def values(rows: tuple[Row, ...], column: int = 0) -> dict[str, float | None]:
    return {name_of(row.key): row.cells[column].value for row in rows}


def closes(rows: tuple[Row, ...]) -> None:
    """The rows add up to the latency, without their parts."""
    summed = (row for row in rows if not row.part and name_of(row.key) not in NOT_SUMMED)
    total, *parts = (row.cells[0].value or 0.0 for row in summed)
    assert sum(parts) == pytest.approx(total)


def notes(rows: tuple[Row, ...], name: str, column: int = 0) -> str:
    (row,) = (row for row in rows if name_of(row.key) == name)
    return " ".join(row.cells[column].notes)


def with_requests(threads: Mapping[str, float] = STATES, *, device: str = "vda") -> Host:
    """A host whose disk and connections are recorded: each entity has 100 values a second, of one bucket."""

    def rows(ticks: range) -> Tables:
        block = [
            histogram(
                ticks, [0, 100, 0, 0], seconds * SECOND, device=device, operation=operation, stage=stage
            )
            for (operation, stage), seconds in REQUESTS.items()
        ]
        trips = histogram(ticks, [50, 50, 0, 0], 1, port="3306", side="accepted", peer="remote")
        tcp = [row | {"retransmits": 0, "opened": 0} for row in trips]
        return states(threads)(ticks) | {"ebpf_block": histograms(block), "ebpf_tcp": histograms([tcp])}

    return replace(host(), more=rows)


def with_row_locks(waits: float | None) -> Host:
    """A host whose server has this mean number of waits for row locks; None: not recorded."""

    def rows(ticks: range) -> Tables:
        time = metrics(ticks, {"Innodb_row_lock_time": round(1000 * (waits or 0.0))})
        return states(STATES)(ticks) | ({"mysql": time} if waits is not None else {})

    return replace(host(), more=rows)


def test_both_sums_close(tmp_path: Path) -> None:
    """At the client without what its threads do between operations, and between the ends."""
    rates = {
        "user": 0.6,
        "system": 0.4,
        "other": 0.05,
        "redo": 0.3,
        "data_read": 0.25,
        "data_write": 0.1,
        "server": 2.7,
        "not_recorded": 0.0,
        "latency": 3.5,
        "client_cpu": 0.25,
        "client_queue": 0.1,
        "client_other": 0.05,
        "waiting": 3.1,
        "client_unexplained": 0.0,
        "network": NETWORK,
        "overlap": -OVERLAP,
        "unexplained": 0.0,
    }
    values = ledger(tmp_path / "run").values
    found = {name: values[f"ledger.{name}"].rate for name in rates}
    assert found == pytest.approx(rates, abs=1e-9)


def test_the_rows_add_up_to_the_latency_of_each_unit_of_work(tmp_path: Path) -> None:
    groups = table(tmp_path / "execution", one=host(), two=host({**STATES, "run queue": 0.4}))
    assert [group.key for group in groups] == ["time_statement", "time_commit", "time_operation"]
    for group, per_second in zip(groups, (2000, 100, 100), strict=True):
        for column in (0, 1):
            of_rows = values(group.rows, column)
            total = of_rows.pop("latency")
            assert total == pytest.approx(3.5 / per_second)
            parts = [part or 0.0 for name, part in of_rows.items() if name not in NOT_SUMMED]
            assert sum(parts) == pytest.approx(total)
            between = sum(part or 0.0 for name, part in of_rows.items() if name in BETWEEN)
            assert between == pytest.approx(of_rows[WAITING])
    by_operation = values(groups[-1].rows, 1)
    assert by_operation["run_queue"] == pytest.approx(4e-3)
    assert by_operation["unexplained"] == pytest.approx(1e-3)


HALVED = host(transactions=lasting(17.5))


@pytest.mark.parametrize(
    ("changed", "row", "note"),
    [
        # a manifest that fits cannot hide them: the kernel's times of the client's threads stay
        (HALVED, "client_unexplained", "-100 % of the latency: this ledger does not close"),
        (host(STATES | {"run queue": 0.1}), "unexplained", "11 % of the latency: this ledger does not close"),
        # other programs have connections, or a period began before the window
        (host(STATES | {"client": 2.0}), "not_recorded", "negative"),
    ],
)
def test_a_sum_that_does_not_close_is_marked_at_its_end(
    tmp_path: Path, changed: Host, row: str, note: str
) -> None:
    (group, *_) = table(tmp_path / "execution", one=host(), two=changed)
    assert note in notes(group.rows, row, 1)
    assert not notes(group.rows, row, 0)
    if changed is HALVED:
        before, after = values(group.rows, 0), values(group.rows, 1)
        assert {name for name in before if before[name] != after[name]} == {"latency", row}


HALF = {state: time / 2 for state, time in STATES.items()}  # of all states of the server's threads


@pytest.mark.parametrize(
    ("load", "ends", "unchecked"),
    [
        (LOAD, "server", "between the ends: the load is on another host"),
        ({}, "both", "at the client and between the ends: no thread of the load waits for one connection"),
    ],
)
@pytest.mark.parametrize("result", [{}, {"transactions": {}}])
def test_states_that_are_missing_are_marked_where_no_sum_contains_them(
    tmp_path: Path, load: dict[str, float], ends: str, unchecked: str, result: dict[str, Any]
) -> None:
    """Half of the states is removed: of four threads' time 2.05 is in no state, with or without a latency."""
    removed, whole = (
        replace(host(**result), more=states(threads, load, ends=ends)) for threads in (HALF, STATES)
    )
    (group, *others) = table(tmp_path / "execution", one=whole, two=removed)
    for one_group in (group, *others):
        assert not notes(one_group.rows, "not_recorded", 0)
        assert notes(one_group.rows, "not_recorded", 1).endswith(
            "50 % of the connection threads' time: this ledger does not close"
        )
        for column in (0, 1):
            assert f"not checked: the sum {unchecked}" in notes(one_group.rows, "latency", column)
    usual = {name_of(row.key): row.view for row in group.rows}
    assert usual["latency"] == "always"
    assert usual["not_recorded"] == "measured"


def test_time_that_is_not_recorded_is_not_marked_where_a_sum_shows_it(tmp_path: Path) -> None:
    (group, *_) = table(tmp_path / "execution", one=host(), two=host(HALF))
    assert not notes(group.rows, "not_recorded", 1)
    assert "this ledger does not close" in notes(group.rows, "unexplained", 1)
    assert not notes(group.rows, "latency", 0)


def test_an_open_loop_has_a_backlog(tmp_path: Path) -> None:
    found = ledger(tmp_path / "run", host(transactions=lasting(45.0, wait_ms_mean=10.0), rate=100.0))
    assert found.values["ledger.latency"].rate == pytest.approx(4.5)
    assert found.values["ledger.backlog"].rate == pytest.approx(1.0)
    assert found.values["ledger.client_unexplained"].rate == pytest.approx(0.0, abs=1e-9)


def without(name: str) -> Host:
    return replace(host(), more=lambda ticks: {n: of for n, of in states(STATES)(ticks).items() if n != name})


CLOSURES = ("client_cpu", "waiting", "client_unexplained", "unexplained")
NO_WAIT = "the generator does not report how long its operations waited for a connection"
NO_MEAN = "the generator did not report the mean latency of its transactions"
NO_NUMBER = "neither the server nor the generator reports the number of connections"
FEW, ONE_END = (
    replace(host(), more=states(STATES, **columns)) for columns in ({"exchanges": 1}, {"ends": "server"})
)
# some threads of a pool wait for one client, while it logs in; the client needs none of them
POOL, LOADED = (
    replace(host(), variables={"thread_handling": handling})
    for handling in ("pool-of-threads", "loaded-dynamically")
)
BETWEEN_ENDS, OF_SERVER = ("network", "unexplained"), ("user", "server", "unexplained")


@pytest.mark.parametrize(
    ("made", "missing", "reason", "there"),
    [
        (without("ebpf_exchanges"), (*CLOSURES, "network"), "recorded by an older version", "server"),
        (host(STATES, {}), CLOSURES, "no thread of the load waits for one connection", "network"),
        (FEW, BETWEEN_ENDS, "fewer than 30 exchanges", "client_unexplained"),
        (ONE_END, BETWEEN_ENDS, "the load is on another host", "client_unexplained"),
        (host(transactions={}), ("latency", "client_unexplained"), NO_MEAN, "unexplained"),
        (host(transactions=lasting(45.0), rate=100.0), ("backlog", "client_unexplained"), NO_WAIT, "server"),
        (host(threads=None), ("not_recorded",), NO_NUMBER, "unexplained"),
        (host(), ("disk_read_queue",), "probe ebpf_block was not recorded", "server"),
        (host(), ("round_trip",), "probe ebpf_tcp was not recorded", "server"),
        (POOL, OF_SERVER, "pool-of-threads", "client_unexplained"),
        (LOADED, OF_SERVER, "loaded-dynamically", "client_unexplained"),
        (host({}), ("server",), "thread pool", "latency"),
    ],
)
def test_what_is_missing_has_its_reason_and_the_rest_stays(
    tmp_path: Path, made: Host, missing: tuple[str, ...], reason: str, there: str
) -> None:
    found = ledger(tmp_path / "run", made)
    for name in missing:
        assert found.get(f"ledger.{name}") is None
        assert reason in found.why(f"ledger.{name}")
    assert found.get(f"ledger.{there}") is not None


def test_without_a_ledger_the_reason_is_in_its_row_and_in_the_header(tmp_path: Path) -> None:
    whole = compared(tmp_path / "pool", one=[POOL], two=[POOL])
    (group,) = (group for group in whole.groups if group.key == "time_statement")
    assert "pool-of-threads" in notes(group.rows, "run_queue")
    assert dict(whole.facts)["no ledger"].startswith("of time: the server has a thread pool")
    (group,) = table(tmp_path / "none", one=host({}, {}), two=host({}, {}))
    (row,) = group.rows
    assert row.view == "all"
    assert "thread pool" in row.cells[0].notes[0]
    assert ledger(tmp_path / "lock", host({"lock": 1.0})).values["ledger.lock"].rate == pytest.approx(1.0)
    usual = replace(host(), variables={"thread_handling": "one-thread-per-connection"})
    assert ledger(tmp_path / "usual", usual).get("ledger.server") is not None
    other = ledger(tmp_path / "other", with_requests(device="sdb"))
    assert "no rows of the disks of the server's files" in other.why("ledger.disk_flush")


@pytest.mark.parametrize("waits", [None, 0.3, 2.0])
def test_row_locks_of_the_whole_server_are_not_in_the_sum(tmp_path: Path, waits: float | None) -> None:
    """Events can wait for row locks while the load waits for something else on a futex."""
    group, *_ = table(tmp_path / "execution", one=with_row_locks(waits), two=host())
    row = {row.label: row for row in group.rows}["lock, mutex or condition"]
    assert row.cells[0].value == pytest.approx(0.4 / 2000)
    assert row.notes[0].startswith("waits on futexes, caller unknown: ")
    part = group.rows[group.rows.index(row) + 1]
    assert (part.label, part.part) == ("all row lock waits", True)
    assert part.cells[0].value == (waits and pytest.approx(waits / 2000))
    closes(group.rows)


def test_small_rows_are_in_the_full_view_only(tmp_path: Path) -> None:
    (first, *others) = table(tmp_path / "execution", one=host(), two=host())
    views = {row.label: row.view for row in first.rows}
    assert views["run queue"] == views["unexplained, between the ends"] == "measured"
    assert views["sleep"] == views["throttled (quota)"] == "all"
    assert {row.view for group in others for row in group.rows} == {"all"}


def test_a_server_that_ends_in_the_window_has_no_ledger(tmp_path: Path) -> None:
    """The recorder had only the ID of its first process: the rest of the window is missing."""
    run = make_run(tmp_path / "run", host())
    path = run / "server/process.parquet"
    change_rows(path, lambda row: row if row["tick"] < 11 or row["role"] != "server" else None)
    found = quantities(run)
    for name in ("ledger.user", "ledger.unexplained", "process.server.cpu"):
        assert found.get(name) is None
        assert "--process server=@FILE" in found.why(name)


def test_without_a_result_of_the_load_the_file_is_named(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", host())
    (run / "load" / "result.json").unlink()
    found = quantities(run)
    assert found.get("ledger.server") is not None
    assert found.why("ledger.latency") == "load/result.json is missing"
    assert found.why("ledger.client_unexplained") == "load/result.json is missing"


def test_requests_and_round_trips_are_parts_and_not_in_the_sum(tmp_path: Path) -> None:
    (first, *_) = table(tmp_path / "execution", one=with_requests(), two=with_requests())
    parts = {row.label: row.cells[0].value for row in first.rows if row.part and "lock" not in row.label}
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
    closes(first.rows)
    labels = [row.label for row in first.rows]
    assert labels.index("all disk reads, queue") == labels.index("data read") + 1
    assert labels.index("all disk writes, queue") == labels.index("binary log, write and flush") + 1
    assert labels.index("all TCP round trips") == labels.index("network") + 1


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
    change_json(run / "server/fingerprint.json", storage=[{"role": "redo", "disks": ["nvme0n1"]}])
    assert quantities(run).values["ledger.disk_flush"].rate == pytest.approx(0.04)


def slower() -> Host:
    """A host whose operations take 38 ms, with all of this time explained."""
    changed = {"run queue": 0.7, "flush redo log": 0.34, "client": 1.06}
    more = states({**STATES, **changed}, {**LOAD, "client": 3.4}, network_ns=(NETWORK + 0.06) * OF_EXCHANGE)
    return replace(host(transactions=lasting(38.0)), more=more)


def longer(latency_ms: float, queue: float) -> Host:
    """A host with longer operations, of which only `queue` threads more wait for a CPU of the server."""
    changed = {"run queue": 0.5 + queue, "client": 1.3 - queue}
    more = states({**STATES, **changed}, {**LOAD, "client": 3.1 + queue})
    return replace(host(transactions=lasting(latency_ms)), more=more)


# the repeats of two sides
DIFFERENCES: dict[str, tuple[list[Host], list[Host]]] = {
    "the terms add up to the difference": ([host()] * 3, [slower()] * 3),
    "by single values": ([host()], [slower()]),
    "of a ledger that does not close only this is reported": ([host()] * 3, [longer(45.0, queue=0.2)] * 3),
    # 80 of 90 µs are 4 % of the latency: the ledger closes
    "the largest term comes first also if it is unexplained": ([host()] * 3, [longer(36.8, queue=0.02)] * 3),
    "none without the terms of the client": (
        [host(STATES, {})] * 3,
        [host(STATES, {}, transactions=lasting(45.0))] * 3,
    ),
    "none without a difference in latency": (
        [host()] * 3,
        [host({**STATES, "run queue": 0.6, "client": 1.2})] * 3,
    ),
    "none if repeats differ as much as the sides": (
        [longer(latency, queue=0.02) for latency in (35.2, 36.4, 35.7)],
        [longer(latency, queue=0.02) for latency in (35.9, 35.5, 36.6)],
    ),
}


def test_sentences_on_the_difference(tmp_path: Path, golden: Golden) -> None:
    """The golden file has the sentence of each pair of sides, in both forms, and its rows."""
    lines = []
    for number, (name, (one, two)) in enumerate(DIFFERENCES.items()):
        table = compared(tmp_path / str(number), one=one, two=two)
        said = [sentence for sentence in table.sentences if sentence.id == "time-difference"]
        shown = [(sentence.text, sentence.brief, " ".join(map(name_of, sentence.rows))) for sentence in said]
        lines += [f"# {name}", *(f"  {text}" for texts in shown for text in texts)]
    golden("time_sentences.txt", "\n".join(lines) + "\n")


def on_kernel(path: Path, *, irq_time: str | None, steal: int, stolen: float) -> Quantities:
    """A run on a kernel with this configuration, whose /proc/stat has this steal time since the boot."""
    run = make_run(path, host({**STATES, "stolen": stolen} if stolen else STATES))
    change_json(run / "server/fingerprint.json", cpu_accounting={"irq_time": irq_time})
    return quantities(change_column(run / "server/cpu.parquet", "steal", lambda _: steal))


@pytest.mark.parametrize(
    ("irq_time", "steal", "stolen", "expected"),
    [
        # without accounting it is not zero, but missing
        ("n", 0, 0.0, None),
        (None, 0, 0.0, None),
        ("y", 0, 0.0, 0.0),
        ("n", 7, 0.0, 0.0),
        # that of the threads shows that it is accounted
        (None, 0, 0.1, 0.1),
    ],
)
def test_stolen_time_is_known_where_the_kernel_accounts_it(
    tmp_path: Path, irq_time: str | None, steal: int, stolen: float, expected: float | None
) -> None:
    found = on_kernel(tmp_path / "run", irq_time=irq_time, steal=steal, stolen=stolen)
    if expected is None:
        assert found.get("ledger.stolen") is None
        assert "CONFIG_IRQ_TIME_ACCOUNTING" in found.why("ledger.stolen")
        # the rows on CPU contain it
        assert found.values["ledger.server"].rate == pytest.approx(2.7)
    else:
        assert found.values["ledger.stolen"].rate == pytest.approx(expected)


@pytest.mark.parametrize(
    ("states", "row"), [({"stopped": 0.2}, "stopped"), ({"memory": 0.1, "page fault": 0.1}, "memory")]
)
def test_a_stopped_server_and_its_waits_for_memory_have_rows(
    tmp_path: Path, states: dict[str, float], row: str
) -> None:
    found = ledger(tmp_path / "run", host({**STATES, **states, "client": 1.1}))
    assert found.values[f"ledger.{row}"].rate == pytest.approx(0.2)
    assert found.values["ledger.other"].rate == pytest.approx(0.05)
    assert found.values["ledger.server"].rate == pytest.approx(2.9)


# of 21 s and 4 connections
TYPES = {
    "new_order": {"count": 2100, "latency_ms": {"mean": 20.0}},
    "payment": {"count": 4200, "latency_ms": {"mean": 5.0}},
}


def group(path: Path, *results: dict[str, Any]) -> Group | None:
    """The group of two sides, each with one result."""
    one, two = ([Host(result=result)] for result in results)
    groups = compared(path, one=one, two=two).groups
    return next((group for group in groups if group.key == "connection_time"), None)


def shares(shown: Group, column: int = 0) -> dict[str, float | None]:
    return {row.label: row.cells[column].value for row in shown.rows}


def test_the_types_and_the_rest_are_all_of_the_time(tmp_path: Path) -> None:
    shown = known(group(tmp_path / "x", {"transactions": TYPES}, {"transactions": TYPES}))
    assert shares(shown) == pytest.approx({"new_order": 50.0, "payment": 25.0, "between transactions": 25.0})
    assert {row.view for row in shown.rows} == {"measured"}


def test_an_open_loop_waits_without_a_connection(tmp_path: Path) -> None:
    late = {kind: {**reported, "wait_ms_mean": 1.0} for kind, reported in TYPES.items()}
    shown = known(group(tmp_path / "x", {"transactions": TYPES}, {"transactions": late}))
    assert shares(shown, 1) == pytest.approx(
        {"new_order": 47.5, "payment": 20.0, "between transactions": 32.5}
    )


def test_a_type_without_count_or_latency_has_the_reason(tmp_path: Path) -> None:
    odd = TYPES | {"payment": {"count": 4200, "latency_ms": {}}, "delivery": {"count": 0, "latency_ms": {}}}
    shown = known(group(tmp_path / "x", {"transactions": odd}, {"transactions": TYPES, "threads": None}))
    assert shares(shown) == {
        "new_order": pytest.approx(50.0),
        "payment": None,
        "delivery": 0.0,
        "between transactions": None,
    }
    notes = {row.label: [cell.notes for cell in row.cells] for row in shown.rows}
    reason = ("the generator does not report count and mean latency of payment",)
    unknown = ("the generator does not report its connections",)
    assert notes["payment"] == notes["between transactions"] == [reason, unknown]


def test_one_type_needs_no_rows(tmp_path: Path) -> None:
    alone = {"transactions": {"event": TYPES["payment"]}}
    assert group(tmp_path / "x", alone, alone) is None
