"""Qualifications of recordings the test made: verdicts, what forbids them, levels, money, groups of hosts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from conftest import Golden
from loadprint.commands.qualify import qualify_text
from loadprint.commands.qualify.measure import Reader
from loadprint.commands.qualify.qualification import qualify
from loadprint.commands.qualify.qualify_report import Qualification
from loadprint.errors import InputError
from qualifying import Base, asked, at, changed, execution, waiting
from recordings import Host, write_manifest
from test_canary import line as canary_line


def shown(name: str, report: Qualification) -> str:
    """The text of a report without paths and method; its verdict is the exit status too."""
    assert report.status == ("pass", "fail", "undecided").index(report.verdict)
    parties = tuple((party, (), machines) for party, _, machines in report.parties)
    return f"# {name}\n\n{qualify_text.text(replace(report, parties=parties, method=()))}\n"


BUSY = {"0": {"user": 50, "idle": 50}, "1": {"user": 95, "idle": 5}}
PRICE: dict[str, Any] = {"baseline": 2.0, "candidate": 1.0, "currency": "EUR", "per": "hour"}
DEVICES: dict[str, Any] = {
    "disk_*_flushes": {"tolerance": "5 %", "better": "lower"},
    "disk_*_await": "5 %",
    "errors": "1 %",
    "energy_per_operation": "5 %",
}
CPU_AT_A_PRICE = {"rows": {"server_cpu_per_operation": "50 %"}, "price": PRICE | {"tolerance": "0 %"}}
# a candidate, how it is recorded, and what is asked about it
CASES: dict[str, tuple[Host, dict[str, Any], tuple[dict[str, Any], ...]]] = {
    "as good": (
        at(1000, "db2"),
        {},
        ({}, {"sustained": {"at_least": "10m"}}, {"concurrencies": 2}, {"rows": DEVICES}),
    ),
    "better": (at(1100, "db2"), {}, ({},)),
    "worse": (at(900, "db2"), {}, ({},)),
    "wide bounds": (at(1000, "db2"), {"spread": (0, 30, -30)}, ({},)),
    "two repeats": (at(800, "db2"), {"spread": (0, 1)}, ({},)),
    "accepted profile": (
        at(1000, "db2"),
        {"profile": "blog"},
        ({"accept_profiles": ["durable", "blog"]},),
    ),
    "client at its limit": (at(900, "db2", cpus=BUSY), {}, ({},)),
    "never settles": (at(1000, "db2", series=lambda second: 800 + 10 * second), {}, ({},)),
    # 1000 a second over the whole window, 724 after its credit
    "a credit ends after 18 s": (
        at(1000, "db2", series=lambda second: (1300 if second < 18 else 700) + second % 3),
        {},
        ({},),
    ),
    "cheaper": (at(700, "db2"), {}, ({"price": PRICE}, CPU_AT_A_PRICE)),
    "latency of a closed loop": (
        at(1000, "db2", latency_ms=90.0),
        {},
        ({"rows": {"operations": "3 %", "latency_p99": "5 %"}},),
    ),
}


def test_verdicts(base: Base, tmp_path: Path, golden: Golden) -> None:
    texts = []
    for number, (name, (host, how, specs)) in enumerate(CASES.items()):
        new = execution(tmp_path / str(number), {"oltp": host}, **how)
        texts += [shown(f"{name} {spec}", base.judge([str(new)], asked(**spec))) for spec in specs]
    golden("qualify_verdicts.txt", "".join(texts))


def test_what_cannot_be_judged_is_one_line(base: Base, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="server profile is `blog`, only durable qualifies") as error:
        base.against(tmp_path, at(1000, "db2"), asked(), profile="blog")
    assert "\n" not in str(error.value)
    flushes = asked(rows={"disk_vda_flushes": "5 %"}, accept_profiles=["durable", "blog"])
    with pytest.raises(InputError, match="higher or lower is better; write `better"):
        base.judge([str(tmp_path / "new")], flushes)


def test_several_concurrencies_are_cells_of_their_own_and_one_that_fails_decides(
    tmp_path: Path, golden: Golden
) -> None:
    old = execution(tmp_path / "old", {"oltp-t4": at(1000), "oltp-t16": at(2000)})
    new = execution(tmp_path / "new", {"oltp-t4": at(1000, "db2"), "oltp-t16": at(1500, "db2")})
    reader = Reader()
    report = qualify([str(old)], [str(new)], asked(concurrencies=2), reader)
    alone = qualify([f"{old}:oltp-t4"], [f"{new}:oltp-t4"], asked(), reader)
    unlike = qualify([f"{old}:oltp-t4"], [f"{new}:oltp-t16"], asked(), reader)
    golden(
        "qualify_cells.txt",
        shown("both", report) + shown("one of them", alone) + shown("not the same work", unlike),
    )


def test_hardware_is_the_subject_and_configuration_spoils_unless_accepted(
    base: Base, tmp_path: Path, golden: Golden
) -> None:
    new = execution(tmp_path / "new", {"oltp": at(1000, "db2")})
    changed(new, "fingerprint.json", lambda f: f["cpus"].update(model="Newer CPU"))
    texts = [shown("other hardware", base.judge([str(new)], asked()))]
    other = new.rename(tmp_path / "other")  # the reader has seen `new`
    changed(other, "server.json", lambda s: s["variables"].update(innodb_io_capacity="200"))
    texts.append(shown("other configuration", base.judge([str(other)], asked())))
    texts.append(shown("accepted", base.judge([str(other)], asked(accept=["innodb_io_*"]))))
    third = execution(tmp_path / "third", {"oltp": at(1000, "db2")})
    lines = canary_line("before", 0, cpu=1000) + canary_line("after", 40, cpu=1100)
    (third / "b2-oltp-r2" / "server" / "canary.jsonl").write_text(lines)
    write_manifest(third / "b2-oltp-r2")
    for given in ({}, {"accept_disturbed": True}):
        texts.append(shown(f"disturbed {given}", base.judge([str(third)], asked(**given))))
    golden("qualify_voids.txt", "".join(texts))


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Base:
    """A baseline that was held to 700 events a second, 10 ms each."""
    path = tmp_path_factory.mktemp("held") / "old"
    return Base(execution(path, {"oltp@70": waiting(700, "db1", 10.0, 700)}), Reader())


@pytest.mark.parametrize(
    ("ms", "rate", "verdict"),
    [
        (10.0, 700, "pass"),
        (12.0, 700, "fail"),
        (10.0, 800, "pass"),  # driven harder and still as quick
        (12.0, 800, "undecided"),
        (10.0, 600, "undecided"),
        (12.0, 600, "fail"),  # slower although driven less
    ],
)
def test_latency_is_judged_at_equal_load(
    held: Base, tmp_path: Path, ms: float, rate: float, verdict: str
) -> None:
    new = execution(tmp_path / "new", {"oltp@70": waiting(700, "db2", ms, rate)})
    report = held.judge([str(new)], asked(rows={"latency_p99": "5 %"}))
    (cell,) = report.cells
    assert ([line.verdict for line in cell.lines], report.verdict) == ([verdict], verdict)
    assert cell.levels == ()


def fleet(path: Path, levels: list[int], first: int = 1) -> list[str]:
    return [
        str(execution(path / f"db{number}", {"oltp": at(level, f"db{number}")}, (1, -1)))
        for number, level in enumerate(levels, start=first)
    ]


@dataclass(frozen=True)
class Fleet:
    """Three instances with two runs each: equal to half a percent, and different by six percent."""

    alike: list[str]
    unlike: list[str]
    reader: Reader


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    path = tmp_path_factory.mktemp("fleet")
    alike, unlike = fleet(path / "alike", [1000, 1004, 996]), fleet(path / "unlike", [1000, 1060, 940])
    return Fleet(alike, unlike, Reader())


def test_the_type_is_judged_by_the_spread_between_three_or_more_instances(
    old: Fleet, tmp_path: Path, golden: Golden
) -> None:
    new = fleet(tmp_path / "new", [1001, 1005, 995, 999], first=4)
    spread = fleet(tmp_path / "spread", [1010, 950, 1060], first=4)
    single = [str(execution(tmp_path / "db4", {"oltp": at(800, "db4")}))]
    themselves = asked(about="instances")
    report = qualify(old.alike, new, asked(), old.reader)
    texts = [shown("a type", report)]
    for name, baseline, candidate in (("spread", old.unlike, spread), ("one instance", old.alike, single)):
        texts.append(shown(name, qualify(baseline, candidate, asked(), old.reader)))
        texts.append(shown(f"{name}, itself", qualify(baseline, candidate, themselves, old.reader)))
    golden("qualify_types.txt", "".join(texts))
    above = str(Path(old.alike[0]).parent)
    assert qualify([above], [f"{tmp_path}/new/db*:oltp"], asked(), old.reader).cells == report.cells


def test_executions_of_one_host_are_one_instance(base: Base, tmp_path: Path) -> None:
    again = [str(execution(tmp_path / f"x{k}", {"oltp": at(1000 + k, "db2")}, (1, -1))) for k in range(3)]
    changed(tmp_path / "x2", "fingerprint.json", lambda f: f.update(boot_id="another"))
    report = base.judge(again, asked())
    assert report.about == "instances"
    assert [machine.runs for machine in report.parties[1][2]] == [6]
    assert any("db2 was booted 2 times" in note for note in report.notes)
    by = {how: base.judge(again, asked(instances_by=how)) for how in ("boot", "execution")}
    assert [len(line.parties[1][2]) for line in by.values()] == [2, 3]
    changed(tmp_path / "x2", "fingerprint.json", lambda f: f.update(machine_id="a second one"))
    report = base.judge(again, asked())
    assert [machine.runs for machine in report.parties[1][2]] == [6], "the others may be of this machine too"
    for place in ("x0", "x1"):
        changed(tmp_path / place, "fingerprint.json", lambda f: f.update(machine_id="another"))
    report = base.judge(again, asked())
    assert [machine.name for machine in report.parties[1][2]] == ["db2#1", "db2#2"]
    assert report.about == "type"
