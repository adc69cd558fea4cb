"""Campaigns whose sides alternate: what is refused before anything runs, starts, orders of slices."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
import yaml
from damage import ask
from loadprint.commands.campaign.campaign_file import load
from loadprint.commands.campaign.execution import Plan, open_execution, order, starts
from loadprint.statistics.orders import one_in, orders
from reads import known


@pytest.fixture
def turns(tmp_path: Path) -> Path:
    """Two equal sides."""
    side = {"workload": "oltp_read_write", "data": "oltp", "threads": 2}
    campaign = {
        "name": "turns",
        "title": "two sides",
        "reference": "a",
        "design": "alternate",
        "starts": 3,
        "phases": {"warmup": "2s"},
        "warm": {"promise": "none"},
        "server": {"buffer_pool_size": "64M", "redo_capacity": "64M", "performance_schema": False},
        "data": {"oltp": {"workload": "oltp_read_write", "size": "200M"}},
        "sides": {"a": side, "b": side},
    }
    path = tmp_path / "turns.yml"
    path.write_text(yaml.safe_dump(campaign, sort_keys=False), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("slices.length=0.1s", "slices.length: 0.1s is shorter than the guard plus 0.2s for the reads"),
        ("slices.length=21s", "slices.length: each of 2 sides would be frozen for 21s"),
        ("slices.seconds=3h", "turns in a start, more than the limit of 5,000; use more starts"),
        ("repeats=3", "repeats: sides that alternate have `starts`"),
        ("phases.measure=20s", "phases.measure: sides that alternate have `slices.seconds`"),
        ("sides.a.events=100", "sides.a.events: a side that alternates cannot end by itself"),
        ("state.data=carried", "state.data: sides cannot alternate, because each start has fresh data"),
        ("mode=equal-load", "mode: sides cannot alternate"),
        ("precision=5", 'precision: "5" is not a share; write it as 5% or 0.05'),
        ("precision=5 percent", 'precision: "5 percent" is not a share; write it as 5% or 0.05'),
        ("precision=5%", "starts: `precision` adds starts until the answer is precise"),
        ("recorder.exporters=[node_exporter]", "recorder.exporters: sides cannot alternate"),
        ("design=sequential", "repeats: missing; add it, or use `design: alternate`"),
    ],
)  # fmt: skip
def test_sides_that_cannot_alternate_are_refused_when_planned(turns: Path, override: str, says: str) -> None:
    assert says in ask("campaign", turns, "--set", override).line


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("within=5min", "within: 5min holds 2 starts of about 150s; an interval needs 3"),
        ("recorder.probes=[dsk]", 'recorder.probes: no probe "dsk"; did you mean "disk"?'),
        ("rows=[statements]", 'rows: no row "statements"; did you mean "client statements"?'),
        ("design=sequential", "precision: only sides that alternate add starts; remove it"),
    ],
)
def test_a_precision_that_cannot_be_looked_at_is_refused(turns: Path, override: str, says: str) -> None:
    turns.write_text(turns.read_text().replace("starts: 3", "precision: 5%"))
    assert says in ask("campaign", turns, "--set", override).line


def test_the_plan_of_a_precision_has_the_starts_that_may_fit(turns: Path) -> None:
    turns.write_text(turns.read_text().replace("starts: 3", "precision: 5%\nwithin: 12min"))
    planned = ask("campaign", turns, "--format", "json").document
    assert len(planned["runs"]) == 2 * 8  # half as many again as 720 s hold starts of 150 s
    text = ask("campaign", turns).out
    assert "5 or more of all sides, which alternate" in text
    assert "until client statements and server CPU per statement are known to 5 %, within 12min" in text


def test_a_turn_on_two_hosts_is_longer_than_its_unmeasured_end(turns: Path) -> None:
    short, hosts = ("--set", "slices.length=0.4s"), ("--host", "server=db", "--host", "load=client")
    assert (
        "slices.length: of 0.4s on two hosts 0.25s are not measured"
        in ask("campaign", turns, *short, *hosts).line
    )
    assert "3 of all sides, which alternate" in ask("campaign", turns, *hosts).out
    assert "3 of all sides, which alternate" in ask("campaign", turns, *short).out


def test_a_start_that_is_not_complete_is_made_again_with_all_its_sides(turns: Path, tmp_path: Path) -> None:
    campaign = load(turns)
    plan = open_execution(campaign, "a" * 64, tmp_path / "runs")
    assert sorted(Counter(run["block"] for run in plan.document["runs"]).items()) == [(1, 2), (2, 2), (3, 2)]
    assert [len(start) for start in starts(plan.document, plan.todo)] == [2, 2, 2]
    directory = known(plan.directory)
    for run in [*starts(plan.document, plan.todo)[0], "b2-a-r2"]:
        (directory / run).mkdir()
        (directory / run / "run.json").write_text(json.dumps({"status": "complete"}), encoding="utf-8")
    resumed: Plan = open_execution(campaign, "a" * 64, tmp_path / "runs")
    assert {frozenset(start) for start in starts(resumed.document, resumed.todo)} == {
        frozenset(f"b{block}-{side}-r{block}" for side in "ab") for block in (2, 3)
    }
    assert not (directory / "b2-a-r2").exists()


def test_the_plan_says_how_the_time_is_spent(turns: Path) -> None:
    text = ask("campaign", turns).out
    assert "3 of all sides, which alternate: 2 s warm-up and 32 slices of 1.9 s each" in text


@pytest.mark.parametrize("count", [2, 3, 5])
def test_each_side_has_each_position_as_often_in_random_order(count: int) -> None:
    names = [f"side{number}" for number in range(count)]
    drawn = orders(names, 20 * count, Random(7))
    assert all(sorted(order) == names for order in drawn)
    places = Counter((name, place) for order in drawn for place, name in enumerate(order))
    assert set(places.values()) == {20}
    assert drawn == orders(names, 20 * count, Random(7))
    assert drawn != orders(names, 20 * count, Random(8))
    # not in one fixed rotation
    assert len({(one[-1], other[0]) for one, other in pairwise(drawn)}) > count


def test_the_runs_of_a_start_have_the_positions_of_all_rounds(turns: Path) -> None:
    runs = order(load(turns), 3)
    for block in (1, 2, 3):
        of_start = [run["positions"] for run in runs if run["block"] == block]
        assert {frozenset(positions) for positions in zip(*of_start, strict=True)} == {frozenset({1, 2})}
        assert len(of_start[0]) == load(turns).rounds
        assert Counter(of_start[0]) == {1: 16, 2: 16}
    assert len({tuple(run["positions"]) for run in runs}) > 2
    for run in runs:
        # also of those in the first position
        first = Counter(zip(run["positions"], run["probed"], strict=True))
        assert all(abs(first[position, True] - 16 / 4) < 2 for position in (1, 2)), first
        assert sum(run["probed"]) == 8


@pytest.mark.parametrize("number", [2, 3, 4])
@pytest.mark.parametrize("kinds", ["aaaa", "abababab", "aaab", "abc", ""])
def test_a_share_of_the_places_is_drawn_and_of_each_kind(kinds: str, number: int) -> None:
    drawn = [one_in(number, kinds, Random(seed)) for seed in range(40)]
    for chosen in drawn:
        assert abs(sum(chosen) - len(kinds) / number) < 1
        for kind in set(kinds):
            own = [is_chosen for name, is_chosen in zip(kinds, chosen, strict=True) if name == kind]
            assert abs(sum(own) - len(own) / number) < 1
    assert len({tuple(chosen) for chosen in drawn}) > 1 or not kinds
