"""Reads throughputs by concurrency from a CSV file or from an execution."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from loadprint.commands.usl import points_csv, points_execution
from loadprint.commands.usl.usl_columns import Column, Points
from loadprint.errors import InputError
from loadprint.reading import bounds


def read(
    path: Path,
    *,
    concurrency: str | None = None,
    columns: tuple[str, ...] = (),
    at: Mapping[float, float] | None = None,
) -> Points:
    """Read a CSV file or an execution; `at` maps a labelled N to the N at which it was measured.

    Raises InputError.
    """
    points = points_execution.read(path) if path.is_dir() else points_csv.read(path, concurrency, columns)
    chosen = _corrected(_chosen(points, columns), at or {})
    fits = sum(len(set(column.n)) for column in chosen.columns)
    if fits > bounds.FITS:
        what = (
            f"has {fits:,} different N in its columns of throughput, more than the limit of {bounds.FITS:,}"
        )
        raise InputError(path, what, "choose a column with --column, or fewer N")
    return chosen


def _chosen(points: Points, names: tuple[str, ...]) -> Points:
    known = [column.name for column in points.columns]
    for name in names:
        if name not in known:
            raise InputError(
                f"--column {name}", f"is not in {points.source}", f"name one of {', '.join(known)}"
            )
    chosen = [column for column in points.columns if not names or column.name in names]
    return Points(points.source, points.title, points.concurrency, tuple(chosen), points.facts)


def _corrected(points: Points, at: Mapping[float, float]) -> Points:
    for n in at:
        if not any(n in column.n for column in points.columns):
            raise InputError(
                f"--at {n:g}={at[n]:g}", f"{points.source} has no N = {n:g}", "name one of its N"
            )
    if not at:
        return points
    columns = tuple(
        Column(
            column.name,
            column.unit,
            tuple(at.get(n, n) for n in column.n),
            column.x,
            {at.get(n, n): cell for n, cell in column.cells.items()},
            column.notes,
        )
        for column in points.columns
    )
    corrections = ", ".join(f"{n:g} corrected to {measured:g}" for n, measured in at.items())
    return Points(
        points.source, points.title, points.concurrency, columns, (*points.facts, ("N", corrections))
    )
