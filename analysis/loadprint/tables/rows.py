"""Builds rows from metrics and measured runs: values of the repeats, ratios, intervals, footnotes.

A row is complete when it is built, except for marks.py's verdicts and marks, which depend on all rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from loadprint.catalogue.files import Catalogue, catalogue
from loadprint.catalogue.metric import Metric
from loadprint.judging.effective import Server
from loadprint.metrics import cpu_time_rows
from loadprint.metrics.gather import Measured
from loadprint.metrics.quantities import STEPS, Quantity
from loadprint.reading import cpusets
from loadprint.statistics import stats
from loadprint.tables import ceilings
from loadprint.tables.table import Cell, Row, Versus

COARSE = "its counter moved by fewer than three steps: the error is a third or more"
NO_DEVICE = "this side has no such device"
OTHER_OPERATIONS = "the sides count different operations: no ratio"
SAMPLED = "few samples: the interval is their sampling error, a longer measure phase narrows it"
CLIENT_BOUND = "client-bound: the load generator was at its limit, the server may be able to do more"
UTILISATION_GAP = 10.0  # points; beyond it CPU times per operation are not comparable
UTILISATION = (
    "utilisation differs by more than ten points: CPU times compare poorly (shared cores, clock frequency)"
)
CPU_COSTS = ("server_cpu_per_", "server_user_per_", "server_system_per_", cpu_time_rows.PREFIX)
CPU_YIELDS = ("statements_per_CPU-second", "commits_per_CPU-second")
ON_SERVER_CPUS = ("interrupts.server", "softirqs.server")  # counted on these CPUs, for all processes


@dataclass(frozen=True)
class Column:
    """One side as the rows need it; `paired`: its runs pair up with the reference's, block by block."""

    name: str
    runs: tuple[Measured, ...]
    paired: bool
    withheld: str = ""  # why the side carries no verdict; empty if it may carry one
    client_bound: bool = False
    wider: float = 1.0  # its intervals than Student's t


class RowBuilder:
    """Builds the rows of one comparison; `reference` is the position of the reference among the columns."""

    def __init__(
        self,
        columns: Sequence[Column],
        reference: int,
        known_ceilings: ceilings.Ceilings | None = None,
        rows: Catalogue | None = None,
    ) -> None:
        self.columns, self.reference = tuple(columns), reference
        self.sides = [column.runs for column in columns]
        self.ceilings = known_ceilings or ceilings.Ceilings()
        self.catalogue = rows or catalogue()
        runs = [run for column in columns for run in column.runs]
        self.same_operation = len({run.operation for run in runs}) == 1
        servers = [Server.of(run.run.server) for run in runs if run.run.server]
        self._mixed_flavours = len({server.flavour for server in servers}) > 1
        self._server_cpus = cpu_sets(self.sides, "server")
        self._utilisation_gaps = self._gaps(catalogue().groups["cpu"][0].of("server"))

    def counts_alike(self, column: Column) -> bool:
        """Whether a side counts the operations of the reference; of three sides, two may."""
        base = self.columns[self.reference]
        return len({run.operation for side in (column, base) for run in side.runs}) == 1

    def rows(self, metrics: Iterable[Metric]) -> tuple[Row, ...]:
        """Return the rows of metrics that read the same quantities on every side."""
        return tuple(self.row(metric) for metric in metrics)

    def row(self, metric: Metric) -> Row:
        """Return the row of a metric; cells that lack an input carry a footnote with the reason."""
        return self.aligned(metric, [metric] * len(self.columns))

    def aligned(
        self,
        metric: Metric,
        per_side: Sequence[Metric | None],
        incomparable: Sequence[str] = (),
    ) -> Row:
        """Return a row whose sides may read different devices: `per_side` has the metric of each, or None.

        `incomparable` has, per side, the reason for which it has no ratio, or an empty text.
        """
        cells = tuple(self._cell(side, column) for side, column in zip(per_side, self.columns, strict=True))
        versus = tuple(
            None
            if position == self.reference
            else Versus("none", notes=(incomparable[position],))
            if incomparable and incomparable[position]
            else self._versus(metric, cells, position)
            for position in range(len(cells))
        )
        return Row(
            metric.key,
            metric.label,
            metric.unit,
            metric.shown,
            metric.factor,
            metric.better,
            metric.headline,
            metric.text,
            cells,
            versus,
            self._notes(metric, cells),
            metric.view,
            part=metric.part,
            screens=metric.screens,
        )

    def _notes(self, metric: Metric, cells: Sequence[Cell]) -> tuple[str, ...]:
        """The footnotes of a row: those of its definition that apply, and its ceilings."""
        notes: list[str] = []
        if any(cell.value is not None for cell in cells):
            notes += [metric.footnote]
            notes += [metric.between_flavours] if self._mixed_flavours else []
        if " | " in self._server_cpus and metric.formula.names[0] in ON_SERVER_CPUS:
            notes.append(f"on the CPUs of each side's set: {self._server_cpus}")
        notes += [ceilings.footnote(cell.ceiling, metric) for cell in cells if cell.ceiling]
        return tuple(dict.fromkeys(note for note in notes if note))

    def _cell(self, metric: Metric | None, column: Column) -> Cell:
        if metric is None:
            return Cell(None, (None,) * len(column.runs), (NO_DEVICE,))
        evaluated = [evaluate(metric, run) for run in column.runs]
        values = tuple(value for value, _ in evaluated)
        measured = [value for value in values if value is not None]
        notes = [CLIENT_BOUND] if column.client_bound and measured else []
        notes += [COARSE] if any(reason == COARSE for _, reason in evaluated) else []
        lacking: dict[str, list[str]] = {}
        for run, (value, reason) in zip(column.runs, evaluated, strict=True):
            if value is None:
                lacking.setdefault(reason, []).append(run.run.id)
        for reason, runs in lacking.items():
            few = f"missing in {', '.join(runs)}, {len(runs)} of {len(values)} repeats: " if measured else ""
            notes.append(f"{few}{reason}")
        if not measured:
            return Cell(None, values, tuple(notes))
        ceiling = self.ceilings.of(metric, column.runs)
        return Cell(math.fsum(measured) / len(measured), values, tuple(notes), ceiling)

    def _versus(self, metric: Metric, cells: Sequence[Cell], position: int) -> Versus:
        cell, base, column = cells[position], cells[self.reference], self.columns[position]
        side, reference = cell.measured, base.measured
        if cell.value is None or base.value is None:
            return Versus("none")
        points = cell.value - base.value if metric.percent else None
        if metric.per_operation and not self.counts_alike(column):
            return Versus("none", notes=(OTHER_OPERATIONS,))
        paired = column.paired and len(side) == len(cell.repeats) and len(reference) == len(base.repeats)
        if not any(reference) and not any(side):
            return Versus("?", points=points)
        if not any(reference) and not metric.sampled and COARSE not in (*cell.notes, *base.notes):
            return Versus("inf", points=points)
        if min(*side, *reference) <= 0:
            error = self._sampling(metric, position, [1.0] * len(side), [1.0] * len(reference))
            estimate_with = partial(stats.difference, side, reference, paired=paired, wider=column.wider)
            reason = "is below 0" if min(*side, *reference) < 0 else "is 0"
            kind, note = (
                "difference",
                f"a run {reason}: difference shown",
            )
        else:
            error = self._sampling(metric, position, side, reference)
            estimate_with = partial(
                stats.ratio, side, reference, paired=paired, rounding=metric.rounding, wider=column.wider
            )
            apart = self._utilisation_gaps[position] > UTILISATION_GAP and _is_cpu_cost(metric.key)
            kind, note = "ratio", UTILISATION if apart else ""
        estimate = estimate_with(sampling=error)
        sampled = SAMPLED if error > 0 and _wider(estimate, estimate_with()) else ""
        notes = tuple(text for text in (note, sampled) if text)
        p = None if metric.untested else estimate.p
        return Versus(kind, estimate.centre, estimate.low, estimate.high, p, points, notes=notes)

    def _sampling(
        self, metric: Metric, position: int, side: Sequence[float], reference: Sequence[float]
    ) -> float:
        """Standard error of a comparison by the samples in its runs, relative to the given values."""
        if not metric.sampled:
            return 0.0
        sides = ((self.columns[position], side), (self.columns[self.reference], reference))
        return math.hypot(*(_sampling_error(metric, column.runs, values) for column, values in sides))

    def _gaps(self, utilisation: Metric) -> list[float]:
        """By how many points each side's utilisation differs from the reference's."""
        values = [self._cell(utilisation, column).value for column in self.columns]
        base = values[self.reference]
        return [0.0 if value is None or base is None else abs(value - base) for value in values]


