"""Compares sides with a reference and returns the comparison as a Table, a plain value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from loadprint.catalogue.files import Catalogue
from loadprint.errors import InputError
from loadprint.judging import canary, client, comparability, steady, void, warm
from loadprint.judging.verdicts import Shifts, verdicts
from loadprint.metrics import blocks
from loadprint.metrics.gather import Measured, gather
from loadprint.reading.queries import Store
from loadprint.reading.sides import Side
from loadprint.sentences.sentences import sentences
from loadprint.statistics.answers import EQUIVALENT_WITHIN
from loadprint.statistics.stopping import wider
from loadprint.statistics.trend import Trend
from loadprint.tables import ceilings, header, title, warnings
from loadprint.tables.groups import groups
from loadprint.tables.marks import marked
from loadprint.tables.method import legend, method
from loadprint.tables.rows import Column, RowBuilder
from loadprint.tables.table import NoiseFloor, SideHead, Table


def compare(  # noqa: PLR0913
    sides: Sequence[Side],
    reference: str | None,
    *,
    given_ceilings: tuple[ceilings.Ceiling, ...] | None = None,
    measured: Sequence[Sequence[Measured]] | None = None,
    noise: NoiseFloor | None = None,
    equivalent: float = EQUIVALENT_WITHIN,
    rows: Catalogue | None = None,
) -> Table:
    """Compare sides with a reference (the first side by default), in all rows.

    `given_ceilings` replace those next to the runs; `measured` has what `gather` returned for every run, if
    the caller has it; `noise` is the floor below which a ratio is marked `~`, `equivalent` the share of 1
    within which an interval is marked `=`, `rows` the catalogue with own rows. Raises InputError.
    """
    names = [side.name for side in sides]
    reference = reference or names[0]
    if reference not in names:
        raise InputError(
            f"--reference {reference}", "is not one of the sides", f"name one of {', '.join(names)}"
        )
    if measured is None:
        store = Store()
        measured = [[gather(run, store, rows=rows) for run in side.runs] for side in sides]
    everyone = [run for runs in measured for run in runs]
    trends = [steady.together(runs) for runs in measured]
    comparable = comparability.judge(sides, measured)
    shifts = canary.by_run([run.run for run in everyone])
    limits = ceilings.ceilings_of(everyone, given_ceilings)
    cold = [
        warm.cold(side.name, runs, side.execution.campaign.warm)
        for side, runs in zip(sides, measured, strict=True)
    ]
    unsettled = [
        steady.unsettled(name, runs, trend) for name, runs, trend in zip(names, measured, trends, strict=True)
    ]
    columns = [
        _column(side, runs, measured[names.index(reference)], *reasons)
        for side, runs, *reasons in zip(sides, measured, cold, unsettled, strict=True)
    ]
    builder = RowBuilder(columns, names.index(reference), limits, rows)
    built = marked(groups(builder), builder, noise, equivalent)
    every = [row for group in built for row in group.rows]
    facts = (
        *header.facts(sides, measured, comparable, trends, shifts),
        *header.unused_ceilings(limits, every),
    )
    executions = len({run.run.path.resolve().parent for run in everyone})
    heads = tuple(
        replace(
            _head(side, runs, shifts, trend),
            description=title.description(
                side, runs, is_reference=side.name == reference, is_apart=executions > 1
            ),
            doubts=_doubts(column, *reasons),
            paired=column.paired,
        )
        for side, runs, trend, column, *reasons in zip(
            sides, measured, trends, columns, cold, unsettled, strict=True
        )
    )
    warned = sorted(warnings.warnings(sides, measured, cold, unsettled), key=lambda warning: warning.rank)
    table = Table(
        sides=heads,
        reference=reference,
        facts=facts,
        warnings=tuple(warning.full() for warning in warned),
        remedies=tuple(warning.brief() for warning in warned),
        groups=built,
        sentences=(),
        verdicts=verdicts(sides, measured, comparable, shifts),
        method=method(columns, reference, every, noise),
        title=title.title(measured),
        legend=legend(columns, reference, equivalent),
        page=title.page(sides, measured),
    )
    return replace(table, sentences=sentences(table))


def _column(
    side: Side, runs: Sequence[Measured], reference: Sequence[Measured], cold: str, unsettled: str
) -> Column:
    """A side as a column, its runs in the order of the blocks."""
    bound = client.client_bound(side.name, runs)
    return Column(
        side.name,
        blocks.ordered(runs),
        blocks.paired(runs, reference),
        cold or unsettled or bound,
        client_bound=bool(bound),
        wider=wider(len(runs), by_precision=side.by_precision),
    )


def _doubts(column: Column, cold: str, unsettled: str) -> tuple[str, ...]:
    reasons = {
        "not warm": cold,
        void.NEVER_SETTLED: unsettled,
        void.CLIENT_BOUND: column.client_bound,
    }
    return tuple(word for word, reason in reasons.items() if reason)


def _head(side: Side, runs: Sequence[Measured], shifts: Shifts, trend: Trend | None) -> SideHead:
    canaries = tuple(shift for run in runs for shift in shifts.get(run.run.path.resolve(), ()))
    return SideHead(
        side.name,
        side.label,
        runs[0].operation,
        tuple(run.run.id for run in runs),
        side.missing,
        canaries,
        tuple(canary.disturbed(canaries)),
        drift=trend,
        replicate=title.replicate(side),
    )
