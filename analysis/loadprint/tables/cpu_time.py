"""Lists the rows of *Where CPU time goes*: a role's CPU time by groups of code, per unit of work.

The usual view has the groups with a noticeable share on any side, and the others in one row.
"""

from __future__ import annotations

from collections.abc import Sequence

from loadprint import numbers
from loadprint.metrics import cpu_groups
from loadprint.metrics.costs import Denominator
from loadprint.metrics.derived import View
from loadprint.metrics.derived_cpu_time import CpuTime
from loadprint.metrics.gather import Measured
from loadprint.tables.rows import RowBuilder
from loadprint.tables.table import Group

TITLE = "Where CPU time goes"
LEAST = 0.02  # of a side's CPU time, for a separate row in the usual view
OTHERS = "others"


def cpu_time(builder: RowBuilder, works: Sequence[Denominator], section: str) -> list[Group]:
    """Groups of rows: the server's per unit of each work, those of other roles per unit of the first.

    The usual view has the server's, per unit of the first. Without samples there is one row with the reason.
    """
    runs = [run for side in builder.sides for run in side]
    roles = sorted({role for run in runs for role in run.quantities.entities("profiled")} | {"server"})
    listed = []
    for role in sorted(roles, key=lambda role: role != "server"):
        for place, work in enumerate(works if role == "server" else works[:1]):
            usual = role == "server" and place == 0
            if group := _group(builder, role, work, section, usual=usual):
                listed.append(group)
    return listed


def _group(builder: RowBuilder, role: str, work: Denominator, section: str, *, usual: bool) -> Group | None:
    prefix = f"profile.{role}."
    runs = [run for side in builder.sides for run in side]
    names = {
        name.removeprefix(prefix) for run in runs for name in run.quantities.values if name.startswith(prefix)
    }
    if not names and not usual:
        return None
    keys = cpu_groups.ordered(names | {cpu_groups.UNKNOWN} if names else ())
    small = [key for key in keys if key != cpu_groups.UNKNOWN and _share(builder, role, key) < LEAST]
    small = small if len(small) > 1 else []
    always: View = "always" if usual else "all"
    rows = CpuTime(role, work)
    metrics = [rows.of(key, cpu_groups.label(key), [key], "all" if key in small else always) for key in keys]
    if small and usual:
        metrics.insert(-1, rows.of(OTHERS, f"{len(small)} other groups", small, "usual"))
    metrics.append(rows.total(always if names else "all", _footnote(builder, role)))
    title = f"{TITLE}, {role}, per {work.name}"
    return Group(f"cputime_{role}_{work.per}", title, builder.rows(metrics), section)


def _share(builder: RowBuilder, role: str, key: str) -> float:
    """Largest share of a group on any side, each the mean of its runs."""
    by_side = (_shares(side, role, key) for side in builder.sides)
    return max((sum(shares) / len(shares) for shares in by_side if shares), default=0.0)


def _shares(side: Sequence[Measured], role: str, key: str) -> list[float]:
    shares = []
    for run in side:
        part, cpu = run.quantities.get(f"profile.{role}.{key}"), run.quantities.get(f"process.{role}.cpu")
        if part and cpu and cpu.rate:
            shares.append(part.rate / cpu.rate)
    return shares


def _footnote(builder: RowBuilder, role: str) -> str:
    """Samples of each side, what they stand for, and how many stacks were truncated or lost."""
    texts = []
    for column in builder.columns:
        known = [run.quantities for run in column.runs if run.quantities.get(f"profiled.{role}.samples")]
        samples, truncated, lost, covered, hertz = (
            [quantity.rate for quantities in known if (quantity := quantities.get(f"profiled.{role}.{name}"))]
            for name in ("samples", "truncated", "lost", "covered", "hertz")
        )
        if samples:
            share = sum(n * part for n, part in zip(samples, truncated, strict=True)) / sum(samples)
            dropped = f", up to {numbers.percent(max(lost))} % lost" if any(lost) else ""
            if hertz:
                stand_for = f" of hardware cycles (effective number), {_range(hertz, 1e-9, '.2f')} GHz"
            elif covered:
                stand_for = f" of the CPU clock, {_range(covered, 100, '.0f')} %"
            else:
                stand_for = ", unknown share"
            shares = f"{stand_for} of the CPU time in /proc, {numbers.percent(share)} % truncated"
            texts.append(f"{column.name} {sum(samples):,.0f}{shares}{dropped}")
    return f"samples: {'; '.join(texts)}" if texts else ""


def _range(values: Sequence[float], scale: float, form: str) -> str:
    """Smallest and largest value."""
    return "–".join(dict.fromkeys(f"{scale * value:{form}}" for value in (min(values), max(values))))
