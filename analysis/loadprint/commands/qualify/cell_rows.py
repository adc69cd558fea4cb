"""Lines of a cell: which rows the specification means, their values, and the verdict on each."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch

from loadprint.commands.qualify import non_inferiority
from loadprint.commands.qualify.measure import Sheet, Values
from loadprint.commands.qualify.non_inferiority import CANNOT_TELL, FAIL, PASS, Judgement, Level
from loadprint.commands.qualify.qualify_report import Figure, Line
from loadprint.commands.qualify.spec import Row as Asked
from loadprint.commands.qualify.spec import Spec
from loadprint.errors import InputError
from loadprint.tables.table import Row

SUSTAINED = "operations"  # the row that is judged at its sustained level
RATES_APART = 0.01  # rates nearer than this are the same load


@dataclass(frozen=True)
class Scope:
    """How the cell is judged: over runs or over instances, at which confidence, and at which load."""

    by_type: bool
    confidence: float
    equal_load: bool
    harder: float  # log of candidate's rate / baseline's, 0 where the same
    beyond: str  # why the window is too short for a sustained level; empty where it is not

    @property
    def unit(self) -> str:
        """What is counted."""
        return "instance" if self.by_type else "repeat"


def scope(sheet: Sheet, spec: Spec, *, by_type: bool) -> Scope:
    """How one cell is to be judged."""
    equal_load = sheet.cell.baseline.fraction is not None
    window = min(sheet.baseline.seconds, sheet.candidate.seconds)
    beyond = ""
    if None in (*sheet.baseline.levels, *sheet.candidate.levels):
        beyond = "what is sustained, without throughput by seconds"
    elif window < spec.sustained.at_least:
        beyond = f"beyond {window:.0f} s: a window of {spec.sustained.at_least:.0f} s tells what is sustained"
    return Scope(by_type, spec.confidence, equal_load, _harder(sheet) if equal_load else 0.0, beyond)


def lines(sheet: Sheet, spec: Spec, how: Scope) -> list[Line]:
    """Every row that the specification means in this cell, judged, and the price last."""
    found = []
    for key, asked in spec.rows.items():
        if asked.judged_at(key) not in ("any", "equal-load" if how.equal_load else "saturation"):
            continue
        matching = list(_matching(sheet, key))
        found += [_line(sheet, row, asked, how) for row in matching]
        if not matching:
            nothing = Figure(None)
            why = "not among the rows of these recordings"
            found.append(
                Line(
                    key,
                    key,
                    "",
                    "",
                    1.0,
                    "",
                    asked.tolerance,
                    nothing,
                    nothing,
                    verdict=CANNOT_TELL,
                    reason=why,
                )
            )
    if spec.price and not how.equal_load:
        found += _priced(sheet, spec, how)
    return found


def _matching(sheet: Sheet, key: str) -> Iterator[Row]:
    """Rows of a key; `*` stands for a device or any part of a name, but not for part of a device's row."""
    for group in sheet.groups:
        kind, _, device = group.key.partition("_")
        for row in group.rows:
            general = row.key
            if device and kind in ("disk", "nic"):
                general = row.key.replace(f"{kind}_{device}_", f"{kind}_*_", 1)
            if key in (row.key, general) or (general == row.key and fnmatch(row.key, key)):
                yield row


def _line(sheet: Sheet, row: Row, asked: Asked, how: Scope) -> Line:
    better = asked.better or row.better
    if better not in ("higher", "lower"):
        what = "has no direction of its own"
        raise InputError(
            f"rows.{row.key}", what, "say `better: lower` or `better: higher` in the specification"
        )
    old, new = sheet.values(row)
    label = row.label
    if row.key == SUSTAINED:
        old, new, label = sheet.baseline.sustained, sheet.candidate.sustained, f"{row.label}, sustained"
    one, other = sheet.of_ceiling(row)
    line = Line(
        row.key,
        label,
        row.unit,
        row.shown,
        row.factor,
        better,
        asked.tolerance,
        replace(_figure(old), of_ceiling=one),
        replace(_figure(new), of_ceiling=other),
    )
    line = _judged(line, old, new, how, sheet.why_missing(row))
    if row.key == SUSTAINED and how.beyond and line.verdict == PASS:
        return replace(line, verdict=CANNOT_TELL, reason=how.beyond)
    return _at_other_rate(line, how)


def _judged(line: Line, old: Values, new: Values, how: Scope, missing: str) -> Line:
    """Fill in ratio, bounds and verdict; a line without tolerance gets no verdict."""
    known = [[[value for value in runs if value is not None] for runs in side] for side in (old, new)]
    flat = [[value for runs in side for value in runs] for side in known]
    if any(None in runs for runs in (*old, *new)):
        return _untold(line, missing)
    if min(*flat[0], *flat[1]) <= 0:
        return _zero(line, flat[0], flat[1])
    levels = [_level(side, how) for side in known]
    tolerance = line.tolerance or 0.0
    limit = non_inferiority.limit_of(tolerance, line.better)
    if levels[0] is None or levels[1] is None:
        centre = math.exp(_centre(known[1]) - _centre(known[0]))
        return _untold(replace(line, ratio=centre, limit=limit), _too_few(known, how))
    found = non_inferiority.judge(levels[0], levels[1], tolerance, line.better, how.confidence)
    line = replace(
        line,
        baseline=_bounded(line.baseline, levels[0], how),
        candidate=_bounded(line.candidate, levels[1], how),
        limit=found.limit,
        ratio=found.ratio,
        low=found.low,
        high=found.high,
        is_better=found.better,
    )
    if line.tolerance is None:
        return replace(line, limit=None)
    return replace(line, verdict=found.verdict, more=found.more, reason=_decides(found, how))


