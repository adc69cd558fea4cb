"""Did a side settle? The trend of operations a second over the window, of each repeat and of all together.

Warm is a state (warm.py); this is what remains to be seen in the series itself. A side that never settled is
shown and carries no verdict.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from loadprint import numbers
from loadprint.metrics.gather import Measured
from loadprint.statistics.trend import MIN_SAMPLES, Trend, mser5, trend

GROWING = ("arm_insert",)  # the data grow with the work: compared at equal work, no trend test
LARGEST_HIDDEN = 0.10  # a window that could hide such a drift is said to be too short
ALIKE = 1.1  # steps of series that differ by less are the same
CUT = 0.2  # share of a series that MSER-5 may cut before it is told


def grows(run: Measured) -> bool:
    """Whether a run is exempt from the trend test: its data grow, or its work is a fixed number of events."""
    workload = str((run.run.result or {}).get("workload") or run.run.meta.get("workload") or "")
    options = (run.run.result or {}).get("options") or {}
    fixed = isinstance(options.get("events"), int) and options["events"] > 0
    return workload.startswith(GROWING) or fixed


def together(runs: Sequence[Measured]) -> Trend | None:
    """Trend of a side: what all its repeats do is seen better in their mean, second by second.

    None where a repeat is exempt or too short, or where their series have other steps.
    """
    series = [run.events_per_second for run in runs]
    length = min((len(each) for each in series), default=0)
    if length < MIN_SAMPLES or any(grows(run) for run in runs):
        return None
    if max(run.step_s for run in runs) > ALIKE * min(run.step_s for run in runs):
        return None
    return trend(np.array([each[:length] for each in series]))


def unsettled(name: str, runs: Sequence[Measured], found: Trend | None) -> str:
    """Why a side counts as never settled; empty when it settled, is exempt, or its series are too short.

    `found` is what `together` says of it. It never settled when the mean of its repeats drifts, or when more
    than half of the repeats do.
    """
    one = len(runs) == 1  # whose trend is that of all together
    alone = [
        (run, own)
        for run in runs
        if not grows(run) and (own := found if one else trend(run.events_per_second)) and own.drifts
    ]
    most = len(alone) * 2 > len(runs)
    if not most and not (found and found.drifts):
        return ""
    told = [f"{run.run.id} {numbers.change(own.worst[0], 0)}" for run, own in alone]
    told += [f"all repeats together {_told(found)}"] if found and found.drifts and len(runs) > 1 else []
    return f"{name} never settled (drift of operations/s over the window: {', '.join(told)}): no verdict"


def drift(runs: Sequence[Measured], found: Trend | None) -> str:
    """What is said of a side's drift by `together`, settled or not; empty where nobody can tell."""
    if runs and all(grows(run) for run in runs):
        return "no trend test: its data grow or its work is fixed"
    if found is None:
        return ""
    low, high = found.worst[1:]
    hidden = not found.drifts and max(-low, high) > LARGEST_HIDDEN
    return _told(found) + (", too short or too noisy to rule out 10 %" if hidden else "")


def transient(name: str, runs: Sequence[Measured]) -> str:
    """What MSER-5 would still cut from a long series; empty when it agrees that the window is steady."""
    cuts = [(run, mser5(run.events_per_second)) for run in runs if not grows(run)]
    late = [
        f"{run.run.id} {cut * run.step_s:.0f} s"
        for run, cut in cuts
        if cut and cut > CUT * len(run.events_per_second)
    ]
    return f"{name}: MSER-5 would drop the beginning of {', '.join(late)}" if late else ""


def _told(found: Trend) -> str:
    share, low, high = found.worst
    return f"{numbers.change(share, 0)} [{numbers.change(low, 0, '')}, {numbers.change(high, 0, '')}]"
