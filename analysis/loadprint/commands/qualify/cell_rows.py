"""Builds the lines of a cell: the selected rows, their values, and their verdicts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch

from loadprint.commands.qualify import non_inferiority
from loadprint.commands.qualify.measure import Sheet, Values
from loadprint.commands.qualify.non_inferiority import FAIL, PASS, UNDECIDED, PartyLevel, RowJudgement
from loadprint.commands.qualify.qualify_report import PartyFigure, QualifiedRow
from loadprint.commands.qualify.spec import Price, RowSpec, Spec
from loadprint.errors import InputError
from loadprint.statistics import stats
from loadprint.tables.table import Row

SUSTAINED = "operations"  # the row that is judged at its sustained level
EQUAL_RATES = 0.01  # rates that differ by less are the same load


@dataclass(frozen=True)
class Scope:
    """How a cell is judged: over runs or over instances, the confidence, and the load.

    `by_precision`: of each party, whether a precision decided on the number of runs.
    """

    by_type: bool
    confidence: float
    equal_load: bool
    harder: float  # log of candidate's rate / baseline's, 0 at saturation
    beyond: str  # why the window does not show the sustained level; empty if it does
    by_precision: tuple[bool, bool]

    @property
    def unit(self) -> str:
        """The unit of the sample."""
        return "instance" if self.by_type else "repeat"


def scope_of(sheet: Sheet, spec: Spec, *, by_type: bool) -> Scope:
    """Return how one cell is judged."""
    equal_load = sheet.baseline.part.fraction is not None
    window = min(sheet.baseline.seconds, sheet.candidate.seconds)
    beyond = ""
    if None in (*sheet.baseline.levels, *sheet.candidate.levels):
        beyond = "the sustained level needs throughput by seconds"
    elif window < spec.sustained.at_least:
        beyond = (
            f"beyond {window:.0f} s: the sustained level needs a window of {spec.sustained.at_least:.0f} s"
        )
    harder = _harder(sheet) if equal_load else 0.0
    by_precision = sheet.baseline.part.by_precision, sheet.candidate.part.by_precision
    return Scope(by_type, spec.confidence, equal_load, harder, beyond, by_precision)


def lines(sheet: Sheet, spec: Spec, scope: Scope) -> list[QualifiedRow]:
    """Judge every row that the specification selects in this cell, and the price last."""
    lines = []
    for key, row_spec in spec.rows.items():
        if row_spec.judged_at(key) not in ("any", "equal-load" if scope.equal_load else "saturation"):
            continue
        matching = list(_matching(sheet, key))
        lines += [_line(sheet, row, row_spec, scope) for row in matching]
        if not matching:
            absent = QualifiedRow(
                key, key, "", "", 1.0, "", row_spec.tolerance, PartyFigure(None), PartyFigure(None)
            )
            lines.append(_without_ratio(absent, "not among the rows of these recordings"))
    if spec.price and not scope.equal_load:
        lines += _priced(sheet, spec.price, scope)
    return lines


def _matching(sheet: Sheet, key: str) -> Iterator[Row]:
    """Yield the rows of a key; `*` matches a device, or a part of a name that is not a device's."""
    for group in sheet.groups:
        kind, _, device = group.key.partition("_")
        for row in group.rows:
            general = row.key
            if device and kind in ("disk", "nic"):
                general = row.key.replace(f"{kind}_{device}_", f"{kind}_*_", 1)
            if key in (row.key, general) or (general == row.key and fnmatch(row.key, key)):
                yield row


def _line(sheet: Sheet, row: Row, row_spec: RowSpec, scope: Scope) -> QualifiedRow:
    better = row_spec.better or row.better
    if better not in ("higher", "lower"):
        raise InputError(
            f"rows.{row.key}",
            "it is not defined whether higher or lower is better",
            "write `better: lower` or `better: higher` in the specification",
        )
    row = replace(row, better=better)
    old_share, new_share = sheet.of_ceiling(row)
    if row.key == SUSTAINED:
        named = replace(row, label=f"{row.label}, sustained")
        line = _sustained(sheet, named, row_spec.tolerance, scope)
    else:
        old, new = sheet.values(row)
        line = _unjudged(row, row_spec.tolerance, old, new)
        line = _judged(line, old, new, scope, sheet.why_missing(row))
    line = replace(
        line,
        baseline=replace(line.baseline, of_ceiling=old_share),
        candidate=replace(line.candidate, of_ceiling=new_share),
    )
    return _at_other_rate(line, scope)


def _unjudged(row: Row, tolerance: float | None, old: Values, new: Values) -> QualifiedRow:
    place = (row.key, row.label, row.unit, row.shown, row.factor, row.better)
    return QualifiedRow(*place, tolerance, _figure(old), _figure(new))


def _sustained(
    sheet: Sheet, row: Row, tolerance: float | None, scope: Scope, price: Price | None = None
) -> QualifiedRow:
    """Judge the sustained level, or operations per unit of currency at it; a short window cannot pass."""
    seconds, *costs = (price.seconds, price.baseline, price.candidate) if price else (1.0, 1.0, 1.0)
    old, new = (
        [[None if value is None else value * seconds / cost for value in runs] for runs in side.sustained]
        for side, cost in zip((sheet.baseline, sheet.candidate), costs, strict=True)
    )
    line = _judged(_unjudged(row, tolerance, old, new), old, new, scope, sheet.why_missing(row))
    if scope.beyond and line.verdict == PASS:
        return replace(line, verdict=UNDECIDED, reason=scope.beyond)
    return line


