"""The fits of throughput by concurrency: other packages' results, known truth, and data that carry no law."""

from __future__ import annotations

import csv
import math
import warnings
from collections.abc import Sequence
from pathlib import Path

import lmfit
import numpy as np
import pytest
from loadprint.commands.usl import fit as fits
from loadprint.commands.usl.conclusions import judged
from loadprint.commands.usl.curves import usl
from loadprint.commands.usl.fit import Fit
from loadprint.commands.usl.models import fit_curve
from loadprint.errors import InputError

PUBLISHED = Path(__file__).parents[2] / "docs" / "published"
N = (1.0, 2, 4, 8, 16, 24, 32, 48, 64)
TRUTH = (1000.0, 0.04, 0.0004)


def fit(n: Sequence[float], x: Sequence[float], *, bounded: bool = True) -> Fit:
    return judged(fits.fit(n, x, bounded=bounded))


def read(name: str, column: str, at: str) -> tuple[list[float], list[float]]:
    with (PUBLISHED / name).open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    return [float(row[at]) for row in rows], [float(row[column]) for row in rows]


def test_the_r_packages_own_example() -> None:
    n, x = read("specsdm91.csv", "throughput", "load")
    result = fit(n, x)
    usl_fit = result.headline
    assert usl_fit.values == pytest.approx((89.995, 0.0277286, 0.000104365), rel=1e-5)
    # summary(usl.model) of the package: standard errors, and peak.scalability, limit.scalability
    errors = [parameter.error for parameter in usl_fit.parameters]
    assert errors == pytest.approx([14.2134894, 0.0091217, 0.0000199], rel=2e-3)
    assert usl_fit.peak == pytest.approx(96.5, abs=0.05)
    assert usl_fit.limit == pytest.approx(3245.6, abs=0.05)
    assert result.optimum == usl_fit.peak  # here the decline was measured
    assert result.terms == ("contention", "coherency")


@pytest.mark.parametrize("key", ["usl", "saturating"])
def test_lmfit_finds_the_same(key: str) -> None:
    """Parameters and their errors, R², AIC, and the interval of the curve."""
    n = np.repeat(np.array(N), 3)
    x = usl(n, TRUTH) + np.random.default_rng(0).normal(0, 120, len(n))
    ours = fit(n.tolist(), x.tolist()).model(key)
    if key == "usl":
        model = lmfit.Model(lambda n, rate, sigma, kappa: rate * n / (1 + (sigma + kappa * n) * (n - 1)))
        theirs = model.fit(x, n=n, rate=900, sigma=0.1, kappa=0.001)
    else:
        theirs = lmfit.Model(lambda n, a, b: a * (1 - np.exp(-n / b))).fit(x, n=n, a=9000, b=20)
    for ours_, theirs_ in zip(ours.parameters, theirs.params.values(), strict=True):
        assert ours_.value == pytest.approx(theirs_.value, rel=1e-4)
        assert ours_.error == pytest.approx(theirs_.stderr, rel=1e-3)
    assert ours.r2 == pytest.approx(theirs.rsquared)
    counted = len(ours.parameters) + 1
    small = 2 * counted * (counted + 1) / (len(n) - counted - 1)
    assert ours.aicc == pytest.approx(theirs.aic + 2 + small)
    far = np.array([20.0, 128, 1000])
    assert ours.half_width(far) == pytest.approx(theirs.eval_uncertainty(n=far, sigma=0.95), rel=1e-3)


def test_intervals_have_their_coverage() -> None:
    """Of 300 columns with known parameters, 95 % intervals hold them in 91 to 99 %."""
    rng = np.random.default_rng(3)
    n = np.repeat(np.array(N), 2)
    held = np.zeros(3)
    for _ in range(300):
        result = fit_curve("usl", n, usl(n, TRUTH) + rng.normal(0, 150, len(n)), bounded=True)
        held += [
            parameter.low is not None
            and parameter.high is not None
            and parameter.low <= true <= parameter.high
            for parameter, true in zip(result.parameters, TRUTH, strict=True)
        ]
    assert ((held / 300 > 0.91) & (held / 300 < 0.99)).all(), held / 300


def conclusions(result: Fit) -> str:
    return " | ".join(verdict.text for verdict in result.verdicts)


@pytest.mark.parametrize(
    ("x", "wanted"),
    [
        ([10 * n for n in N], "no limit is visible"),
        ([100 / n for n in N], "declines from N = 1 on"),
        ([5.0 for _ in N], "explains 0 % of the spread"),
        ([5 + math.sin(n) for n in N], "it supports no law"),
        ([n**1.2 for n in N], "σ is held at its bound 0"),
        ([1e-99 * n for n in N], "N"),
        ([1e99 / n for n in N], "N"),
        ([1.0, 1e9, 1, 1e9, 1, 1e9, 1, 1e9, 1], "it supports no law"),
    ],
)
def test_points_without_a_law_are_reported_without_warnings_of_numpy(x: Sequence[float], wanted: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = fit(N, x)
    assert wanted in conclusions(result)
    assert result.optimum is None


def test_bounds_can_be_lifted() -> None:
    x = [n**1.2 for n in N]
    held, free = fit(N, x).headline, fit(N, x, bounded=False).headline
    assert held.parameter("sigma").at_bound
    assert held.parameter("sigma").low is None
    assert free.failed or min(free.values[1:]) < 0


def test_too_few_points_are_refused_in_one_line() -> None:
    result = fit(N[:4], [10.0, 19, 34, 50])
    assert "4 different N are too few for three parameters; measure at" in result.headline.failed
    assert not result.model("amdahl").failed
    assert fit(N[:6], [10.0, 19, 34, 50, 60, 62]).hindcast is None
    assert "few" in {verdict.key for verdict in fit(N[:5], [10.0, 19, 34, 50, 60]).verdicts}
    with pytest.raises(InputError, match="2 different N are not a curve; measure at six or more"):
        fit([1, 1, 2, 2], [1, 1, 2, 2])
    for n, x in ((0, 5), (-1, 5), (math.nan, 5), (2, 0), (2, -3), (2, math.inf), (2, math.nan)):
        with pytest.raises(InputError, match=f"N = {n:g}.*leave the point out"):
            fit([1, 4, 8, 16, 32, n], [10, 20, 30, 40, 50, x])


def test_an_optimum_is_called_one_where_the_decline_was_measured() -> None:
    n = [*N, 96, 128, 192]
    x = usl(np.array(n), (1000.0, 0.03, 0.0005)) * np.array([1.01, 0.99] * 6)
    result = fit(n, x.tolist())
    assert result.optimum == pytest.approx(44, rel=0.1)
    assert result.terms == ("contention", "coherency")
    assert "optimum: N_max" in conclusions(result)


def test_repeats_tell_the_lack_of_fit() -> None:
    rng = np.random.default_rng(5)
    n = np.repeat(np.array(N), 4)
    good = usl(n, TRUTH) + rng.normal(0, 50, len(n))
    bent = good + 800 * np.sin(n / 8)
    fitting, missing = fit(n.tolist(), good.tolist()), fit(n.tolist(), bent.tolist())
    assert fitting.lack_of_fit is not None
    assert missing.lack_of_fit is not None
    assert fitting.lack_of_fit.p > 0.05
    assert fitting.lack_of_fit.spread == pytest.approx(50, rel=0.3)
    assert missing.lack_of_fit.p < 1e-6
    assert "lack of fit" in conclusions(missing)
    assert "lack of fit" not in conclusions(fitting)
