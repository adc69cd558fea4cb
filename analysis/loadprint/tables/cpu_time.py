"""Lists the rows of *Where CPU time goes*: a role's CPU time by groups of code, per unit of work.

The usual view has the groups with a noticeable share on any side, and the others in one row. The rows add up
to the CPU time in /proc with what was not sampled, which is measured: a large one is marked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from loadprint import numbers
from loadprint.catalogue.files import Work
from loadprint.catalogue.metric import View
from loadprint.metrics import cpu_groups
from loadprint.metrics.cpu_time_rows import NOT_SAMPLED, CpuTime
from loadprint.metrics.gather import Measured
from loadprint.metrics.quantities import Quantities, Quantity
from loadprint.statistics.stats import NORMAL
from loadprint.tables.rows import RowBuilder
from loadprint.tables.table import COSTS, Group, Row

TITLE = "Where CPU time goes"
LEAST = 0.02  # of a side's CPU time, for a separate row in the usual view
CLOSURE = 0.05  # largest share of it that may be not sampled
OPEN = {
    "not_sampled": "{:.0f} % of the CPU time in /proc: this ledger does not close",
    "not_counted": "{:.0f} % of the CPU time in /proc, by the cycles and the clock frequency of the CPUs: "
    "this ledger does not close",
}
OTHERS = "others"


def cpu_time(builder: RowBuilder, works: Sequence[Work]) -> list[Group]:
    """Groups of rows: the server's per unit of each work, those of other roles per unit of the first.

    The usual view has the server's, per unit of the first. Without samples there is one row with the reason.
    """
    runs = [run for side in builder.sides for run in side]
    roles = sorted({role for run in runs for (role,) in run.quantities.entities["profile"]} | {"server"})
    groups = []
    for role in sorted(roles, key=lambda role: role != "server"):
        for place, work in enumerate(works if role == "server" else works[:1]):
            usual = role == "server" and place == 0
            if group := _group(builder, role, work, usual=usual):
                groups.append(group)
    return groups


def _group(builder: RowBuilder, role: str, work: Work, *, usual: bool) -> Group | None:
    prefix = f"profile.{role}."
    runs = [run for side in builder.sides for run in side]
    names = {
        name.removeprefix(prefix) for run in runs for name in run.quantities.values if name.startswith(prefix)
    }
    if not names and not usual:
        return None
    groups = [key for key in cpu_groups.ordered(names) if key not in cpu_groups.UNDECIDED]
    small = [key for key in groups if _share(builder, f"profile.{role}.{key}", role) < LEAST]
    small = small if len(small) > 1 else []
    always: View = "always" if usual else "all"
    rows = CpuTime(role, work)
    metrics = [
        rows.of(key, cpu_groups.label(key), [key], "all" if key in small else always) for key in groups
    ]
    if small and usual:
        metrics.append(rows.of(OTHERS, f"{len(small)} other groups", small, "usual"))
    if names:
        metrics += [rows.of(key, label, [key], always) for key, label in cpu_groups.UNDECIDED.items()]
        many = _share(builder, f"profiled.{role}.truncated", role) >= LEAST
        metrics += [rows.truncated(always if many else "all"), rows.not_sampled(always)]
    metrics.append(rows.total(always if names else "all", _footnote(builder, role)))
    built = builder.rows(metrics)
    built = tuple(_judged(builder, role, row) if row.key == rows.key(NOT_SAMPLED) else row for row in built)
    title = f"{TITLE}, {role}, per {work.name}"
    return Group(f"cputime_{role}_{work.per}", title, built, COSTS)


def _share(builder: RowBuilder, name: str, role: str) -> float:
    """Largest share of the CPU time on any side."""
    return max((part.rate for side in builder.sides if (part := _of_cpu(side, name, role))), default=0.0)


def _of_cpu(side: Sequence[Measured], name: str, role: str) -> Quantity | None:
    """A quantity of a side as a share of its CPU time, with its standard error by the samples."""
    parts, whole = [], 0.0
    for run in side:
        part, cpu = run.quantities.get(name), run.quantities.get(f"process.{role}.cpu")
        if part and cpu:
            parts.append(part)
            whole += cpu.rate
    if not whole:
        return None
    error = math.hypot(*(part.error for part in parts))
    return Quantity(math.fsum(part.rate for part in parts) / whole, error=error / whole)


def _judged(builder: RowBuilder, role: str, row: Row) -> Row:
    """The row of what was not sampled, with a note where it is too much, and more than chance."""
    cells = []
    for cell, side in zip(row.cells, builder.sides, strict=True):
        judged = cell
        for missed, text in OPEN.items():
            part = _of_cpu(side, f"profiled.{role}.{missed}", role)
            if part and abs(part.rate) > max(CLOSURE, NORMAL * part.error):
                note = text.format(100 * part.rate)
                judged = replace(judged, notes=(*judged.notes, note), unexplained=part.rate)
        cells.append(judged)
    return replace(row, cells=tuple(cells))


def _footnote(builder: RowBuilder, role: str) -> str:
    """Samples of each side: their number, what was sampled, and how many were lost."""
    texts = []
    for column in builder.columns:
        sampled = [run.quantities for run in column.runs if run.quantities.get(f"profiled.{role}.samples")]
        samples, lost, hertz = (
            [
                quantity.rate
                for quantities in sampled
                if (quantity := quantities.get(f"profiled.{role}.{name}"))
            ]
            for name in ("samples", "lost", "hertz")
        )
        if samples:
            event = "the CPU clock"
            if hertz:
                clocks = _clocks(sampled, role)
                event = f"hardware cycles (effective number), {_gigahertz(hertz)} of the CPU time"
                event += f" at a clock of {_gigahertz(clocks)}" if clocks else ""
            dropped = f", up to {numbers.percent(max(lost))} % lost" if any(lost) else ""
            texts.append(f"{column.name} {sum(samples):,.0f} of {event}{dropped}")
    return f"samples: {'; '.join(texts)}" if texts else ""


def _clocks(runs: Sequence[Quantities], role: str) -> list[float]:
    """Lowest and highest clock frequencies of the CPUs of a role, if they were recorded (Hz)."""
    names = [f"frequency.{role}.{which}_khz" for which in ("least", "most")]
    return [clock.rate for run in runs for name in names if (clock := run.get(name))]


def _gigahertz(values: Sequence[float]) -> str:
    """Smallest and largest frequency."""
    return "–".join(dict.fromkeys(f"{1e-9 * value:.2f}" for value in (min(values), max(values)))) + " GHz"
