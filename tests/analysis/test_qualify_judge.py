"""Non-inferiority of rows against known truth, and mistakes in a specification."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from loadprint.commands.qualify import non_inferiority, spec
from loadprint.commands.qualify.non_inferiority import PartyLevel, RowJudgement
from loadprint.errors import InputError
from loadprint.statistics.stopping import FIRST_LOOK, WIDER
from numpy.typing import NDArray
from reads import known
from scipy.stats import nct, t

TRIALS = 4000
TOLERANCE = 0.03


def runs(random: np.random.Generator, level: float, shape: tuple[int, ...], cv: float) -> NDArray[np.float64]:
    drawn: NDArray[np.float64] = level * np.exp(random.normal(0.0, cv, shape))
    return drawn


def level_of(values: Sequence[Sequence[float]], *, by_precision: bool = False) -> PartyLevel:
    return known(non_inferiority.of_runs(values, by_precision=by_precision))


def judged(
    baseline: NDArray[np.float64], candidate: NDArray[np.float64], better: str = "higher"
) -> RowJudgement:
    sides = [level_of([list(values)]) for values in (baseline, candidate)]
    return non_inferiority.judge(sides[0], sides[1], TOLERANCE, better, 0.95)


def share(verdicts: Sequence[str], verdict: str) -> float:
    return list(verdicts).count(verdict) / len(verdicts)


@pytest.mark.parametrize("repeats", [3, 5, 10])
@pytest.mark.parametrize("better", ["higher", "lower"])
def test_a_candidate_just_at_the_tolerance_passes_in_one_of_twenty(repeats: int, better: str) -> None:
    random = np.random.default_rng(11)
    worse = non_inferiority.limit_of(TOLERANCE, better)
    verdicts = [
        judged(
            runs(random, 700, (repeats,), 0.02), runs(random, 700 * worse, (repeats,), 0.02), better
        ).verdict
        for _ in range(TRIALS)
    ]
    assert share(verdicts, "pass") < 0.05 + 3 * math.sqrt(0.05 * 0.95 / TRIALS)
    assert share(verdicts, "fail") < 0.05 + 3 * math.sqrt(0.05 * 0.95 / TRIALS)


@pytest.mark.parametrize(("repeats", "cv"), [(3, 0.005), (3, 0.01), (10, 0.02)])
def test_an_equal_candidate_passes_as_often_as_the_noncentral_t_says(repeats: int, cv: float) -> None:
    random = np.random.default_rng(12)
    verdicts = [
        judged(runs(random, 50, (repeats,), cv), runs(random, 50, (repeats,), cv)).verdict
        for _ in range(TRIALS)
    ]
    freedom = 2 * (repeats - 1)
    shift = -math.log(1 - TOLERANCE) / (cv * math.sqrt(2 / repeats))
    power = float(nct.sf(t.ppf(0.95, freedom), freedom, shift))
    # that is the power of Student's t; Welch's t, without equal variances, has slightly less
    assert power - 0.06 < share(verdicts, "pass") < power + 0.02
    assert share(verdicts, "fail") < 0.005


def type_of(random: np.random.Generator, level: float, instances: int) -> NDArray[np.float64]:
    """Four runs of each instance; instances differ by 2 %, runs of one by 0.5 %."""
    return runs(random, level, (instances, 1), 0.02) * runs(random, 1.0, (instances, 4), 0.005)


@pytest.mark.parametrize("instances", [3, 6])
def test_a_type_just_at_the_tolerance_passes_in_one_of_twenty_and_runs_as_units_would_not_do(
    instances: int,
) -> None:
    random = np.random.default_rng(13)
    by_instance, by_run = [], []
    for _ in range(TRIALS):
        old, new = type_of(random, 100, instances), type_of(random, 97, instances)
        sides = [known(non_inferiority.of_instances(values.tolist())) for values in (old, new)]
        by_instance.append(non_inferiority.judge(sides[0], sides[1], TOLERANCE, "higher", 0.95).verdict)
        by_run.append(judged(old.ravel(), new.ravel()).verdict)
    assert share(by_instance, "pass") < 0.05 + 3 * math.sqrt(0.05 * 0.95 / TRIALS)
    assert share(by_run, "pass") > 0.12  # what taking runs for independent ones would let through


def test_these_instances_are_judged_by_the_variance_of_their_runs() -> None:
    # the candidate's instances differ, the runs of each hardly: these two are known to be equal on average
    level = level_of([[100.0, 100.1, 99.9], [110.0, 110.1, 109.9]])
    single = level_of([[104.9, 104.8, 105.0]])
    assert (level.freedom, level.units) == (4, 6)
    starts = [[100.0 + start for start in range(FIRST_LOOK + 1)]]
    one, wide = (level_of(starts, by_precision=by) for by in (False, True))
    assert wide.variance == pytest.approx(WIDER**2 * one.variance)
    result = non_inferiority.judge(single, level, TOLERANCE, "higher", 0.95)
    assert (result.verdict, result.is_better) == ("pass", False)
    assert non_inferiority.of_instances([[100.0, 100.1], [110.0]]) is None
    assert non_inferiority.of_runs([[100.0, 101.0]], by_precision=False) is None


def test_more_repeats_that_would_decide_do_decide() -> None:
    random = np.random.default_rng(14)
    undecided = 0
    for _ in range(200):
        old, new = runs(random, 60, (3,), 0.02), runs(random, 60, (3,), 0.02)
        result = judged(old, new)
        if result.more is None:
            continue
        undecided += 1
        assert result.verdict == "undecided"
        assert result.ratio is not None
        longer = [
            PartyLevel(side.mean, side.variance * 3 / n, side.freedom + result.more, n)
            for side in (level_of([list(values)]) for values in (old, new))
            for n in (side.units + result.more,)
        ]
        assert non_inferiority.judge(longer[0], longer[1], TOLERANCE, "higher", 0.95).verdict != "undecided"
    assert undecided > 50


def test_equal_values_pass_and_are_not_called_better() -> None:
    same = np.full(3, 7.0)
    result = judged(same, same)
    assert (result.verdict, result.is_better, result.ratio) == ("pass", False, 1.0)
    assert judged(same, same * 1.01).is_better
    assert judged(same, same * 0.96).verdict == "fail"
    assert judged(same, same * 1.04, "lower").verdict == "fail"
    assert judged(same, same * 1.03, "lower").verdict == "pass"  # exactly the tolerance


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "rows: {operations: 3 %}\nconfidnce: 0.9\n",
            ':2: unknown key "confidnce"; did you mean "confidence"?',
        ),
        ("rows:\n  operations: 30\n", ':2: rows.operations.tolerance: "30" is not a share'),
        ("rows:\n  operations:\n    tolerance: 3 %\n    bettr: lower\n", ':4: unknown key "bettr"'),
        ("", "not a mapping of keys"),
        ("rows: [", "not YAML"),
        (
            "rows: {a: 1 %}\nprice: {baseline: 1, candidate: -2, currency: EUR}\n",
            ":2: price.candidate: Input should be greater than 0",
        ),
    ],
)
def test_mistakes_in_a_specification_are_reported_with_their_line(
    tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "spec.yml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as error:
        spec.load(path)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_the_built_in_specification_is_a_file_that_can_be_read_back(tmp_path: Path) -> None:
    path = tmp_path / "spec.yml"
    path.write_text(spec.default_text(), encoding="utf-8")
    assert spec.load(path) == spec.load(None)
    assert len(spec.load(None).rows) == 8
    assert spec.load(None).rows["latency_p99"].judged_at("latency_p99") == "equal-load"
    assert spec.load(None).rows["operations"].judged_at("operations") == "saturation"


def test_latency_is_judged_at_equal_load_whatever_is_asked() -> None:
    asked = spec.RowSpec.model_validate({"tolerance": "5 %", "at": "saturation"})
    assert asked.judged_at("latency_p99") == "equal-load"
    assert asked.judged_at("disk_vda_await") == "saturation"
