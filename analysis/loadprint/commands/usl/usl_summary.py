"""`usl` of a file or an execution as one plain value: every column's fit, and what grew beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loadprint import numbers
from loadprint.commands.usl.fit import fit
from loadprint.commands.usl.fitted import Fit
from loadprint.commands.usl.growth import Growth, growth
from loadprint.commands.usl.usl_columns import Points
from loadprint.errors import InputError

NEARBY = 0.25  # of N: where a point that stands out may have been measured instead


@dataclass(frozen=True)
class ColumnTold:
    """One column. `fit` is None where it was `refused`, with the reason."""

    name: str
    unit: str
    fit: Fit | None
    growth: Growth | None = None
    notes: tuple[str, ...] = ()
    refused: str = ""


@dataclass(frozen=True)
class Told:
    """All columns of one source."""

    source: str
    title: str
    concurrency: str
    facts: tuple[tuple[str, str], ...]
    columns: tuple[ColumnTold, ...]
    warnings: tuple[str, ...] = ()


def tell(points: Points, *, predict: Sequence[float] = (), bounded: bool = True) -> Told:
    """Fit every column. Raises InputError where none can be fitted."""
    columns, refusals = [], []
    for column in points.columns:
        try:
            found = fit(column.n, column.x, bounded=bounded, predict=predict)
        except InputError as error:
            refusals.append(
                InputError(f"{points.source}: {column.name}", f"{error.place} {error.what}", error.fix)
            )
            refused = f"{error.place} {error.what}; {error.fix}"
            columns.append(ColumnTold(column.name, column.unit, None, notes=column.notes, refused=refused))
            continue
        grown = growth(column.cells, found.terms)
        columns.append(ColumnTold(column.name, column.unit, found, grown, column.notes))
    if len(refusals) == len(columns):
        raise refusals[0]
    warnings = _misplaced([column for column in columns if column.fit])
    return Told(
        str(points.source), points.title, points.concurrency, points.facts, tuple(columns), tuple(warnings)
    )


def _misplaced(columns: Sequence[ColumnTold]) -> list[str]:
    """An N that stands out of every column the same way was perhaps not measured at that N."""
    outs = [[point for point in column.fit.points if point.stands_out] for column in columns if column.fit]
    if not outs or not all(outs) or len({out[0].n for out in outs}) > 1:
        return []
    reached = [out[0].reached_at for out in outs]
    n = outs[0][0].n
    known = [each for each in reached if each is not None]
    if len(known) < len(reached) or len({each > n for each in known}) > 1:
        return []
    near = round(sum(known) / len(known))
    if near == n or near < 1 or abs(near / n - 1) > NEARBY:
        return []
    told = " and ".join(numbers.ratio(each) for each in known)
    where = "every column" if len(columns) > 1 else "the column"
    return [
        f"N = {n:g} stands out of {where}: the other points reach its throughput at {told}. "
        f"If it was measured at {near}, say so: --at {n:g}={near}"
    ]
