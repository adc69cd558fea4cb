"""Metrics and measured runs to rows: values of every repeat, ratios, intervals, marks, footnotes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from loadprint.metrics.derived import Metric
from loadprint.metrics.gather import Measured
from loadprint.metrics.quantities import STEPS, Quantity
from loadprint.statistics import stats
from loadprint.tables.table import Cell, Row, Versus

COARSE = "under three times its source's resolution"


@dataclass
class Footnotes:
    """Numbered footnotes; the same text keeps its number."""

    texts: list[str] = field(default_factory=list)

    def number(self, text: str) -> int | None:
        """Return the number of a footnote, None where nobody added it."""
        return self.texts.index(text) + 1 if text in self.texts else None

    def add(self, text: str) -> int:
        """Return the number of a footnote, adding it if it is new."""
        if text not in self.texts:
            self.texts.append(text)
        return self.texts.index(text) + 1


@dataclass(frozen=True)
class Column:
    """One side as the rows need it; `paired`: its runs stand beside the reference's, block by block."""

    name: str
    runs: tuple[Measured, ...]
    paired: bool
    verdict: str  # empty where the side may carry verdicts, else why not
    client_bound: bool = False


class RowBuilder:
    """Builds rows of one comparison; `reference` is the position of the reference among the columns."""

    def __init__(self, columns: Sequence[Column], reference: int, footnotes: Footnotes) -> None:
        self.columns, self.reference, self.footnotes = tuple(columns), reference, footnotes
        operations = {run.operation for column in columns for run in column.runs}
        self.same_operation = len(operations) == 1

    def counts_alike(self, column: Column) -> bool:
        """Whether a side counts the operations of the reference; among three sides two may."""
        base = self.columns[self.reference]
        return len({run.operation for side in (column, base) for run in side.runs}) == 1

    def row(self, metric: Metric) -> Row:
        """Return the row of a metric; cells that lack an input carry a footnote with the reason."""
        return self.aligned(metric, [metric] * len(self.columns))

    def aligned(self, metric: Metric, per_side: Sequence[Metric | None]) -> Row:
        """Row whose sides may read different devices: `per_side` holds the metric of each, or None."""
        cells = tuple(self._cell(own, column) for own, column in zip(per_side, self.columns, strict=True))
        base = cells[self.reference]
        versus = tuple(
            None if position == self.reference else self._versus(metric, cell, base, self.columns[position])
            for position, cell in enumerate(cells)
        )
        notes = (self.footnotes.add(metric.footnote),) if metric.footnote else ()
        return Row(
            metric.key,
            metric.label,
            metric.unit,
            metric.shown,
            metric.factor,
            metric.better,
            metric.headline,
            metric.formula,
            cells,
            versus,
            notes,
            metric.view,
        )

    def _cell(self, metric: Metric | None, column: Column) -> Cell:
        if metric is None:
            return Cell(
                None, (None,) * len(column.runs), (self.footnotes.add("this side has no such device"),)
            )
        found = [evaluate(metric, run) for run in column.runs]
        known = [value for value, _ in found if value is not None]
        notes = [self.footnotes.add(COARSE)] if any(why == COARSE for _, why in found) else []
        lacking: dict[str, list[str]] = {}
        for run, (value, why) in zip(column.runs, found, strict=True):
            if value is None:
                lacking.setdefault(why, []).append(run.run.id)
        for why, runs in lacking.items():
            few = f"missing in {', '.join(runs)}, {len(runs)} of {len(found)} repeats: " if known else ""
            notes.append(self.footnotes.add(f"{few}{why}"))
        mean = math.fsum(known) / len(known) if known else None
        return Cell(mean, tuple(value for value, _ in found), tuple(notes))

    def _versus(self, metric: Metric, cell: Cell, base: Cell, column: Column) -> Versus:
        side, reference = _known(cell), _known(base)
        if not side or not reference:
            return Versus("none")
        points = (
            cell.value - base.value
            if metric.percent and cell.value is not None and base.value is not None
            else None
        )
        if metric.per_operation and not self.counts_alike(column):
            return Versus(
                "none", notes=(self.footnotes.add("the sides count different operations: no ratio"),)
            )
        paired = column.paired and len(side) == len(cell.repeats) and len(reference) == len(base.repeats)
        coarse = self.footnotes.number(COARSE)
        if not any(reference) and not any(side):
            return Versus("?", points=points)
        if not any(reference) and coarse not in (*cell.notes, *base.notes):
            return Versus("inf", points=points)
        if min(*side, *reference) <= 0:
            found = stats.difference(side, reference, paired=paired)
            less = "is below 0" if min(*side, *reference) < 0 else "is 0"
            note = self.footnotes.add(f"a repeat {less}: difference, no log ratio")
            return _marked(
                Versus("difference", found.centre, found.low, found.high, found.p, points, notes=(note,))
            )
        found = stats.ratio(side, reference, paired=paired, rounding=metric.rounding)
        return _marked(Versus("ratio", found.centre, found.low, found.high, found.p, points))


