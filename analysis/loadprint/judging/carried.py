"""Judges whether it matters when a side that alternates had its turns: what others left, and the thaw."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from loadprint.metrics.gather import Measured
from loadprint.metrics.quantities import Quantities
from loadprint.metrics.turns import CONTRASTS
from loadprint.statistics import stats

LARGE = 0.01  # of the statements per second


def carried(names: Sequence[str], measured: Sequence[Sequence[Measured]]) -> tuple[str, str] | None:
    """The largest effect on any side of what carries over from one turn to the next, with a remedy.

    An effect is the difference between some of a side's turns and the others, the mean of its starts. Its
    interval is by the spread of the turns within the starts, because their order is drawn, and so wide that
    one of all effects of all sides excludes 0 by chance in a twentieth of tables.
    """
    level = 1 - (1 - stats.LEVEL) / (len(CONTRASTS) * len(names))
    found = [
        (effect, half, f"{name} has {{}} statements/s {words}", runs)
        for name, runs in zip(names, measured, strict=True)
        for contrast, words in CONTRASTS.items()
        for effect, half in effect_of(runs, contrast, level)
        if abs(effect) > max(half, math.log1p(LARGE))
    ]
    if not found:
        return None
    effect, half, text, runs = max(found, key=lambda each: abs(each[0]))
    low, high = sorted(100 * abs(math.expm1(effect + each)) for each in (-half, half))
    share = f"{100 * abs(math.expm1(effect)):.2g} % [{low:.2g}, {high:.2g}]"
    what = text.format(f"{share} {'more' if effect > 0 else 'fewer'}")
    return what, f"use slices.length: {_length_s(runs) + 1:g}s"


def effect_of(
    runs: Sequence[Measured], contrast: str, level: float = stats.LEVEL
) -> Iterator[tuple[float, float]]:
    """The mean effect of the starts, as a log, and half the width of its interval; none without a start."""
    found = [each for run in runs if (each := _effect(run.quantities, f"turns.{contrast}"))]
    if found:
        parts = [(variance / len(found) ** 2, freedom) for _, variance, freedom in found]
        error, freedom = stats.welch(*parts)
        yield sum(each for each, *_ in found) / len(found), stats.t_quantile(0.5 + level / 2, freedom) * error


def _effect(found: Quantities, name: str) -> tuple[float, float, float] | None:
    """An effect in one start, its variance, and the degrees of freedom of that."""
    of_start = [found.get(each) for each in (name, f"{name}.variance", f"{name}.freedom")]
    values = [each.rate for each in of_start if each]
    return (values[0], values[1], values[2]) if len(values) == len(of_start) else None


def _length_s(runs: Sequence[Measured]) -> float:
    """Seconds of the measured part of a turn."""
    slices = [each for run in runs for each in run.run.slices]
    return round(float(np.median([each.end_ns - each.measured_from_ns for each in slices])) / 1e9, 1)