def _judged(line: QualifiedRow, old: Values, new: Values, scope: Scope, missing: str) -> QualifiedRow:
    """Fill in ratio, bounds and verdict; a line without a tolerance has no verdict."""
    measured = [[[value for value in runs if value is not None] for runs in side] for side in (old, new)]
    flat = [[value for runs in side for value in runs] for side in measured]
    if any(None in runs for runs in (*old, *new)):
        return _without_ratio(line, missing)
    if min(*flat[0], *flat[1]) <= 0:
        return _zero(line, flat[0], flat[1])
    levels = [
        non_inferiority.of_instances(side)
        if scope.by_type
        else non_inferiority.of_runs(side, by_precision=by_precision)
        for side, by_precision in zip(measured, scope.by_precision, strict=True)
    ]
    tolerance = line.tolerance or 0.0
    limit = non_inferiority.limit_of(tolerance, line.better)
    if levels[0] is None or levels[1] is None:
        centre = math.exp(_centre(measured[1]) - _centre(measured[0]))
        return _without_ratio(replace(line, ratio=centre, limit=limit), _too_few(measured, scope))
    judgement = non_inferiority.judge(levels[0], levels[1], tolerance, line.better, scope.confidence)
    line = replace(
        line,
        baseline=_bounded(line.baseline, levels[0], scope),
        candidate=_bounded(line.candidate, levels[1], scope),
        reason=_needed(judgement, scope),
        **vars(judgement),
    )
    if line.tolerance is None:
        return replace(line, limit=None, verdict="", more=None, reason="")
    return line


def _centre(values: Sequence[Sequence[float]]) -> float:
    means = [math.fsum(map(math.log, runs)) / len(runs) for runs in values if runs]
    return math.fsum(means) / len(means)


def _figure(values: Values) -> PartyFigure:
    flat = [value for runs in values for value in runs if value is not None]
    return PartyFigure(stats.mean(flat), units=len(flat))


def _bounded(figure: PartyFigure, level: PartyLevel, scope: Scope) -> PartyFigure:
    low, high = non_inferiority.interval(level, scope.confidence)
    return replace(figure, low=low, high=high, units=level.units)


def _needed(judgement: RowJudgement, scope: Scope) -> str:
    if judgement.verdict != UNDECIDED:
        return ""
    if judgement.more is None:
        return (
            f"over {non_inferiority.MAX_MORE} more {scope.unit}s per side needed: the ratio is at the limit"
        )
    return f"{judgement.more} more {scope.unit}{'s' if judgement.more > 1 else ''} per side would decide"


def _too_few(values: Sequence[Sequence[Sequence[float]]], scope: Scope) -> str:
    if scope.by_type:
        counts = " | ".join(str(len(side)) for side in values)
        return f"{counts} instances: the type needs three or more per side"
    counts = " | ".join(str(sum(map(len, side))) for side in values)
    return f"{counts} repeats: an instance needs three or more"


def _zero(line: QualifiedRow, old: Sequence[float], new: Sequence[float]) -> QualifiedRow:
    """Judge values of 0, which have no ratio: a candidate at 0 where lower is better is not worse."""
    if line.tolerance is not None and line.better == "lower" and not any(new):
        return replace(line, verdict=PASS, reason="the candidate has none")
    side, least = ("baseline", min(old)) if min(old) <= 0 else ("candidate", min(new))
    return _without_ratio(line, f"a run of the {side} is {'below ' if least < 0 else ''}0: no ratio")


def _without_ratio(line: QualifiedRow, reason: str) -> QualifiedRow:
    return replace(line, verdict=UNDECIDED if line.tolerance is not None else "", reason=reason)


def void(line: QualifiedRow, *, comparable: bool) -> QualifiedRow:
    """Remove the verdict of a line in an invalid cell, and its ratio if the operations differ."""
    line = replace(line, verdict=UNDECIDED if line.verdict else "", more=None, reason="")
    return line if comparable else replace(line, ratio=None, low=None, high=None, is_better=False)


def _harder(sheet: Sheet) -> float:
    """Return the log of the candidate's rate over the baseline's, at equal load."""
    rates = []
    for side in (sheet.baseline, sheet.candidate):
        measured = [rate.rate for run in side.runs if (rate := run.quantities.get("load.rate"))]
        if len(measured) < len(side.runs) or min(measured) <= 0:
            return math.nan
        rates.append(math.fsum(map(math.log, measured)) / len(measured))
    return rates[1] - rates[0]


def _at_other_rate(line: QualifiedRow, scope: Scope) -> QualifiedRow:
    """Keep a verdict at unequal rates only if it is safe: waits and costs grow with the rate."""
    if not scope.equal_load or abs(scope.harder) <= EQUAL_RATES or not line.verdict:
        return line
    if math.isnan(scope.harder):
        return _without_ratio(line, "the rate is not known")
    slower = scope.harder < 0
    if line.verdict == (PASS if slower else FAIL):
        percent = f"{100 * abs(math.expm1(scope.harder)):.0f} %"
        way = "lower" if slower else "higher"
        reason = f"the candidate's rate was {percent} {way}: run both at the same rate"
        return replace(line, verdict=UNDECIDED, more=None, reason=reason)
    return line


def _priced(sheet: Sheet, price: Price, scope: Scope) -> Iterator[QualifiedRow]:
    """Yield operations per unit of currency, at the sustained level."""
    for rate in _matching(sheet, SUSTAINED):
        row = replace(
            rate,
            key="operations_per_currency",
            label=f"operations per {price.currency}",
            unit="1",
            shown="M",
            factor=1e-6,
            better="higher",
        )
        yield _sustained(sheet, row, price.tolerance, scope, price)
