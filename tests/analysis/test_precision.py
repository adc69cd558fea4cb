"""Campaigns that end when their answer is precise: the looks, and the coverage of their intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from damage import ask
from loadprint.commands.campaign.precision import Look, look
from loadprint.statistics.stats import LEVEL, more_repeats, t_quantile
from loadprint.statistics.stopping import FIRST_LOOK, wider
from programs import read
from recordings import Host, change_json, make_execution

PLANNED = 8  # starts
STATEMENTS = "client statements"


def execution(path: Path, starts: int, apart: float, **campaign: Any) -> Path:
    """An execution with some complete starts of two sides; the statements of one vary by this share."""
    of_b = [Host(statements=round(3000 * (1 + apart * (-1) ** start))) for start in range(starts)]
    asked = {
        "design": "alternate",
        "precision": 0.05,
        "within": 3600.0,
        "rows": [STATEMENTS],
        "starts": FIRST_LOOK,
    }
    sides = {"a": [Host() for _ in of_b], "b": of_b}
    make_execution(path, sides, "a", campaign=asked | campaign)
    more = [
        {"id": f"b{block}-{side}-r{block}", "block": block, "side": side, "repeat": block}
        for block in range(starts + 1, PLANNED + 1)
        for side in sides
    ]
    opened, runs = datetime.now(UTC).isoformat(), plan(path)["runs"] + more
    change_json(path / "execution.json", status="running", opened=opened, runs=runs)
    began = datetime.now(UTC).timestamp() - 60
    for run in path.glob("b*/run.json"):
        change_json(run, started_realtime_ns=int(began * 1e9))
    return path


def opened_before(path: Path, first_start: datetime) -> None:
    """Let the first start begin at this time, a minute after the execution was opened: it does not count."""
    change_json(path / "execution.json", opened=(first_start - timedelta(minutes=1)).isoformat())
    for run in path.glob("b1-*/run.json"):
        change_json(run, started_realtime_ns=int(first_start.timestamp() * 1e9))


def plan(path: Path) -> Mapping[str, Any]:
    return read(path / "execution.json")


def test_a_precise_answer_ends_a_campaign_and_its_plan(tmp_path: Path) -> None:
    directory = execution(tmp_path / "execution", FIRST_LOOK, apart=0.01)
    looked = look(directory)
    assert looked.answer == "client statements 1.5 ±1.4 %"
    assert looked.ended == "precision 1.4 % after 5 starts"
    assert len(plan(directory)["runs"]) == 2 * FIRST_LOOK
    assert plan(directory)["campaign"]["starts"] == FIRST_LOOK
    assert ["ended", looked.ended] in ask("compare", directory, "--format", "json").document["facts"]


def test_it_goes_on_before_the_first_look_and_while_the_answer_is_wide(tmp_path: Path) -> None:
    early = execution(tmp_path / "early", FIRST_LOOK - 1, apart=0.001)
    assert look(early) == Look("client statements 1.5 ±0.18 %, 4 of at least 5 starts")
    assert look(execution(tmp_path / "two", 2, apart=0.001)).answer == ""
    wide = execution(tmp_path / "wide", FIRST_LOOK, apart=0.1, within=600.0)
    looked = look(wide)
    assert looked.ended == ""
    assert looked.answer == "client statements 1.52 ±15 %, about 22 more starts for 5 %, 9 fit into 10min"
    assert len(plan(wide)["runs"]) == len(plan(early)["runs"]) == 2 * PLANNED


def test_the_end_of_the_time_ends_it_with_what_was_reached(tmp_path: Path) -> None:
    directory = execution(tmp_path / "execution", 4, apart=0.1, within=600.0)
    opened = datetime.now(UTC) - timedelta(seconds=550)
    opened_before(directory, opened)
    assert look(directory).ended == "within 10min: client statements ±20 %, about 26 more starts for 5 %"
    assert len(plan(directory)["runs"]) == 2 * 4
    # most starts failed
    few = execution(tmp_path / "few", 2, apart=0.1, within=540.0)
    opened_before(few, opened)
    assert look(few).ended == "within 9min: 2 complete starts"
    assert len(plan(few)["runs"]) == 2 * 2


def test_the_widest_row_of_the_widest_side_counts(tmp_path: Path) -> None:
    rows = [STATEMENTS, "server CPU per statement", "latency p95"]
    directory = execution(tmp_path / "execution", FIRST_LOOK, apart=0.01, rows=rows[:2])
    assert look(directory).ended.startswith("precision 1.4 %")
    lacking = execution(tmp_path / "lacking", FIRST_LOOK, apart=0.01, rows=[*rows, "rows written"])
    assert "rows written has no interval" in look(lacking).answer
    alone = execution(tmp_path / "alone", FIRST_LOOK, apart=0.01, rows=["rows written"])
    assert look(alone).answer.startswith("rows written has no interval")


def test_without_a_precision_a_look_ends_nothing(tmp_path: Path) -> None:
    directory = execution(tmp_path / "execution", FIRST_LOOK, apart=0.01, precision=None)
    assert look(directory) == Look("client statements 1.5 ±1.4 %")


def test_intervals_are_wider_if_starts_were_added(tmp_path: Path) -> None:
    for precision, factor in ((0.05, 1.12), (None, 1.0)):
        directory = execution(tmp_path / f"of {precision}", FIRST_LOOK + 1, apart=0.01, precision=precision)
        statements = ask("compare", directory, "--format", "json").rows["statements"]["versus"][1]
        logs = np.log([2970.0, 3030.0] * 3)
        half = t_quantile(0.5 + LEVEL / 2, FIRST_LOOK) * logs.std(ddof=1) / math.sqrt(FIRST_LOOK + 1)
        found = math.log(statements["high"] / statements["low"]) / 2
        assert found == pytest.approx(factor * half, rel=1e-3)


def test_more_starts_are_those_after_which_the_interval_is_narrow() -> None:
    for starts, spread in ((3, 0.02), (5, 0.06), (9, 0.2)):
        half = wider(starts) * t_quantile(0.5 + LEVEL / 2, starts - 1.0) * spread / math.sqrt(starts)
        least = max(starts + 1, FIRST_LOOK)
        more = more_repeats(half, starts, 0.05, paired=True, least=least, widened=wider)
        assert more is not None

        def at(count: int, spread: float = spread) -> float:
            return wider(count) * t_quantile(0.5 + LEVEL / 2, count - 1.0) * spread / math.sqrt(count)

        assert at(starts + more) <= 0.05
        assert starts + more == FIRST_LOOK or at(starts + more - 1) > 0.05 or more == 1
    assert more_repeats(9.0, 3, 0.001, paired=True) is None


def test_intervals_of_campaigns_that_end_when_they_are_precise_contain_the_ratio_as_often_as_they_say() -> (
    None
):
    campaigns, most = 10_000, 80
    random = np.random.default_rng(54)
    starts = np.arange(1, most + 1)
    quantiles = np.array([0.0, *(t_quantile(0.5 + LEVEL / 2, count - 1.0) for count in starts[1:])])
    for spread in (0.5, 0.8, 1.0, 1.5, 2.2, 2.7):  # between starts, of the half-width asked for
        ratios = random.standard_normal((campaigns, most)) * spread
        means = ratios.cumsum(1) / starts
        variances = ((ratios**2).cumsum(1) - starts * means**2) / np.maximum(1, starts - 1)
        factors = np.array([wider(int(count)) for count in starts])
        halves = factors * quantiles * np.sqrt(np.maximum(0, variances) / starts)
        precise = (halves <= 1) & (starts >= FIRST_LOOK)
        ends = np.where(precise.any(1), precise.argmax(1), most - 1)
        row = np.arange(campaigns)
        covered = (np.abs(means[row, ends]) <= halves[row, ends]).mean()
        assert 0.94 <= covered <= 0.96, spread
