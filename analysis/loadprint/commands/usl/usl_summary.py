"""Fits every column of a file or an execution, with the kernel's figures by concurrency, as a plain value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loadprint import numbers
from loadprint.commands.usl.fit import fit
from loadprint.commands.usl.fitted import Fit
from loadprint.commands.usl.growth import Growth, growth
from loadprint.commands.usl.usl_columns import Points
from loadprint.errors import InputError

NEARBY = 0.25  # of N: how far an outlier may be from the N at which it was measured


@dataclass(frozen=True)
class ColumnSummary:
    """One column. Where `fit` is None, `refused` is the reason."""

    name: str
    unit: str
    fit: Fit | None
    growth: Growth | None = None
    notes: tuple[str, ...] = ()
    refused: str = ""


@dataclass(frozen=True)
class Summary:
    """All columns of one source."""

    source: str
    title: str
    concurrency: str
    facts: tuple[tuple[str, str], ...]
    columns: tuple[ColumnSummary, ...]
    warnings: tuple[str, ...] = ()


def summarise(points: Points, *, predict: Sequence[float] = (), bounded: bool = True) -> Summary:
    """Fit every column. Raises InputError where none can be fitted."""
    columns, refusals = [], []
    for column in points.columns:
        try:
            fitted = fit(column.n, column.x, bounded=bounded, predict=predict)
        except InputError as error:
            refusals.append(
                InputError(f"{points.source}: {column.name}", f"{error.place} {error.what}", error.fix)
            )
            refused = f"{error.place} {error.what}; {error.fix}"
            columns.append(ColumnSummary(column.name, column.unit, None, notes=column.notes, refused=refused))
            continue
        by_n = growth(column.cells, fitted.terms)
        columns.append(ColumnSummary(column.name, column.unit, fitted, by_n, column.notes))
    if len(refusals) == len(columns):
        raise refusals[0]
    warnings = _misplaced([column for column in columns if column.fit])
    return Summary(
        str(points.source), points.title, points.concurrency, points.facts, tuple(columns), tuple(warnings)
    )


def _misplaced(columns: Sequence[ColumnSummary]) -> list[str]:
    """Warn of an N that is an outlier of every column: perhaps it was measured at another N."""
    outliers = [[point for point in column.fit.points if point.outlier] for column in columns if column.fit]
    if not outliers or not all(outliers) or len({out[0].n for out in outliers}) > 1:
        return []
    reached = [out[0].reached_at for out in outliers]
    n = outliers[0][0].n
    known = [each for each in reached if each is not None]
    if len(known) < len(reached) or len({each > n for each in known}) > 1:
        return []
    near = round(sum(known) / len(known))
    if near == n or near < 1 or abs(near / n - 1) > NEARBY:
        return []
    listed = " and ".join(numbers.ratio(each) for each in known)
    where = "every column" if len(columns) > 1 else "the column"
    return [
        f"N = {n:g} is an outlier of {where}: the other points reach its throughput at {listed}. "
        f"If it was measured at {near}, correct it with --at {n:g}={near}"
    ]