def cpu_sets(sides: Sequence[Sequence[Measured]], role: str) -> str:
    """CPUs of the server's or the load's set, per side in the order of the columns if they differ."""
    texts = []
    for runs in sides:
        named = (_cpu_set(run.server_cpus if role == "server" else run.load_cpus) for run in runs)
        texts.append(" / ".join(dict.fromkeys(named)))
    return " | ".join(texts if len(set(texts)) > 1 else texts[:1])


def _cpu_set(cpus: tuple[int, ...] | None) -> str:
    return "whole host" if cpus is None else cpusets.named(cpus)


def evaluate(metric: Metric, run: Measured) -> tuple[float | None, str]:
    """Value of a metric in one run, and a note: why it is missing, or that it is coarse."""
    q, formula = run.quantities, run.quantities.resolved(metric.formula)
    if reason := q.why_not(formula):
        return None, reason
    try:
        value = q.value(formula)
    except ZeroDivisionError:
        return None, f"nothing to divide by: {q.divisor(formula)} is 0"
    if value is None or not math.isfinite(value):
        return None, f"not finite: {metric.text}"
    counted = [quantity for name in formula.counted if (quantity := q.get(name))]
    return value, COARSE if _coarse(counted) else ""


def _sampling_error(metric: Metric, runs: Sequence[Measured], values: Sequence[float]) -> float:
    """Standard error of the mean of the runs by their samples, each divided by its value."""
    errors = []
    for run in runs:
        if evaluate(metric, run)[0] is not None:
            q, names = run.quantities, metric.formula.names
            inputs = {name: quantity for name in names if (quantity := q.get(name))}
            parts = [inputs[name].error for name in names[: metric.sampled]]
            rates = {name: quantity.rate for name, quantity in inputs.items()} | dict.fromkeys(
                names[: metric.sampled], 0.0
            )
            rates[names[0]] = math.hypot(*parts)
            errors.append(metric.formula.value(rates.get))
    relative = (error / value for error, value in zip(errors, values, strict=True))
    return math.hypot(*relative) / len(errors)


def _wider(whole: stats.Estimate, of_runs: stats.Estimate) -> bool:
    """Whether the sampling error and not the spread of the runs is an interval."""
    return whole.high is not None and of_runs.high is not None and whole.high > of_runs.high


def _coarse(quantities: Sequence[Quantity]) -> bool:
    """Whether the steps of some inputs together are too few; a count of 0 things is exact."""
    counted = [quantity for quantity in quantities if quantity.count is not None]
    steps = sum(quantity.count or 0.0 for quantity in counted)
    return steps < STEPS and (steps > 0 or any(quantity.cut for quantity in counted))


def _is_cpu_cost(key: str) -> bool:
    return key.startswith(CPU_COSTS) or key.endswith(CPU_YIELDS)
