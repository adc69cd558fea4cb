"""Sentences: for every rule one recording that makes it speak and one that falls just short of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from loadprint.catalogue.files import catalogue
from loadprint.rendering import layout
from loadprint.sentences.exercises import SUBJECTS
from loadprint.sentences.rules import RULES
from loadprint.tables.table import Sentence, Table
from reads import compared, known, table_of
from recordings import SECOND, Host, Tables, counters, make_execution, metrics

CALM = {"user": 12, "system": 3, "softirq": 1, "idle": 84}


@dataclass(frozen=True)
class Case:
    """What one side of a rule's pair does: rates a second of what the rule looks at."""

    cpu: Mapping[str, int] = field(default_factory=lambda: CALM)
    load: Mapping[str, int] = field(default_factory=lambda: {"user": 20, "system": 10, "idle": 70})
    io_stalled_us: int = 10_000
    waiting_ns: Mapping[str, int] = field(default_factory=dict)
    connections: Mapping[str, int] = field(default_factory=dict)  # % of the time of four threads, by state
    in_flight: int = 100
    row_lock_ms: int = 0
    full_for: int = 0  # seconds in which the redo log is full, pages are flushed and throughput is halved
    questions: int = 200
    sent: int = 1000
    # of the processes, by default all time of their CPUs but interrupts
    server_ticks: Mapping[str, int] | None = None
    load_ticks: Mapping[str, int] | None = None
    disk: str = "vda"  # with the requests; vda has the server's files
    age: int = 85  # checkpoint age in % of the redo capacity while it is full

    def host(self) -> Host:
        """The host of a run that lasts forty seconds."""
        vda = {"read_sectors": 64, "write_sectors": 640, "reads": 4, "writes": 20}
        return Host(
            seconds=40,
            cpus={"0": self.cpu, "1": self.load},
            disks={"vda": vda, self.disk: {**vda, "weighted_ms": self.in_flight}},
            nics={
                "veth0": {"tx_bytes": 100 * self.sent, "rx_bytes": 5000, "tx_packets": 90, "rx_packets": 90}
            },
            server_ticks=self.server_ticks or _of_programs(self.cpu),
            load_ticks=self.load_ticks or _of_programs(self.load),
            grown={
                "Questions": self.questions * 41 * 100,
                "Com_stmt_prepare": 0,
                "Com_prepare_sql": 0,
                "Bytes_sent": 5,
                "Bytes_received": 5,
            },
            series=lambda second: 40 if 15 <= second < 15 + self.full_for else 100,
            more=self._probes,
        )

    def _probes(self, ticks: range) -> Tables:
        flushed, total = [], 0
        for t in ticks:
            total += 3000 if 15 < t <= 15 + self.full_for else 100
            flushed.append(total)
        values: dict[str, int | Callable[[int], int]] = {
            "Innodb_buffer_pool_pages_flushed": lambda t: flushed[t],
            "Innodb_redo_log_current_lsn": lambda t: self.age if 15 < t <= 15 + self.full_for else 20,
            "Innodb_redo_log_checkpoint_lsn": lambda t: 0,
            "Innodb_redo_log_capacity_resized": lambda t: 100,
            "Innodb_row_lock_time": self.row_lock_ms,
            "Threads_running": lambda t: 4,
        }
        pressure = [
            {"tick": t, "resource": r, "severity": "some", "total_us": us * t}
            for r, us in (("io", self.io_stalled_us), ("cpu", 50_000))
            for t in ticks
        ]
        waiting = {"lock": 700_000_000} | dict(self.waiting_ns)
        of_threads = [("other", state, ns) for state, ns in waiting.items()]
        of_threads += [
            ("connection", state, 4 * share * SECOND // 100) for state, share in self.connections.items()
        ]
        times = [
            row
            for threads, state, ns in of_threads
            for row in counters(
                ticks,
                {"time_ns": ns, "count": 100, "user_ns": 0, "system_ns": 1},
                start=0,
                role="server",
                threads=threads,
                state=state,
            )
        ]
        return {
            "ebpf_states": (times, {"shape": "table"}),
            "pressure": (pressure, {"shape": "table"}),
            "mysql": metrics(ticks, values),
        }


def _of_programs(cpu: Mapping[str, int]) -> dict[str, int]:
    return {"utime": cpu["user"], "stime": cpu["system"]}


def cpu(user: int, system: int, steal: int = 0) -> dict[str, int]:
    """Jiffies a second of one CPU."""
    return {"user": user, "system": system, "steal": steal, "idle": 100 - user - system - steal}


# rule → what makes it speak, and what is just short of it
CASES: dict[str, tuple[Case, Case]] = {
    "client-bound": (Case(load=cpu(50, 31)), Case(load=cpu(50, 29))),
    "client-bound, but others": (
        Case(load=cpu(50, 31), load_ticks={"utime": 41, "stime": 0}),
        Case(load=cpu(50, 31), load_ticks={"utime": 40, "stime": 0}),
    ),
    # a neighbour uses 80 % of a set, the server or the generator 0.04 of a core
    "other-programs": (
        Case(cpu=cpu(72, 12), server_ticks={"utime": 3, "stime": 1}),
        Case(cpu=cpu(4, 12), server_ticks={"utime": 3, "stime": 1}),
    ),
    "other-programs, in the kernel": (
        Case(cpu=cpu(4, 80), server_ticks={"utime": 3, "stime": 1}),
        Case(cpu=cpu(4, 80), server_ticks={"utime": 3, "stime": 40}),
    ),
    "other-programs-load": (
        Case(load=cpu(72, 12), load_ticks={"utime": 3, "stime": 1}),
        Case(load=cpu(4, 12), load_ticks={"utime": 3, "stime": 1}),
    ),
    "steal": (Case(cpu=cpu(50, 20, 3)), Case(cpu=cpu(50, 20, 1))),
    "checkpoint": (Case(full_for=3), Case(full_for=1)),
    "checkpoint, not full": (Case(full_for=3, age=76), Case(full_for=3, age=74)),
    "storage-bound": (Case(in_flight=4100), Case(in_flight=3900)),
    "storage-bound, another disk": (
        Case(in_flight=4100),
        Case(in_flight=4100, disk="vdb", io_stalled_us=900_000),
    ),
    "storage-bound, off CPU": (
        Case(waiting_ns={"read tablespace": 11 * SECOND // 10}),
        Case(waiting_ns={"read tablespace": 9 * SECOND // 10}),
    ),
    "storage-bound, connections": (
        Case(in_flight=900, connections={"read tablespace": 41, "on CPU": 59}),
        Case(in_flight=4100, connections={"read tablespace": 39, "on CPU": 61}),
    ),
    "storage-bound, but busy": (
        Case(in_flight=4100, cpu=cpu(20, 60)),
        Case(in_flight=4100, cpu=cpu(20, 66)),
    ),
    "lock-bound": (Case(row_lock_ms=510), Case(row_lock_ms=490)),
    "lock-bound, off CPU": (
        Case(row_lock_ms=510, waiting_ns={"lock": 6 * SECOND // 10}),
        Case(row_lock_ms=510, waiting_ns={"lock": 4 * SECOND // 10}),
    ),
    "cpu-bound": (Case(cpu=cpu(60, 26)), Case(cpu=cpu(60, 24))),
    "kernel-heavy": (Case(cpu=cpu(20, 21)), Case(cpu=cpu(21, 20))),
    "network-chatty": (Case(questions=11, sent=8200), Case(questions=9, sent=8200)),
    "network-chatty, but small": (Case(questions=11, sent=8200), Case(questions=11, sent=8100)),
    "engine": (Case(cpu=cpu(36, 15)), Case(cpu=cpu(34, 16))),
    "run-queue": (
        Case(cpu=cpu(60, 15), waiting_ns={"run queue": 76 * SECOND // 100}),
        Case(cpu=cpu(60, 15), waiting_ns={"run queue": 74 * SECOND // 100}),
    ),
}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """All cases as sides of one execution, one run each."""
    sides = {
        f"{name.replace(', ', '-').replace(' ', '-')}-{word}": [case.host()]
        for name, pair in CASES.items()
        for word, case in zip(("over", "short"), pair, strict=True)
    }
    path = make_execution(tmp_path_factory.mktemp("rules") / "execution", sides, next(iter(sides)))
    return table_of(*(f"{path}:{side}" for side in sides))


def _of(table: Table, side: str, rule: str) -> Sentence | None:
    return next((one for one in table.sentences if one.side == side and one.id == rule), None)


@pytest.mark.parametrize("name", CASES)
def test_a_rule_speaks_of_its_case_and_not_of_one_just_short_of_it(table: Table, name: str) -> None:
    rule, side = name.partition(",")[0], name.replace(", ", "-").replace(" ", "-")

    said = _of(table, f"{side}-over", rule)

    assert said is not None
    assert _of(table, f"{side}-short", rule) is None
    assert said.about == next(one.exercises for one in RULES if one.id == rule)
    position = [head.name for head in table.sides].index(said.side)
    for key in said.rows:
        row = known(table.row(key))
        assert f"{row.label}" in said.text
        assert layout.value(row, row.cells[position], layout.decimals(row)) != "n/a"


def test_every_rule_has_a_case() -> None:
    assert {name.partition(",")[0] for name in CASES} == {rule.id for rule in RULES}


def test_the_rows_that_rules_name_exist(table: Table) -> None:
    known = {row.key for row in table.rows} | {metric.key for metric in catalogue().groups["limits"]}
    named = {condition.row for rule in RULES for condition in (*rule.needs, *rule.signs)}
    assert {key.format(disk="vda", nic="veth0") for key in named} <= known


def test_no_rule_rests_on_iowait(tmp_path: Path) -> None:
    named = [c.row for rule in RULES for c in (*rule.needs, *rule.signs)]
    named += [key for rule in RULES for key in rule.also]
    named += [sign.row for subject in SUBJECTS for sign in subject.signs]
    assert not [key for key in named if "iowait" in key]

    waiting = Case(cpu={"user": 4, "system": 1, "iowait": 90, "idle": 5}).host()
    assert compared(tmp_path / "x", a=[waiting], b=[waiting]).sentences == ()


def test_values_are_cited_with_their_units(table: Table) -> None:
    said = known(_of(table, "cpu-bound-over", "cpu-bound"))
    assert "utilisation 86.0 %; kernel mode, of busy 30.2 %" in said.text
    assert "server CPU per operation 8,600 µs" in said.text


def test_only_the_first_few_are_shown_and_json_has_all(table: Table) -> None:
    shown = [one for one in table.sentences if one.shown]
    assert len(shown) == 5 < len(table.sentences)
    assert (
        layout.sentences(table)[-1] == f"{len(table.sentences) - 5} more with --format json or in the report."
    )
    # what spoils a comparison comes first
    assert list(dict.fromkeys(one.id for one in table.sentences))[:2] == ["client-bound", "other-programs"]


def test_the_exercises_needs_intervals_and_no_contradiction(tmp_path: Path) -> None:
    def host(k: int, *, writes: int, sent: int, received: int) -> Host:
        disk = {"writes": writes + k, "write_sectors": 50 * (writes + k), "reads": 5, "read_sectors": 100}
        nic = {"tx_bytes": sent + 10 * k, "rx_bytes": received + 10 * k, "tx_packets": 90, "rx_packets": 90}
        return Host(disks={"vda": disk}, nics={"veth0": nic})

    def said(name: str, repeats: int, own: dict[str, int], other: dict[str, int]) -> dict[str, Sentence]:
        a, b = ([host(k, **rates) for k in range(repeats)] for rates in (own, other))
        sentences = compared(tmp_path / name, a=a, b=b).sentences
        return {one.text.partition(" than ")[0]: one for one in sentences if one.id == "exercises"}

    few, many = {"writes": 20, "sent": 9000, "received": 9000}, {"writes": 60, "sent": 900, "received": 900}
    agreed = said("agreed", 3, few, many)
    assert list(agreed) == ["b uses storage more", "a uses the network more"]
    assert {(one.side, one.about) for one in agreed.values()} == {("b", "storage"), ("a", "network")}
    assert "2.9 × the write requests" in agreed["b uses storage more"].text
    assert "9.9 × the bytes sent" in agreed["a uses the network more"].text

    mixed = said("mixed", 3, few, {**many, "writes": 21, "received": 90_000})
    assert list(mixed) == [
        "a sends more over the network",
        "b receives more over the network",
    ]
    assert said("two repeats", 2, few, many) == {}
    assert said("near", 3, few, {"writes": 29, "sent": 9500, "received": 8800}) == {}


@pytest.mark.parametrize(
    ("own", "other"),
    [
        # 1.7 × the switches at a lower share of kernel mode
        (
            Host(switches=1000, cpus={"0": cpu(30, 15), "1": CALM}, server_ticks={"utime": 30, "stime": 15}),
            Host(switches=1700, cpus={"0": cpu(31, 14), "1": CALM}, server_ticks={"utime": 31, "stime": 14}),
        ),
        # 1.6 × the requests with fewer bytes
        (
            Host(),
            Host(disks={"vda": {"writes": 64, "write_sectors": 1500, "reads": 10, "read_sectors": 320}}),
        ),
    ],
)
def test_a_row_in_the_other_direction_vetoes(tmp_path: Path, own: Host, other: Host) -> None:
    sentences = compared(tmp_path / "x", a=[own] * 3, b=[other] * 3).sentences
    assert {one.about for one in sentences if one.id == "exercises"} <= {"engine"}


def far(**changed: Any) -> Host:
    """A host with 2 × the switches and 3 × the bytes sent of the default one."""
    nic = {"rx_bytes": 102_400, "rx_packets": 500, "tx_bytes": 3_072_000, "tx_packets": 900}
    return Host(switches=3000, nics={"veth0": nic}, **changed)


def test_a_comparison_of_doubtful_sides_says_so(tmp_path: Path) -> None:
    def said(name: str, **changed: Any) -> list[Sentence]:
        every = compared(tmp_path / name, a=[Host()] * 3, b=[far(**changed)] * 3).sentences
        found = [one for one in every if one.id in {"costs", "exercises", "time-difference"}]
        assert len(found) > 1
        return found

    assert not [one for one in said("sound") if "(" in one.brief]
    busy = said("busy", load_ticks={"utime": 90, "stime": 8}, cpus={"0": CALM, "1": cpu(80, 15)})
    rising = said("rising", series=lambda second: 100 + 4 * second)
    relaxed = said("relaxed", variables={"innodb_flush_log_at_trx_commit": "0", "port": "3306"})
    doubts = (busy, "b: client-bound"), (rising, "b: never settled"), (relaxed, "not comparable")
    for doubtful, doubt in doubts:
        assert all(doubt in one.text and doubt in one.brief for one in doubtful), doubt


def test_a_comparison_of_different_operations_is_never_the_first(tmp_path: Path) -> None:
    def briefs(name: str, other: Host) -> list[str]:
        every = compared(tmp_path / name, a=[Host(commits=1000)] * 3, b=[other] * 3).sentences
        return [one.brief for one in every if one.shown]

    unlike: dict[str, Any] = {"operation": "insert", "commits": 10}
    *exercised, costs = briefs("both", far(**unlike))
    assert exercised == [
        "b uses the network more: 3.0 × the bytes sent per CPU-second",
        "b uses the kernel more: 2.0 × the context switches per CPU-second",
    ]
    assert costs.startswith("b uses 100 × the server CPU of a per commit")
    assert briefs("alone", Host(**unlike)) == []


def test_costs_by_single_values_only_where_repeats_lie_apart(tmp_path: Path) -> None:
    def said(name: str, own: list[int]) -> list[str]:
        others = [Host(switches=n) for n in own]
        table = compared(tmp_path / name, a=[Host(switches=1000)] * 2, b=others)
        return [one.text for one in table.sentences if one.id == "costs"]

    (text,) = said("apart", [1600, 3000])
    assert "b uses 2.2 × the context switches of a, by single values" in text
    assert said("one near", [1400, 3000]) == []