def evaluate(metric: Metric, run: Measured) -> tuple[float | None, str]:
    """Value of a metric in one run, and what is to be said of it: why it is missing, or that it is coarse."""
    found = [run.quantities.get(name) for name in metric.needs]
    for name, quantity in zip(metric.needs, found, strict=True):
        if quantity is None:
            return None, run.quantities.why(name)
    quantities = [quantity for quantity in found if quantity is not None]
    try:
        value = metric.compute(*(quantity.rate for quantity in quantities))
    except ZeroDivisionError:
        return None, f"nothing to divide by: {metric.formula.rpartition(' / ')[2]} is 0"
    if not math.isfinite(value):
        return None, f"not finite: {metric.formula}"
    return value, COARSE if _coarse(quantities[: metric.coarse]) else ""


def _coarse(quantities: Sequence[Quantity]) -> bool:
    """Whether the steps of some inputs together are too few: of things that are counted, 0 is no fewer."""
    counted = [quantity for quantity in quantities if quantity.count is not None]
    steps = sum(quantity.count or 0.0 for quantity in counted)
    return steps < STEPS and (steps > 0 or any(quantity.cut for quantity in counted))


def _known(cell: Cell) -> list[float]:
    return [value for value in cell.repeats if value is not None]


def _marked(versus: Versus) -> Versus:
    """Mark `~` where the interval holds "no difference"."""
    nothing = 1.0 if versus.kind == "ratio" else 0.0
    if versus.low is None or versus.high is None:
        return versus
    return replace(versus, mark="~" if versus.low <= nothing <= versus.high else "")


def with_verdicts(rows: Sequence[Row], builder: RowBuilder) -> list[Row]:
    """Give headline rows a verdict and all others Benjamini-Hochberg marks, side by side.

    A verdict needs a direction, one operation for both sides, an interval that excludes "no difference", and
    a side and a reference that settled and were not client-bound. What one side lacks is no matter to others.
    """
    rows = list(rows)
    base = builder.columns[builder.reference]
    for position, column in enumerate(builder.columns):
        judged = builder.counts_alike(column) and not column.verdict and not base.verdict
        verdicts = [i for i, row in enumerate(rows) if judged and row.headline and row.better != "neither"]
        marks = {i: _verdict(rows[i], position) for i in verdicts}
        tested = [i for i, row in enumerate(rows) if i not in verdicts and _p(row, position) is not None]
        # the usual rows are a family of their own: what --all adds takes nothing from them
        for family in ([i for i in tested if (rows[i].view == "all") is hidden] for hidden in (False, True)):
            flags = stats.benjamini_hochberg([_p(rows[i], position) or 0.0 for i in family])
            marks |= {i: "*" for i, flag in zip(family, flags, strict=True) if flag}
        for i, mark in marks.items():
            versus = list(rows[i].versus)
            found = versus[position]
            if mark and found is not None and _open(rows[i], position):
                versus[position] = replace(found, mark=mark)
                rows[i] = replace(rows[i], versus=tuple(versus))
    return rows


def _p(row: Row, position: int) -> float | None:
    versus = row.versus[position]
    return None if versus is None else versus.p


def _open(row: Row, position: int) -> bool:
    versus = row.versus[position]
    return versus is not None and versus.p is not None and versus.mark != "~"


def _verdict(row: Row, position: int) -> str:
    versus = row.versus[position]
    if versus is None or versus.centre is None:
        return ""
    higher = versus.centre > (1.0 if versus.kind == "ratio" else 0.0)
    return "better" if higher == (row.better == "higher") else "worse"