def _level(values: Sequence[Sequence[float]], how: Scope) -> Level | None:
    return non_inferiority.of_instances(values) if how.by_type else non_inferiority.of_runs(values)


def _centre(values: Sequence[Sequence[float]]) -> float:
    means = [math.fsum(map(math.log, runs)) / len(runs) for runs in values if runs]
    return math.fsum(means) / len(means)


def _figure(values: Values) -> Figure:
    known = [value for runs in values for value in runs if value is not None]
    return Figure(math.fsum(known) / len(known) if known else None, units=len(known))


def _bounded(figure: Figure, level: Level, how: Scope) -> Figure:
    _, low, high = non_inferiority.interval(level, how.confidence)
    return replace(figure, low=low, high=high, units=level.units)


def _decides(found: Judgement, how: Scope) -> str:
    if found.verdict != CANNOT_TELL:
        return ""
    if found.more is None:
        most = non_inferiority.MOST_MORE
        return f"over {most} more {how.unit}s a side would be needed: the ratio is at the limit"
    return f"{found.more} more {how.unit}{'s' if found.more > 1 else ''} a side would decide"


def _too_few(values: Sequence[Sequence[Sequence[float]]], how: Scope) -> str:
    if how.by_type:
        counts = " | ".join(str(len(side)) for side in values)
        return f"{counts} instances: three a side tell about the type"
    counts = " | ".join(str(sum(map(len, side))) for side in values)
    return f"{counts} repeats: three of an instance are the fewest that tell"


def _zero(line: Line, old: Sequence[float], new: Sequence[float]) -> Line:
    """A ratio needs values above 0; a candidate with none of what is better low cannot be worse."""
    if line.tolerance is not None and line.better == "lower" and not any(new):
        return replace(line, verdict=PASS, reason="the candidate has none")
    side = "baseline" if 0 in old else "candidate"
    return _untold(line, f"a run of the {side} is 0: no ratio")


def _untold(line: Line, reason: str) -> Line:
    return replace(line, verdict=CANNOT_TELL if line.tolerance is not None else "", reason=reason)


def void(line: Line, *, comparable: bool) -> Line:
    """Take a line's verdict away, for the cell says why; its ratio too, where operations are not alike."""
    line = replace(line, verdict=CANNOT_TELL if line.verdict else "", more=None, reason="")
    return line if comparable else replace(line, ratio=None, low=None, high=None, is_better=False)


def _harder(sheet: Sheet) -> float:
    """By how much, in logs, the candidate was driven faster than the baseline at equal load."""
    rates = []
    for side in (sheet.baseline, sheet.candidate):
        found = [rate.rate for run in side.runs if (rate := run.quantities.get("load.rate"))]
        if len(found) < len(side.runs) or min(found) <= 0:
            return math.nan
        rates.append(math.fsum(map(math.log, found)) / len(found))
    return rates[1] - rates[0]


def _at_other_rate(line: Line, how: Scope) -> Line:
    """At unequal rates only what holds all the more says something: waits and costs grow with the load."""
    if not how.equal_load or abs(how.harder) <= RATES_APART or not line.verdict:
        return line
    if math.isnan(how.harder):
        return _untold(line, "the rate is not known")
    easier = how.harder < 0
    if line.verdict == (PASS if easier else FAIL):
        way = "less" if easier else "more"
        told = (
            f"the candidate was driven at {100 * abs(math.expm1(how.harder)):.0f} % {way}: run it at one rate"
        )
        return replace(line, verdict=CANNOT_TELL, more=None, reason=told)
    return line


def _priced(sheet: Sheet, spec: Spec, how: Scope) -> Iterator[Line]:
    """Operations for a unit of currency, at the sustained level."""
    price = spec.price
    rate = next((row for group in sheet.groups for row in group.rows if row.key == SUSTAINED), None)
    if price is None or rate is None:
        return
    sides = [
        [[None if value is None else value * price.seconds / cost for value in runs] for runs in values]
        for values, cost in (
            (sheet.baseline.sustained, price.baseline),
            (sheet.candidate.sustained, price.candidate),
        )
    ]
    line = Line(
        "operations_per_currency",
        f"operations per {price.currency}",
        "1",
        "M",
        1e-6,
        "higher",
        price.tolerance,
        _figure(sides[0]),
        _figure(sides[1]),
    )
    line = _judged(line, sides[0], sides[1], how, sheet.why_missing(rate))
    if how.beyond and line.verdict == PASS:
        line = replace(line, verdict=CANNOT_TELL, reason=how.beyond)
    yield line
