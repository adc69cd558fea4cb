"""Computes the flame graphs of the sides: CPU time of the server by call path, per unit of work.

The call trees of all runs become one, by function names. A path's time in a run is its share of the samples,
multiplied by the sampled CPU time; sides are compared as the rows of the table are.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from loadprint.catalogue.files import unit_name
from loadprint.metrics import blocks
from loadprint.metrics.cpu_groups import function_name
from loadprint.metrics.gather import Measured
from loadprint.metrics.profile import Profile, share
from loadprint.reading.call_tree import NO_NODE, CallTree
from loadprint.reading.sides import Side
from loadprint.rendering.report_data import Flames, Floats, ReportPage
from loadprint.statistics import stats
from loadprint.statistics.stopping import wider
from loadprint.tables.table import Group, Table

ROLE = "server"
LEAST = 0.002  # of a side's CPU time, for a path to be drawn
DIGITS = 4
Path = tuple[str, bool, int]  # last function, whether it is code of the kernel, position of the caller's path
Ratio = tuple[float | None, float | None, float | None, bool]


def flames(sides: Sequence[Side], measured: Sequence[Sequence[Measured]], table: Table) -> Flames | None:
    """Flame graphs of all sides; None if some side has no samples, or no CPU time of probe `process`."""
    group = next((group for group in table.groups if group.key.startswith(f"cputime_{ROLE}_")), None)
    if group is None or len(group.rows) < 2:  # a single row has the reason why the others are missing
        return None
    runs = [run for side in measured for run in blocks.ordered(side)]
    profiles = [run.profile for run in runs if run.profile is not None and run.profile.samples.get(ROLE)]
    if len(profiles) < len(runs) or not (whole := _whole(group)):
        return None
    paths, counts = merged(profiles)
    cpu = np.array([value for side in whole for value in side])
    if not counts[0].all() or not cpu.all():
        return None
    starts = np.cumsum([0, *(len(side) for side in whole)])
    places = [list(range(begin, end)) for begin, end in pairwise(starts.tolist())]
    shares = counts / counts[0]
    kept = _noticeable(paths, shares, places)
    chosen = list(kept)
    names, kernel, parents = zip(*(paths[place] for place in chosen), strict=True)
    ratios: list[tuple[Ratio | None, ...]] = []
    for side, of_side in enumerate(places):
        paired = blocks.paired(measured[side], measured[table.base])
        pair = (of_side, places[table.base])
        alone = (None,) * len(chosen)
        factor = wider(len(of_side), by_precision=sides[side].by_precision)
        ratios.append(
            alone
            if side == table.base
            else ratios_of(counts[chosen], cpu, pair, paired=paired, factor=factor)
        )
    return Flames(
        group.key.rpartition("_")[2],
        table.base,
        names,
        tuple(kept.get(parent, NO_NODE) for parent in parents),
        kernel,
        np.stack([(shares[chosen] * cpu)[:, of_side].mean(axis=1) for of_side in places], axis=1),
        tuple(ratios),
    )


def context(report: ReportPage) -> dict[str, Any]:
    """Values of the template: the views as side, whether it is compared with the reference, and title."""
    if report.flames is None:
        return {}
    names = [side.name for side in report.sides]
    base = report.flames.base
    against = [
        (side, True, f"{name} against {names[base]}") for side, name in enumerate(names) if side != base
    ]
    alone = [(side, False, name) for side, name in enumerate(names)]
    return {"flame_views": [*against, *alone], "flame_work": unit_name(report.flames.work)}


def packed(report: ReportPage) -> dict[str, Any] | None:
    """Columns of the paths for the page's script; times in µs, per unit of work."""
    flames = report.flames
    if flames is None:
        return None
    places = {name: place for place, name in enumerate(dict.fromkeys(flames.names))}
    return {
        "work": unit_name(flames.work),
        "base": report.sides[flames.base].name,
        "names": list(places),
        "name": [places[name] for name in flames.names],
        "parent": flames.parents,
        "kernel": [int(kernel) for kernel in flames.kernel],
        "times": [[_rounded(time * 1e6) for time in side] for side in flames.times.T.tolist()],
        "ratios": [
            [ratio and (*map(_rounded, ratio[:3]), int(ratio[3])) for ratio in side] for side in flames.ratios
        ],
    }


def _rounded(value: Any) -> float | None:
    return None if value is None else float(f"{value:.{DIGITS}g}")


def _whole(group: Group) -> list[list[float]]:
    """Sampled CPU time of each run per unit of work, in s; empty if one is missing."""
    *_, not_sampled, total = group.rows
    sides = []
    for whole, rest in zip(total.cells, not_sampled.cells, strict=True):
        # samples of hardware cycles stand for all of it
        pairs = zip(whole.repeats, (value or 0.0 for value in rest.repeats), strict=True)
        sides.append([value - left for value, left in pairs if value is not None])
    return sides if [len(side) for side in sides] == [len(cell.repeats) for cell in total.cells] else []


