"""From sides to a Table, a plain value that renderers lay out: columns, what is said of them, and marks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from loadprint.errors import InputError
from loadprint.judging import canary, client, comparability, steady, warm
from loadprint.judging.verdicts import Shifts, verdicts
from loadprint.metrics import blocks, derived_cpu
from loadprint.metrics.gather import Measured, gather
from loadprint.reading.queries import Store
from loadprint.reading.sides import Side
from loadprint.sentences.sentences import sentences
from loadprint.statistics.trend import Trend
from loadprint.tables import header, headlines, plans
from loadprint.tables.ceilings import Ceiling, Ceilings
from loadprint.tables.groups import groups
from loadprint.tables.rows import Column, Footnotes, RowBuilder, with_verdicts
from loadprint.tables.table import Group, Row, SideHead, Table

UTILISATION_GAP = 10.0  # points beyond which CPU time per operation is not the same thing
UTILISATION_NOTE = (
    "the sides' utilisation differs by more than ten points: shared cores and clock frequency "
    "weigh differently on their CPU times"
)
BOUND_NOTE = "client-bound: the load generator was at its limit, the server may be able to do more"
METHOD = (
    "value: mean of the repeats; ratio: of geometric means, to {reference}; "
    "interval: 95 %, Student's t on the log of run means, unadjusted.",
    "~ cannot be told from 1   * differs (Benjamini–Hochberg, 5 %)   inf base is zero   ? both are",
    "no mark: beyond 1 taken alone, but not among so many rows; or not judged",
    "– no ratio   points: difference of percentages",
)


def compare(
    sides: Sequence[Side],
    reference: str | None,
    *,
    ceilings: tuple[Ceiling, ...] | None = None,
    measured: Sequence[Sequence[Measured]] | None = None,
) -> Table:
    """Lay sides beside a reference (the first side unless named), in every row that there is.

    `ceilings` stand in for those that lie beside the runs; views.py takes the rows that are shown. `measured`
    is what `gather` said of every run, where the caller has it already. Raises InputError.
    """
    names = [side.name for side in sides]
    reference = reference or names[0]
    if reference not in names:
        raise InputError(
            f"--reference {reference}", "is none of the sides", f"name one of {', '.join(names)}"
        )
    if measured is None:
        store = Store()
        measured = [[gather(run, store) for run in side.runs] for side in sides]
    trends = [steady.together(runs) for runs in measured]
    columns, said = _columns(sides, measured, names.index(reference), trends)
    bound = [column.client_bound for column in columns]
    footnotes = Footnotes([BOUND_NOTE] if any(bound) else [])  # the first, for it is on every row
    builder = RowBuilder(columns, names.index(reference), footnotes)
    most = Ceilings(ceilings)
    built = groups(builder, most)
    comparable = comparability.judge(sides, measured)
    facts = header.facts(sides, measured, comparable)
    facts += _drifts(sides, measured, trends)
    shifts = canary.by_run([run.run for runs in measured for run in runs])
    facts += [("canary", said_of_it)] if (said_of_it := canary.told(shifts)) else []
    if unused := most.unused([run for runs in measured for run in runs]):
        facts.append(("ceilings", f"no row shows {', '.join(unused)}"))
    heads = tuple(
        replace(_head(side, runs, shifts, builder.footnotes), client_bound=held, drift=drift)
        for side, runs, held, drift in zip(sides, measured, bound, trends, strict=True)
    )
    noises = [head.noise for head in heads]
    facts += [("noise", told)] if (told := plans.noises_told(names, noises)) else []
    judged = _judged(headlines.declared(built), builder)
    rows = [row for group in judged for row in group.rows]
    planned = plans.plans(rows, builder, noises)
    table = Table(
        sides=heads,
        reference=reference,
        facts=tuple(facts),
        warnings=tuple(said),
        groups=_bound_marked(_utilisation_marked(judged, builder), builder),
        footnotes=tuple(builder.footnotes.texts),
        sentences=(),
        verdicts=verdicts(sides, measured, comparable, shifts),
        method=(*_method(builder, reference), *plans.told(planned, rows)),
        plans=planned,
    )
    return replace(table, sentences=sentences(table))


def _columns(
    sides: Sequence[Side],
    measured: Sequence[Sequence[Measured]],
    reference: int,
    trends: Sequence[Trend | None],
) -> tuple[list[Column], list[str]]:
    """Sides as columns, runs in the order of blocks, and what the checks of each side say."""
    columns, said = [], []
    for side, runs, trend in zip(sides, measured, trends, strict=True):
        paired = blocks.paired(runs, measured[reference])
        drift, bound = steady.unsettled(side.name, runs, trend), client.client_bound(side.name, runs)
        promised = ((side.execution or {}).get("campaign") or {}).get("warm") or {}
        cold = warm.cold(side.name, runs, promised)
        said += [text for text in (cold, drift, steady.transient(side.name, runs)) if text]
        said += _oddities(side, runs)
        columns.append(Column(side.name, blocks.ordered(runs), paired, cold or drift or bound, bool(bound)))
    return columns, [*said, *_beside_itself(sides)]


def _beside_itself(sides: Sequence[Side]) -> list[str]:
    """Runs that stand on more than one side: their ratios look certain and say nothing."""
    places: dict[Path, list[tuple[str, str]]] = {}
    for side in sides:
        for run in side.runs:
            places.setdefault(run.path.resolve(), []).append((side.name, run.id))
    twice: dict[str, list[str]] = {}
    for found in places.values():
        if len(found) > 1:
            names = " and ".join(dict.fromkeys(name for name, _ in found))
            twice.setdefault(names, []).append(found[0][1])
    return [
        f"{names} hold the same run{'s' if len(ids) > 1 else ''} {', '.join(ids)}: "
        "a run beside itself says nothing"
        for names, ids in twice.items()
    ]


def _drifts(
    sides: Sequence[Side], measured: Sequence[Sequence[Measured]], trends: Sequence[Trend | None]
) -> list[tuple[str, str]]:
    """Header line: how far operations a second drifted over each side's window."""
    told = [
        (side.name, steady.drift(runs, trend))
        for side, runs, trend in zip(sides, measured, trends, strict=True)
    ]
    said = "; ".join(f"{name} {text}" for name, text in told if text)
    return [("drift", f"of operations/s over the window: {said}")] if said else []


