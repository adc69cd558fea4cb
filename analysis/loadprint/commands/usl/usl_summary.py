"""Fits every column of a file or an execution, with the kernel's figures by concurrency, as a plain value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from loadprint import numbers
from loadprint.commands.usl.conclusions import judged
from loadprint.commands.usl.fit import Fit, fit
from loadprint.commands.usl.growth import Growth, growth
from loadprint.commands.usl.points import Points
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
class UslSummary:
    """All columns of one source."""

    source: str
    title: str
    concurrency: str
    facts: tuple[tuple[str, str], ...]
    columns: tuple[ColumnSummary, ...]
    warnings: tuple[str, ...] = ()


def summarise(points: Points, *, predict: Sequence[float] = (), bounded: bool = True) -> UslSummary:
    """Fit every column. Raises InputError where none can be fitted."""
    columns, refusals = [], []
    for of_column in points.columns:
        try:
            fitted = judged(fit(of_column.n, of_column.x, bounded=bounded, predict=predict))
        except InputError as error:
            what = f"{error.place} {error.what}"
            refusals.append(InputError(f"{points.source}: {of_column.name}", what, error.fix))
            refused = f"{what}; {error.fix}"
            columns.append(
                ColumnSummary(of_column.name, of_column.unit, None, notes=of_column.notes, refused=refused)
            )
        else:
            by_n = growth(of_column.cells, fitted.terms)
            columns.append(ColumnSummary(of_column.name, of_column.unit, fitted, by_n, of_column.notes))
    if len(refusals) == len(columns):
        raise refusals[0]
    source, fits = str(points.source), [column.fit for column in columns if column.fit]
    warnings = tuple(_misplaced(fits))
    return UslSummary(source, points.title, points.concurrency, points.facts, tuple(columns), warnings)


def _misplaced(fits: Sequence[Fit]) -> Iterator[str]:
    """Warn of an N that is an outlier of every column: perhaps it was measured at another N."""
    outliers = [next((point for point in fit.points if point.outlier), None) for fit in fits]
    reaching = [(point.n, point.reached_at) for point in outliers if point and point.reached_at is not None]
    if len(reaching) < len(fits) or len({(n, reached > n) for n, reached in reaching}) > 1:
        return
    n, near = reaching[0][0], round(sum(reached for _, reached in reaching) / len(reaching))
    if near == n or near < 1 or abs(near / n - 1) > NEARBY:
        return
    ratios = " and ".join(numbers.ratio(reached) for _, reached in reaching)
    where = "every column" if len(fits) > 1 else "the column"
    yield (
        f"N = {n:g} is an outlier of {where}: the other points reach its throughput at {ratios}. "
        f"If it was measured at {near}, correct it with --at {n:g}={near}"
    )
