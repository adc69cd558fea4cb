"""Judges whether it matters when a side that alternates had its turns: what others left, and the thaw."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from loadprint.metrics.gather import Measured
from loadprint.metrics.turns import CONTRASTS
from loadprint.statistics import stats

LARGE = 0.01  # of the statements per second


def carried(names: Sequence[str], measured: Sequence[Sequence[Measured]]) -> tuple[str, str] | None:
    """The largest effect on any side of what carries over from one turn to the next, with a remedy.

    An effect is the difference between some of a side's turns and the others, the mean of its starts. Its
    interval is by the spread of the turns within the starts, because their order is drawn, and so wide that
    one of all effects of all sides excludes 0 by chance in a twentieth of tables. All of it must be above
    LARGE: what a server does once a second keeps its place in the turns of a start, by which the first
    seconds of equal servers differ, and which this spread does not contain.
    """
    level = 1 - (1 - stats.LEVEL) / (len(CONTRASTS) * len(names))
    effects = [
        (effect, half, f"{name} has {{}} statements/s {words}", runs)
        for name, runs in zip(names, measured, strict=True)
        for contrast, words in CONTRASTS.items()
        for effect, half in filter(None, [effect_of(runs, contrast, level)])
        if abs(effect) - half > math.log1p(LARGE)
    ]
    if not effects:
        return None
    effect, half, text, runs = max(effects, key=lambda effect: abs(effect[0]))
    low, high = sorted(100 * abs(math.expm1(effect + bound)) for bound in (-half, half))
    share = f"{100 * abs(math.expm1(effect)):.2g} % [{low:.2g}, {high:.2g}]"
    what = text.format(f"{share} {'more' if effect > 0 else 'fewer'}")
    return what, f"use slices.length: {_length_s(runs) + 1:g}s"


def effect_of(
    runs: Sequence[Measured], contrast: str, level: float = stats.LEVEL
) -> tuple[float, float] | None:
    """The mean effect of the starts, as a log, and half the width of its interval; None without a start."""
    name = f"turns.{contrast}"
    starts = [run.quantities.values for run in runs if name in run.quantities.values]
    if not starts:
        return None
    number = len(starts)
    error, freedom = stats.welch(
        *((of[f"{name}.variance"].rate / number**2, of[f"{name}.freedom"].rate) for of in starts)
    )
    mean = sum(of[name].rate for of in starts) / number
    return mean, stats.t_quantile(0.5 + level / 2, freedom) * error


def _length_s(runs: Sequence[Measured]) -> float:
    """Seconds of the measured part of a turn."""
    slices = [turn for run in runs for turn in run.run.slices]
    return round(float(np.median([turn.end_ns - turn.measured_from_ns for turn in slices])) / 1e9, 1)
