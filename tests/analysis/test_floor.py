"""The noise floor of an A/A: what it is, what it marks, and what it refuses."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from damage import ask
from loadprint.commands.operands import resolve
from loadprint.comparison import noise_floor
from loadprint.comparison.compare_sides import compare
from loadprint.errors import InputError
from loadprint.statistics import stats
from loadprint.tables.table import NoiseFloor, Table
from reads import known
from recordings import Host, make_execution

# the A/A: operations a second of three repeats of two sides that are the same
FIRST, SECOND = (100, 101, 102), (106, 107, 105)
PLAN = {"workload": "oltp_read_write", "threads": 4, "options": {"tables": 4}}


def execution(
    path: Path, plans: Mapping[str, Mapping[str, Any]] | None = None, **sides: tuple[int, ...]
) -> Path:
    hosts = {name: [Host(events=events) for events in reached] for name, reached in sides.items()}
    return make_execution(path, hosts, next(iter(sides)), plans)


def table_of(path: Path, noise: NoiseFloor | None = None) -> Table:
    result, reference = resolve([str(path)])
    return compare(result, reference, noise=noise)


def test_the_floor_is_the_largest_ratio_between_equals(tmp_path: Path) -> None:
    aa = execution(tmp_path / "aa", dict.fromkeys("abc", PLAN), a=FIRST, b=SECOND, c=(103, 102, 104))
    result = noise_floor.measured(aa)
    expected = math.log(stats.ratio(SECOND, FIRST, paired=False).centre)
    held = result.floors["operations"]
    assert held.log_ratio == pytest.approx(expected)
    assert held.difference == pytest.approx(5.0)
    assert result.floors["errors"].log_ratio is None  # 0 on every side


def test_a_ratio_inside_of_the_floor_is_marked_and_one_outside_is_not(tmp_path: Path) -> None:
    """Three percent with an interval that excludes 1; five were seen between equals."""
    aa = execution(tmp_path / "aa", {"a": PLAN, "b": PLAN}, a=FIRST, b=SECOND)
    near = execution(tmp_path / "near", old=(100, 100, 101), new=(103, 103, 104))
    far = execution(tmp_path / "far", old=(100, 100, 101), new=(110, 110, 111))
    plain = [row.versus[1] for path in (near, far) if (row := table_of(path).row("operations"))]
    assert [result.mark for result in plain if result] == ["better", "better"]
    outside = known(known(table_of(far, noise_floor.measured(aa)).row("operations")).versus[1])
    assert (outside.mark, outside.notes) == ("better", ())
    answer = ask("compare", near, "--noise", aa, "--format", "json")
    row, document = answer.rows["operations"], answer.document
    assert row["floor"]["log_ratio"] == pytest.approx(math.log(106 / 101), rel=1e-3)
    inside = row["versus"][1]
    assert inside["mark"] == "~"
    assert "A/A" in document["footnotes"][inside["notes"][-1] - 1]
    assert any(line.startswith(f"noise floor: A/A {aa} (a × 3 b × 3 repeats)") for line in document["method"])


def test_an_a_a_against_itself_has_no_row_called_different(tmp_path: Path) -> None:
    aa = execution(tmp_path / "aa", {"a": PLAN, "b": PLAN}, a=FIRST, b=SECOND)
    table = table_of(aa, noise_floor.measured(aa))
    marks = {result.mark for row in table.rows for result in row.versus if result}
    assert marks <= {"=", "~", ""}


@pytest.mark.parametrize(
    ("plans", "said"),
    [
        ({"a": PLAN, "b": PLAN | {"threads": 8}}, "a and b differ in `threads`"),
        ({"a": PLAN, "b": PLAN | {"options": {"tables": 5}}}, "a and b differ in `options`"),
    ],
)
def test_sides_of_another_configuration_are_no_a_a(
    tmp_path: Path, plans: Mapping[str, Mapping[str, Any]], said: str
) -> None:
    with pytest.raises(InputError) as refused:
        noise_floor.measured(execution(tmp_path / "x", plans, a=FIRST, b=SECOND))
    assert said in str(refused.value)


def test_a_server_that_was_set_otherwise_is_no_a_a(tmp_path: Path) -> None:
    sides = {
        "a": [Host(events=events) for events in FIRST],
        "b": [Host(events=events, variables={"innodb_flush_log_at_trx_commit": "2"}) for events in SECOND],
    }
    aa = make_execution(tmp_path / "aa", sides, "a", {"a": PLAN, "b": PLAN})
    assert "ran under different configurations" in ask("compare", aa, "--noise", aa).line


def test_one_side_or_no_execution_is_no_a_a(tmp_path: Path) -> None:
    alone = execution(tmp_path / "x", a=FIRST)
    for path, said in ((alone, "one side only"), (alone / "b1-a-r1", "no execution.json")):
        with pytest.raises(InputError) as refused:
            noise_floor.measured(path)
        assert said in str(refused.value)