def _oddities(side: Side, runs: Sequence[Measured]) -> list[str]:
    """Resets, wraps, missed ticks and failed reads."""
    notes = []
    for run in runs:
        told = [text for text in run.run.problems if not text.startswith("load/") or "cut off" in text]
        told += dict.fromkeys(run.quantities.warnings)
        if run.window:
            told += [f"{run.window.missed} ticks missed in the window"] if run.window.missed else []
            told += [f"probe {probe}: {reason}" for probe, reason in run.window.failures.items()]
        notes += [f"{side.name} {run.run.id}: {text}" for text in told]
    return notes


def _judged(found: Sequence[Group], builder: RowBuilder) -> tuple[Group, ...]:
    rows = iter(with_verdicts([row for group in found for row in group.rows], builder))
    return tuple(replace(group, rows=tuple(next(rows) for _ in group.rows)) for group in found)


def _utilisation_marked(found: tuple[Group, ...], builder: RowBuilder) -> tuple[Group, ...]:
    """Footnote ratios of CPU time per work where utilisation differs by more than ten points."""
    busy = builder.row(derived_cpu.cpu_metrics("server")[0])
    base = busy.cells[builder.reference].value
    gaps = [0.0 if cell.value is None or base is None else abs(cell.value - base) for cell in busy.cells]
    if max(gaps) <= UTILISATION_GAP:
        return found
    return tuple(
        replace(
            group, rows=tuple(_marked(row, gaps, builder) if _is_cpu_cost(row) else row for row in group.rows)
        )
        for group in found
    )


def _bound_marked(found: tuple[Group, ...], builder: RowBuilder) -> tuple[Group, ...]:
    """Footnote every value of a client-bound side: the load generator was at its limit."""
    bound = [column.client_bound for column in builder.columns]
    if not any(bound):
        return found
    note = builder.footnotes.add(BOUND_NOTE)

    def marked(row: Row) -> Row:
        cells = zip(row.cells, bound, strict=True)
        return replace(
            row,
            cells=tuple(
                replace(cell, notes=(note, *cell.notes)) if mark and cell.value is not None else cell
                for cell, mark in cells
            ),
        )

    return tuple(replace(group, rows=tuple(map(marked, group.rows))) for group in found)


def _is_cpu_cost(row: Row) -> bool:
    return row.key.startswith(
        ("server_cpu_per_", "server_user_per_", "server_system_per_")
    ) or row.key.endswith(("statements_per_CPU-second", "commits_per_CPU-second"))


def _marked(row: Row, gaps: Sequence[float], builder: RowBuilder) -> Row:
    versus = list(row.versus)
    for position, found in enumerate(versus):
        if found is not None and found.kind == "ratio" and gaps[position] > UTILISATION_GAP:
            versus[position] = replace(found, notes=(*found.notes, builder.footnotes.add(UTILISATION_NOTE)))
    return replace(row, versus=tuple(versus))


def _head(side: Side, runs: Sequence[Measured], shifts: Shifts, footnotes: Footnotes) -> SideHead:
    ids = tuple(run.run.id for run in runs)
    own = tuple(shift for run in runs for shift in shifts.get(run.run.path.resolve(), ()))
    notes = tuple(footnotes.add(text) for text in canary.disturbed(own))
    return SideHead(
        side.name,
        side.label,
        runs[0].operation,
        ids,
        side.missing,
        own,
        notes,
        noise=plans.noise(runs),
    )


def _method(builder: RowBuilder, reference: str) -> tuple[str, ...]:
    if len(builder.columns) == 1:
        return ("value: mean of the repeats; one side alone has no ratio and no interval.",)
    texts = [text.format(reference=reference) for text in METHOD]
    fewest = min(len(column.runs) for column in builder.columns)
    if fewest < 3:
        repeats = f"{fewest} repeat{'s' if fewest > 1 else ''}"
        texts.append(f"{repeats} a side: no interval, no ~, no verdict; three or more repeats give them.")
    elif all(column.paired for column in builder.columns):
        texts.append("runs are paired within blocks.")
    else:
        texts.append("runs do not pair up within blocks on one host: Welch's t.")
    return tuple(texts)
