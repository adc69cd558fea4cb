"""Within-run noise and plans in a table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from loadprint.commands.operands import resolve
from loadprint.comparison.compare_sides import compare
from loadprint.rendering import render_json
from loadprint.statistics import stats
from loadprint.tables.table import Table
from recordings import Host, make_execution


def table_of(path: Path, a: list[int], b: list[int]) -> Table:
    """Two sides whose repeats reach the given operations a second."""
    sides = {name: [Host(events=events) for events in reached] for name, reached in (("a", a), ("b", b))}
    result, reference = resolve([str(make_execution(path, sides, "a"))])
    return compare(result, reference)


def test_an_undecided_ratio_says_how_many_more_repeats(tmp_path: Path) -> None:
    a, b = [100, 104, 97], [103, 101, 106]
    table = table_of(tmp_path / "x", a, b)
    (plan,) = table.plans
    assert plan.row == "operations"
    assert plan.more == stats.repeats_to_decide(b, a, paired=True)
    ratio = stats.ratio(b, a, paired=True).centre
    assert plan.apart == pytest.approx(ratio - 1)
    assert any(line.startswith(f"b: {plan.more} more repeats per side would detect") for line in table.method)
    assert json.loads(render_json.render(table))["plans"][0]["more"] == plan.more


def test_a_decided_ratio_needs_no_plan(tmp_path: Path) -> None:
    assert table_of(tmp_path / "x", [100, 101, 102], [200, 201, 202]).plans == ()


def test_one_repeat_can_only_hope(tmp_path: Path) -> None:
    """By what the seconds show two more repeats are the least: runs differ by more than that."""
    table = table_of(tmp_path / "x", [100], [103])
    (plan,) = table.plans
    assert (plan.more, plan.basis) == (2, "within runs")
    assert any("at best" in line for line in table.method)
    assert 0 < plan.apart < 0.1


def test_the_noise_of_each_side_stands_above_the_table(tmp_path: Path) -> None:
    table = table_of(tmp_path / "x", [100, 101, 102], [200, 201, 202])
    assert [head.noise is not None and 0 < head.noise < 0.01 for head in table.sides] == [True, True]
    said = dict(table.facts)["noise"]
    assert said.startswith("of operations/s within a run, for planning only: a ±0.")


def test_a_series_too_short_has_neither_noise_nor_drift(tmp_path: Path) -> None:
    sides = {name: [Host(seconds=5, events=100 + k) for k in (0, 1, 2)] for name in ("a", "b")}
    result, reference = resolve([str(make_execution(tmp_path / "x", sides, "a"))])
    table = compare(result, reference)
    assert [(head.noise, head.drift) for head in table.sides] == [(None, None)] * 2
    assert not {"noise", "drift"} & dict(table.facts).keys()
