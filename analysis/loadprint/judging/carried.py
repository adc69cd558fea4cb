"""Judges whether it matters when a side that alternates had its turns: what others left, and the thaw."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from loadprint.metrics.gather import Measured
from loadprint.metrics.turns import CONTRASTS
from loadprint.statistics import stats

LARGE = 0.01  # of the statements per second


def carried(name: str, runs: Sequence[Measured], sides: int) -> Iterator[tuple[str, str]]:
    """What carries over into the turns of a side, each with a remedy; `sides` is their number.

    An effect is the difference between some of its turns and the others in a start. Its interval is over the
    starts, and so wide that one of all effects of all sides excludes 0 by chance in a twentieth of tables.
    """
    for contrast, words in CONTRASTS.items():
        found = [each.rate for run in runs if (each := run.quantities.get(f"turns.{contrast}"))]
        if len(found) < stats.MIN_REPEATS:
            continue
        effect = stats.t_interval(found, level=1 - (1 - stats.LEVEL) / (len(CONTRASTS) * sides))
        if effect.low is None or effect.high is None or effect.low <= 0 <= effect.high:
            continue
        if abs(effect.centre) > math.log1p(LARGE):
            low, high = sorted(100 * abs(math.expm1(bound)) for bound in (effect.low, effect.high))
            more = "more" if effect.centre > 0 else "fewer"
            share = f"{100 * abs(math.expm1(effect.centre)):.2g} % [{low:.2g}, {high:.2g}]"
            yield (
                f"{name} has {share} {more} statements/s {words}",
                f"use slices.length: {_length_s(runs) + 1:g}s",
            )


def _length_s(runs: Sequence[Measured]) -> float:
    """Seconds of the measured part of a turn."""
    slices = [each for run in runs for each in run.run.slices]
    return round(float(np.median([each.end_ns - each.measured_from_ns for each in slices])) / 1e9, 1)
