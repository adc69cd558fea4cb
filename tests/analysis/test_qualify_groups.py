"""Groups of hosts: verdicts about a type, and the identity of an instance."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from loadprint.commands.qualify.measure import Reader
from loadprint.commands.qualify.qualification import qualify
from qualifying import Base, asked, at, changed, execution, line


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Base:
    return Base(execution(tmp_path_factory.mktemp("base") / "old", {"oltp": at(1000)}), Reader())


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
    return Fleet(
        fleet(path / "alike", [1000, 1004, 996]), fleet(path / "unlike", [1000, 1060, 940]), Reader()
    )


def test_three_instances_a_side_tell_about_the_type(old: Fleet, tmp_path: Path) -> None:
    new = fleet(tmp_path / "new", [1001, 1005, 995, 999], first=4)
    report = qualify(old.alike, new, asked(), old.reader)
    assert (report.about, report.verdict) == ("type", "pass")
    assert [len(machines) for _, _, machines in report.parties] == [3, 4]
    assert (line(report).baseline.units, line(report).candidate.units) == (3, 4)
    above = str(Path(old.alike[0]).parent)
    assert qualify([above], [f"{tmp_path}/new/db*:oltp"], asked(), old.reader).cells == report.cells


def test_the_spread_between_instances_is_what_counts_for_the_type(old: Fleet, tmp_path: Path) -> None:
    new = fleet(tmp_path / "new", [1010, 950, 1060], first=4)
    report = qualify(old.unlike, new, asked(), old.reader)
    assert report.verdict == "inconclusive"
    assert "more instances per side would decide" in line(report).reason
    themselves = qualify(old.unlike, new, asked(about="instances"), old.reader)
    assert themselves.verdict == "pass"  # exactly these six, on average


def test_fewer_than_three_instances_give_no_verdict_about_the_type(old: Fleet, tmp_path: Path) -> None:
    new = [str(execution(tmp_path / "db4", {"oltp": at(800, "db4")}))]
    report = qualify(old.alike, new, asked(), old.reader)
    assert report.verdict == "inconclusive"
    assert report.reasons[:2] == (
        "no verdict about the type: 3 baseline and 1 candidate instances, three or more per side needed",
        "these instances themselves: fail",
    )
    assert qualify(old.alike, new, asked(about="instances"), old.reader).verdict == "fail"


def test_executions_of_one_host_are_one_instance(base: Base, tmp_path: Path) -> None:
    again = [str(execution(tmp_path / f"x{k}", {"oltp": at(1000 + k, "db2")}, (1, -1))) for k in range(3)]
    changed(tmp_path / "x2", "fingerprint.json", lambda f: f.update(boot_id="another"))
    report = base.judge(again, asked())
    assert report.about == "instances"
    assert [machine.runs for machine in report.parties[1][2]] == [6]
    assert any("db2 was booted 2 times" in note for note in report.notes)
    by = {how: base.judge(again, asked(instances_by=how)) for how in ("boot", "execution")}
    assert [len(each.parties[1][2]) for each in by.values()] == [2, 3]
    changed(tmp_path / "x2", "fingerprint.json", lambda f: f.update(machine_id="a second one"))
    report = base.judge(again, asked())
    assert [machine.runs for machine in report.parties[1][2]] == [6], "the others may be of this machine too"
    for place in ("x0", "x1"):
        changed(tmp_path / place, "fingerprint.json", lambda f: f.update(machine_id="another"))
    report = base.judge(again, asked())
    assert [machine.name for machine in report.parties[1][2]] == ["db2#1", "db2#2"]
    assert report.about == "type"