def merged(profiles: Sequence[Profile]) -> tuple[list[Path], Floats]:
    """All paths of some runs from the root, callers first, and their samples float64[paths, runs]."""
    paths: list[Path] = [("server CPU", False, NO_NODE)]
    place_of: dict[tuple[int, str], int] = {}
    samples: dict[tuple[int, int], float] = defaultdict(float)
    for run, profile in enumerate(profiles):
        tree = profile.tree
        names = [function_name(frame.symbol or "") or str(frame) for frame in tree.frames]
        samples[0, run] = math.fsum(profile.samples[ROLE].values())
        places: list[int] = []
        counts = _with_callees(tree, profile.samples[ROLE])
        for parent, frame, count in zip(tree.parents.tolist(), tree.places.tolist(), counts, strict=True):
            above = places[parent] if parent != NO_NODE else 0
            key = above, names[frame]
            if count and key not in place_of:
                place_of[key] = len(paths)
                paths.append((names[frame], tree.frames[frame].in_kernel, above))
            places.append(place_of.get(key, NO_NODE))
            if count:
                samples[places[-1], run] += count
    table = np.zeros((len(paths), len(profiles)))
    for place, count in samples.items():
        table[place] = count
    return paths, table


def _with_callees(tree: CallTree, samples: Mapping[int, float]) -> list[float]:
    """Samples of each node and of all below it."""
    counts = [samples.get(node, 0.0) for node in range(len(tree.parents))]
    for node in range(len(counts) - 1, -1, -1):
        parent = int(tree.parents[node])
        if parent != NO_NODE:
            counts[parent] += counts[node]
    return counts


def _noticeable(paths: Sequence[Path], shares: Floats, places: Sequence[Sequence[int]]) -> dict[int, int]:
    """Paths with a noticeable share on some side, whose callers have one: position → position among them."""
    largest = np.max([shares[:, runs].mean(axis=1) for runs in places], axis=0)
    kept: dict[int, int] = {}
    for place, (_, _, parent) in enumerate(paths):
        if largest[place] >= LEAST and (parent == NO_NODE or parent in kept):
            kept[place] = len(kept)
    return kept


def ratios_of(
    counts: Floats,
    cpu: Floats,
    pair: tuple[Sequence[int], Sequence[int]],
    *,
    paired: bool,
    factor: float = 1.0,
) -> tuple[Ratio | None, ...]:
    """Ratio of each path between the runs of a pair of sides, tested among all paths.

    `counts` float64[paths, runs] are samples, of the root first; `cpu` float64[runs] is in s; `factor` is
    that of the intervals (`stopping.wider`).
    """
    ratio = partial(stats.ratio, paired=paired, wider=factor)
    estimates = [_estimate(count, counts[0], cpu, pair, ratio) for count in counts]
    p_values = {
        place: estimate.p for place, estimate in enumerate(estimates) if estimate and estimate.p is not None
    }
    flags = dict(zip(p_values, stats.benjamini_hochberg(list(p_values.values())), strict=True))
    ratios: list[Ratio | None] = []
    for place, estimate in enumerate(estimates):
        if estimate is None:
            ratios.append(None)
        else:
            centre = estimate.centre if math.isfinite(estimate.centre) else None
            ratios.append((centre, estimate.low, estimate.high, flags.get(place, False)))
    return tuple(ratios)


def _estimate(
    counts: Floats,
    totals: Floats,
    cpu: Floats,
    pair: tuple[Sequence[int], Sequence[int]],
    ratio: Callable[..., stats.Estimate],
) -> stats.Estimate | None:
    """Ratio of geometric means of two sides' runs; infinite if only the first has the path.

    None if a run lacks it. If only one side has it, p is the probability that all its samples are of this
    side although the path takes the same time on both: they are then binomial (Przyborowski and Wilenski
    1940, Biometrika 31:313).
    """
    here, there = pair
    if not counts[there].any() and counts[here].all():
        one, other = (float(totals[runs].sum() / cpu[runs].sum()) for runs in pair)
        chance = 2 * math.pow(one / (one + other), float(counts[here].sum()))
        return stats.Estimate(math.inf, p=min(1.0, chance))
    values, errors = [], []
    for runs in pair:
        parts = [share(cpu[run], counts[run], totals[run]) for run in runs]
        if min(part.rate for part in parts) <= 0:
            return None
        values.append([part.rate for part in parts])
        errors.append(math.hypot(*(part.error / part.rate for part in parts)) / len(parts))
    return ratio(values[0], values[1], sampling=math.hypot(*errors))
