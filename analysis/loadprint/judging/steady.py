"""Tests whether a side settled: the trend of operations/s over the window, per repeat and of their mean.

warm.py checks the state of the server; this module checks the series. A side that never settled is shown
without a verdict.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from loadprint import numbers
from loadprint.metrics.gather import Measured
from loadprint.reading.time_series import phases
from loadprint.statistics.trend import MIN_SAMPLES, Trend, mser5, trend

GROWING = ("arm_insert",)  # its data grow with the work: no trend test
LARGEST_HIDDEN = 0.10  # a window that could hide such a drift is reported as too short
SAME_STEP = 1.1  # steps of series that differ by a smaller factor are the same
CUT = 0.2  # share of a series that MSER-5 may cut without a warning


def exempt(run: Measured) -> str:
    """Why a run is exempt from the trend test; empty if it is not."""
    workload = run.run.workload
    options = run.run.result.options
    fixed = isinstance(options.get("events"), int) and options["events"] > 0
    return "its tables grow" if workload.startswith(GROWING) else "its work is fixed" if fixed else ""


def together(runs: Sequence[Measured]) -> Trend | None:
    """Trend of the mean of a side's repeats, second by second, which has less noise than each repeat.

    None if a repeat is exempt or too short, or if the steps of the series differ.
    """
    series = [run.events_per_second for run in runs]
    length = min((len(curve) for curve in series), default=0)
    if length < MIN_SAMPLES or any(exempt(run) for run in runs):
        return None
    if max(run.step_s for run in runs) > SAME_STEP * min(run.step_s for run in runs):
        return None
    return trend(np.array([curve[:length] for curve in series]))


def unsettled(name: str, runs: Sequence[Measured], mean_trend: Trend | None) -> str:
    """Why a side counts as never settled; empty if it settled, is exempt, or its series are too short.

    A side never settled if the mean of its repeats drifts (`mean_trend`, by `together`), or if more than half
    of the repeats do.
    """
    one = len(runs) == 1  # whose trend is that of the mean
    drifting = [
        (run, own)
        for run in runs
        if not exempt(run) and (own := mean_trend if one else trend(run.events_per_second)) and own.drifts
    ]
    mean_drifts = mean_trend is not None and mean_trend.drifts
    if len(drifting) * 2 <= len(runs) and not mean_drifts:
        return ""
    texts = [f"{run.run.id} {numbers.change(own.worst[0], 0)}" for run, own in drifting]
    if mean_trend is not None and mean_drifts and len(runs) > 1:
        texts.append(f"mean of all repeats {numbers.change_within(*mean_trend.worst, places=0)}")
    return f"{name} never settled (drift of operations/s over the window: {', '.join(texts)}): no verdict"


def drift(runs: Sequence[Measured], mean_trend: Trend | None) -> str:
    """The drift of a side by `together`, settled or not; empty if there is no test."""
    if runs and all(exempt(run) for run in runs):
        return f"not tested: {exempt(runs[0])}"
    if any(run.run.turns for run in runs):
        return "not tested: it takes turns"
    if mean_trend is None:
        return ""
    low, high = mean_trend.worst[1:]
    hidden = not mean_trend.drifts and max(-low, high) > LARGEST_HIDDEN
    text = numbers.change_within(*mean_trend.worst, places=0)
    return f"{text}, too short or too noisy to rule out 10 %" if hidden else text


def lengthened(runs: Sequence[Measured], further_s: float | None) -> str:
    """What to change if the warm-up needs `further_s` seconds more; without a length if it is not known."""
    if further_s is None:
        return "lengthen warmup"
    spans = [span for run in runs for span in phases(run.run) if span.name == "warmup"]
    lengths = [span.end_s - span.begin_s for span in spans if span.end_s is not None]
    if not lengths:
        return f"lengthen warmup by {math.ceil(further_s)} s"
    return f"lengthen warmup to {math.ceil(max(lengths) + further_s)} s"


def settled_after(runs: Sequence[Measured]) -> float | None:
    """Seconds of the windows after which no repeat drifts, by MSER-5; None if that is not known."""
    for run in (run for run in runs if not exempt(run)):
        cut = mser5(run.events_per_second)
        rest = None if cut is None else trend(run.events_per_second[cut:])
        if rest is None or rest.drifts:
            return None
    return transient_s(runs)


def transient_s(runs: Sequence[Measured]) -> float | None:
    """The longest part of a series that MSER-5 would cut; None if none, or if it can be longer.

    MSER-5 searches the first half of a series: a minimum at its end is not the end of the transient.
    """
    longest = 0.0
    for run in (run for run in runs if not exempt(run)):
        cut = mser5(run.events_per_second) or 0
        if cut >= len(run.events_per_second) // 10 * 5 - 5:
            return None
        longest = max(longest, cut * run.step_s)
    return longest or None


def transient(name: str, runs: Sequence[Measured]) -> str:
    """The part of a long series that MSER-5 would cut; empty if by MSER-5 the window is steady."""
    cuts = [(run, mser5(run.events_per_second)) for run in runs if not exempt(run)]
    late = [
        f"{run.run.id} {cut * run.step_s:.0f} s"
        for run, cut in cuts
        if cut and cut > CUT * len(run.events_per_second)
    ]
    return f"{name}: MSER-5 would drop the beginning of {', '.join(late)}" if late else ""
