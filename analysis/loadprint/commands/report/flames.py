"""Computes the flame graphs of the sides: CPU time of the server by call path, per unit of work.

The call trees of all runs become one, by function names. A path's time in a run is its share of the samples,
multiplied by the sampled CPU time; sides are compared as the rows of the table are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from loadprint.metrics import blocks
from loadprint.metrics.cpu_groups import function_name
from loadprint.metrics.gather import Measured
from loadprint.metrics.sources_profile import Profile, share
from loadprint.reading.call_tree import NO_NODE, CallTree
from loadprint.rendering.report_data import FlameNode, Flames, PathRatio
from loadprint.statistics import stats
from loadprint.tables.table import Group, Table

ROLE = "server"
LEAST = 0.002  # of a side's CPU time, for a path to be drawn
ROOT = "server CPU"


@dataclass
class Path:
    """A call path: samples of each run (by position among all runs) that contain it."""

    name: str
    kernel: bool
    parent: int
    samples: dict[int, float] = field(default_factory=dict)


def flames(measured: Sequence[Sequence[Measured]], table: Table) -> Flames | None:
    """Flame graphs of all sides; None if some side has no samples."""
    group = next((group for group in table.groups if group.key.startswith(f"cputime_{ROLE}_")), None)
    if group is None or not group.rows:
        return None
    sides = [blocks.ordered(runs) for runs in measured]
    known = [
        [run.profile for run in runs if run.profile is not None and run.profile.samples.get(ROLE)]
        for runs in sides
    ]
    if any(len(side) < len(runs) for side, runs in zip(known, sides, strict=True)):
        return None
    whole = _whole(group)
    if not whole:
        return None
    paths = merged([profile for side in known for profile in side])
    cpu = np.array([value for side in whole for value in side])
    totals = np.array([paths[0].samples.get(place, 0.0) for place in range(len(cpu))])
    starts = np.cumsum([0, *(len(side) for side in whole)])
    places = [list(range(begin, end)) for begin, end in pairwise(starts.tolist())]
    if not totals.all() or not cpu.all():
        return None
    paired = [blocks.paired(runs, measured[table.base]) for runs in measured]
    compared = Compared(cpu, totals, places, table.base, paired)
    return Flames(
        group.key.rpartition("_")[2],
        tuple(side.name for side in table.sides),
        table.base,
        compared.nodes(paths),
    )


def _whole(group: Group) -> list[list[float]]:
    """Sampled CPU time of each run per unit of work, in s; empty if one is missing."""
    *_, not_sampled, total = group.rows
    sides = []
    for whole, rest in zip(total.cells, not_sampled.cells, strict=True):
        # samples of hardware cycles stand for all of it
        pairs = zip(whole.repeats, (value or 0.0 for value in rest.repeats), strict=True)
        sides.append([value - left for value, left in pairs if value is not None])
    return sides if [len(side) for side in sides] == [len(cell.repeats) for cell in total.cells] else []


def merged(profiles: Sequence[Profile]) -> list[Path]:
    """All paths of some runs, callers first; the first is the root."""
    paths = [Path(ROOT, kernel=False, parent=NO_NODE)]
    known: dict[tuple[int, str], int] = {}
    for run, profile in enumerate(profiles):
        tree = profile.tree
        names = [function_name(frame.symbol or "") or str(frame) for frame in tree.frames]
        counts = _with_callees(tree, profile.samples[ROLE])
        paths[0].samples[run] = math.fsum(profile.samples[ROLE].values())
        places: list[int] = []
        nodes = zip(tree.parents.tolist(), tree.places.tolist(), counts, strict=True)
        for parent, frame, count in nodes:
            above = places[parent] if parent != NO_NODE else 0
            key = above, names[frame]
            if count and key not in known:
                known[key] = len(paths)
                paths.append(Path(names[frame], tree.frames[frame].in_kernel, above))
            place = known.get(key, NO_NODE)
            places.append(place)
            if count:
                paths[place].samples[run] = paths[place].samples.get(run, 0.0) + count
    return paths


def _with_callees(tree: CallTree, samples: Mapping[int, float]) -> list[float]:
    """Samples of each node and of all below it."""
    counts = [samples.get(node, 0.0) for node in range(len(tree.parents))]
    for node in range(len(counts) - 1, -1, -1):
        parent = int(tree.parents[node])
        if parent != NO_NODE:
            counts[parent] += counts[node]
    return counts


@dataclass(frozen=True)
class Compared:
    """CPU time and samples of all runs, the runs of each side, and the reference."""

    cpu: NDArray[np.float64]
    totals: NDArray[np.float64]
    places: Sequence[Sequence[int]]
    base: int
    paired: Sequence[bool]

    def nodes(self, paths: Sequence[Path]) -> tuple[FlameNode, ...]:
        """Paths with a noticeable share on some side, callers first, with their ratios."""
        kept: dict[int, int] = {NO_NODE: NO_NODE}
        times: list[NDArray[np.float64]] = []
        chosen: list[Path] = []
        for place, path in enumerate(paths):
            counts = np.array([path.samples.get(run, 0.0) for run in range(len(self.cpu))])
            shares = counts / self.totals
            if path.parent in kept and max(shares[list(side)].mean() for side in self.places) >= LEAST:
                kept[place] = len(chosen)
                chosen.append(path)
                times.append(counts)
        ratios = [self._ratios(times, side) for side in range(len(self.places))]
        return tuple(
            FlameNode(
                path.name,
                kept[path.parent],
                path.kernel,
                tuple(float((counts / self.totals * self.cpu)[list(side)].mean()) for side in self.places),
                tuple(of_side[place] for of_side in ratios),
            )
            for place, (path, counts) in enumerate(zip(chosen, times, strict=True))
        )

    def _ratios(self, times: Sequence[NDArray[np.float64]], side: int) -> list[PathRatio | None]:
        """Ratio of each path to the reference's, tested among all of them."""
        if side == self.base:
            return [None] * len(times)
        estimates = [self._estimate(counts, side) for counts in times]
        tested = [place for place, each in enumerate(estimates) if each is not None and each.p is not None]
        p_values = [each.p for each in estimates if each is not None and each.p is not None]
        flags = dict(zip(tested, stats.benjamini_hochberg(p_values), strict=True))
        return [
            None
            if each is None
            else PathRatio(
                each.centre if math.isfinite(each.centre) else None,
                each.low,
                each.high,
                differs=flags.get(place, False),
            )
            for place, each in enumerate(estimates)
        ]

    def _estimate(self, counts: NDArray[np.float64], side: int) -> stats.Estimate | None:
        """Ratio of geometric means; infinite if only this side has the path; None if a run lacks it."""
        if not counts[self.places[self.base]].any() and counts[self.places[side]].all():
            return stats.Estimate(math.inf, p=self._chance(float(counts[self.places[side]].sum()), side))
        values, errors = [], []
        for runs in (self.places[side], self.places[self.base]):
            parts = [share(self.cpu[run], counts[run], self.totals[run]) for run in runs]
            if min(part.rate for part in parts) <= 0:
                return None
            values.append([part.rate for part in parts])
            errors.append(math.hypot(*(part.error / part.rate for part in parts)) / len(parts))
        return stats.ratio(values[0], values[1], paired=self.paired[side], sampling=math.hypot(*errors))

    def _chance(self, samples: float, side: int) -> float:
        """The probability that all samples are of this side, if the path took the same time on both.

        Samples on one side are then binomial (Przyborowski and Wilenski 1940, Biometrika 31:313).
        """
        here, there = (
            float(self.totals[runs].sum() / self.cpu[runs].sum())
            for runs in (self.places[side], self.places[self.base])
        )
        return min(1.0, 2 * math.pow(here / (here + there), samples))
