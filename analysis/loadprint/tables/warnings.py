"""The warnings above a table: sides that were not warm or never settled, damaged records, repeated runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from loadprint.judging import steady
from loadprint.metrics.gather import Measured
from loadprint.reading.sides import Side

COUNT = re.compile(r"(?<![\w.])\d[\d.,]*(?= (?:%|ticks|reads))")


def warnings(
    sides: Sequence[Side],
    measured: Sequence[Sequence[Measured]],
    cold: Sequence[str],
    unsettled: Sequence[str],
) -> Iterator[str]:
    """All warnings, side by side; `cold` and `unsettled` are those of warm.py and steady.py."""
    for side, runs, *checks in zip(sides, measured, cold, unsettled, strict=True):
        yield from (text for text in (*checks, steady.transient(side.name, runs)) if text)
        alike: dict[str, list[str]] = {}
        for run in runs:
            # two counters of one run that differ in their numbers only are two warnings
            for text in dict.fromkeys(_irregularities(run)):
                alike.setdefault(COUNT.sub("#", text), []).append(f"{side.name} {run.run.id}: {text}")
        for first, *others in alike.values():
            more = f"{len(others)} more run{'s' if len(others) > 1 else ''}"
            yield f"{first}; alike in {more}" if others else first
    yield from _repeated(sides)


def _irregularities(run: Measured) -> Iterator[str]:
    """Counter resets and wraps, missed ticks and failed reads of a run."""
    for text in run.run.problems:
        if not text.startswith("load/") or "cut off" in text:
            yield text
    yield from dict.fromkeys(run.quantities.warnings)
    if run.window:
        if run.window.missed:
            yield f"{run.window.missed} ticks missed in the window"
        for reasons in (run.window.failures, run.window.partial):
            yield from (f"probe {probe}: {reason}" for probe, reason in reasons.items())


def _repeated(sides: Sequence[Side]) -> Iterator[str]:
    """Runs that are on more than one side: their ratios look certain and mean nothing."""
    places: dict[Path, list[tuple[str, str]]] = {}
    for side in sides:
        for run in side.runs:
            places.setdefault(run.path.resolve(), []).append((side.name, run.id))
    runs_by_sides: dict[str, list[str]] = {}
    for uses in places.values():
        if len(uses) > 1:
            names = " and ".join(dict.fromkeys(name for name, _ in uses))
            runs_by_sides.setdefault(names, []).append(uses[0][1])
    for names, ids in runs_by_sides.items():
        runs = f"run{'s' if len(ids) > 1 else ''} {', '.join(ids)}"
        yield f"{names} contain the same {runs}: a run compared with itself shows nothing"
