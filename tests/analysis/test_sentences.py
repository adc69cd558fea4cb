"""Sentences: for every rule one recording that makes it speak and one that falls just short of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from loadprint.catalogue.files import catalogue
from loadprint.rendering import layout
from loadprint.sentences.exercises import SUBJECTS
from loadprint.sentences.rules import RULES
from loadprint.tables.table import Sentence, Table
from reads import known, table_of
from recordings import SECOND, Host, Tables, histogram, histograms, make_execution, metrics

CALM = {"user": 12, "system": 3, "softirq": 1, "idle": 84}


@dataclass(frozen=True)
class Case:
    """What one side of a rule's pair does: rates a second of what the rule looks at."""

    cpu: Mapping[str, int] = field(default_factory=lambda: CALM)
    load: Mapping[str, int] = field(default_factory=lambda: {"user": 20, "system": 10, "idle": 70})
    io_stalled_us: int = 10_000
    waiting_ns: Mapping[str, int] = field(default_factory=dict)
    in_flight: int = 100
    row_lock_ms: int = 0
    full_for: int = 0  # seconds in which the redo log is full, pages are flushed and throughput is halved
    questions: int = 200
    sent: int = 1000
    server_ticks: Mapping[str, int] = field(default_factory=lambda: {"utime": 12, "stime": 3})

    def host(self) -> Host:
        """The host of a run that lasts forty seconds."""
        vda = {"read_sectors": 64, "write_sectors": 640, "reads": 4, "writes": 20}
        return Host(
            seconds=40,
            cpus={"0": self.cpu, "1": self.load},
            disks={"vda": {**vda, "weighted_ms": self.in_flight}},
            nics={
                "veth0": {"tx_bytes": 100 * self.sent, "rx_bytes": 5000, "tx_packets": 90, "rx_packets": 90}
            },
            server_ticks=self.server_ticks,
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
            "Innodb_redo_log_current_lsn": lambda t: 85 if 15 < t <= 15 + self.full_for else 20,
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
        waiting = (
            histogram(ticks, [1, 9], ns, role="server", state=state)
            for state, ns in ({"lock": 700_000_000} | dict(self.waiting_ns)).items()
        )
        return {
            "pressure": (pressure, {"shape": "table"}),
            "ebpf_sched": histograms(waiting, [0, 1000, None]),
            "mysql": metrics(ticks, values),
        }


def cpu(user: int, system: int, steal: int = 0) -> dict[str, int]:
    """Jiffies a second of one CPU."""
    return {"user": user, "system": system, "steal": steal, "idle": 100 - user - system - steal}


# rule → what makes it speak, and what is just short of it
CASES: dict[str, tuple[Case, Case]] = {
    "client-bound": (Case(load=cpu(50, 31)), Case(load=cpu(50, 29))),
    "steal": (Case(cpu=cpu(50, 20, 3)), Case(cpu=cpu(50, 20, 1))),
    "checkpoint": (Case(full_for=3), Case(full_for=1)),
    "storage-bound": (Case(io_stalled_us=410_000), Case(io_stalled_us=390_000)),
    "storage-bound, off CPU": (
        Case(waiting_ns={"block I/O": 11 * SECOND // 10}),
        Case(waiting_ns={"block I/O": 9 * SECOND // 10}),
    ),
    "storage-bound, in flight": (Case(in_flight=4100), Case(in_flight=3900)),
    "storage-bound, but busy": (
        Case(io_stalled_us=410_000, cpu=cpu(20, 60)),
        Case(io_stalled_us=410_000, cpu=cpu(20, 66)),
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
        Case(cpu=cpu(60, 15), waiting_ns={"run queue": 16 * SECOND // 100}),
        Case(cpu=cpu(60, 15), waiting_ns={"run queue": 14 * SECOND // 100}),
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
    known = {row.key for group in table.groups for row in group.rows} | {
        metric.key for metric in catalogue().groups["limits"]
    }
    named = {condition.row for rule in RULES for condition in (*rule.needs, *rule.signs)}
    assert {key.format(disk="vda", nic="veth0") for key in named} <= known


def test_no_rule_rests_on_iowait(tmp_path: Path) -> None:
    named = [c.row for rule in RULES for c in (*rule.needs, *rule.signs)]
    named += [key for rule in RULES for key in rule.also]
    named += [sign.row for subject in SUBJECTS for sign in subject.signs]
    assert not [key for key in named if "iowait" in key]

    waiting = Case(cpu={"user": 4, "system": 1, "iowait": 90, "idle": 5}).host()
    execution = make_execution(tmp_path / "x", {"a": [waiting], "b": [waiting]}, "a")
    assert table_of(execution).sentences == ()


def test_values_are_cited_with_their_units(table: Table) -> None:
    said = known(_of(table, "cpu-bound-over", "cpu-bound"))
    assert "utilisation 86.0 %; kernel mode, of busy 30.2 %; server CPU per operation 1,500 µs" in said.text


def test_only_the_first_few_are_shown_and_json_has_all(table: Table) -> None:
    shown = [one for one in table.sentences if one.shown]
    assert len(shown) == 5 < len(table.sentences)
    assert (
        layout.sentences(table)[-1] == f"{len(table.sentences) - 5} more with --format json or in the report."
    )
    # what spoils a comparison comes first
    assert [one.id for one in table.sentences][:2] == ["client-bound", "steal"]


def test_the_exercises_needs_intervals_and_no_contradiction(tmp_path: Path) -> None:
    def host(k: int, *, writes: int, sent: int, received: int) -> Host:
        disk = {"writes": writes + k, "write_sectors": 50 * (writes + k), "reads": 5, "read_sectors": 100}
        nic = {"tx_bytes": sent + 10 * k, "rx_bytes": received + 10 * k, "tx_packets": 90, "rx_packets": 90}
        return Host(disks={"vda": disk}, nics={"veth0": nic})

    def said(name: str, repeats: int, own: dict[str, int], other: dict[str, int]) -> dict[str, Sentence]:
        hosts = {
            side: [host(k, **rates) for k in range(repeats)] for side, rates in (("a", own), ("b", other))
        }
        sentences = table_of(make_execution(tmp_path / name, hosts, "a")).sentences
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


def test_costs_by_single_values_only_where_repeats_lie_apart(tmp_path: Path) -> None:
    def said(name: str, own: list[int]) -> list[str]:
        hosts = {"a": [Host(switches=1000)] * 2, "b": [Host(switches=n) for n in own]}
        table = table_of(make_execution(tmp_path / name, hosts, "a"))
        return [one.text for one in table.sentences if one.id == "costs"]

    (text,) = said("apart", [1600, 3000])
    assert "b uses 2.2 × the context switches of a, by single values" in text
    assert said("one near", [1400, 3000]) == []
