"""A fleet's table as pivot tables, which text, Markdown, CSV and JSON know how to write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from loadprint.commands.fleet.fleet_table import Fleet, Level
from loadprint.metrics.derived import Metric
from loadprint.numbers import ratio
from loadprint.rendering.pivot import Pivot, Report

MOST_OUTLIERS = 12
SHORT = {
    "operations": "ops/s",
    "latency_p99": "p99 ms",
    "cpu_server_utilisation": "CPU %",
    "server_cpu_per_operation": "CPU µs/op",
    "disk_data_await": "await ms",
    "disk_write_kb_per_operation": "disk kB/op",
    "net_tx_per_operation": "sent B/op",
}


@dataclass(frozen=True)
class Shown:
    """One pivot of all metrics: what of a metric's level stands in its cells."""

    key: str
    title: str
    unit: str
    cell: Callable[[Level, Metric], float | None]


LEVELS = (
    Shown(
        "level", "Level", "", lambda level, metric: None if level.mean is None else level.mean * metric.factor
    ),
)
RATIOS = (
    Shown(
        "ratio", "Ratio to {reference}", "", lambda level, _: level.versus.centre if level.versus else None
    ),
    Shown(
        "ratio_low",
        "Ratio, lower 95 % bound",
        "",
        lambda level, _: level.versus.low if level.versus else None,
    ),
    Shown(
        "ratio_high",
        "Ratio, upper 95 % bound",
        "",
        lambda level, _: level.versus.high if level.versus else None,
    ),
)
SPREADS = (
    Shown("between", "Spread between instances", "CV %", lambda level, _: _percent(level.cv)),
    Shown(
        "within", "Spread between the runs of an instance", "CV %", lambda level, _: _percent(level.runs_cv)
    ),
)


def report(fleet: Fleet, url: str) -> Report:
    """Lay a fleet out: levels, ratios to the reference, spread between instances, then who stands out."""
    facts = [
        ("data set", url),
        ("groups", f"by {', '.join(fleet.by)}; ratios to {fleet.reference}"),
        (
            "counted",
            f"{sum(group.runs for group in fleet.groups)} runs of {fleet.instances} instances"
            + "".join(f"; left out {count}: {why}" for why, count in fleet.left_out),
        ),
        ("method", "geometric mean over instances, each the mean of its runs; the instance is the unit"),
    ]
    return Report("Fleet", tuple(facts), _pivots(fleet), _sentences(fleet), _warnings(fleet))


def _pivots(fleet: Fleet) -> tuple[Pivot, ...]:
    columns = (*LEVELS, *(RATIOS if len(fleet.groups) > 1 else ()), *SPREADS)
    found = [_counts(fleet), *(_pivot(fleet, column) for column in columns)]
    return tuple(pivot for pivot in found if any(cell is not None for row in pivot.cells for cell in row))


def _counts(fleet: Fleet) -> Pivot:
    cells = tuple((float(group.instances), float(group.runs)) for group in fleet.groups)
    return Pivot("counts", "How many", "", "group", _names(fleet), ("instances", "runs"), cells)


def _pivot(fleet: Fleet, shown: Shown) -> Pivot:
    heads = tuple(_headed(metric) for metric in fleet.metrics)
    cells = tuple(
        tuple(shown.cell(level, metric) for level, metric in zip(group.levels, fleet.metrics, strict=True))
        for group in fleet.groups
    )
    title = shown.title.format(reference=fleet.reference)
    return Pivot(shown.key, title, shown.unit, "group", _names(fleet), heads, cells, columns_differ=True)


def _headed(metric: Metric) -> str:
    """Head of a column: a cost says that it is one, for its label alone is that of a rate."""
    return SHORT.get(metric.key) or f"{_named(metric)} {metric.shown}".strip()


def _named(metric: Metric) -> str:
    return f"{metric.label} per operation" if metric.key.endswith("_per_operation") else metric.label


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _names(fleet: Fleet) -> tuple[str, ...]:
    return tuple(group.name for group in fleet.groups)


def _sentences(fleet: Fleet) -> tuple[str, ...]:
    told = [
        f"{each.instance} stands out in {each.group}: {_named(each.metric)} {ratio(each.ratio)} × its median."
        for each in fleet.outliers[:MOST_OUTLIERS]
    ]
    if len(fleet.outliers) > MOST_OUTLIERS:
        told.append(f"and {len(fleet.outliers) - MOST_OUTLIERS} more that stand out (all in --format json).")
    return tuple(told)


def _warnings(fleet: Fleet) -> tuple[str, ...]:
    few = [group.name for group in fleet.groups if group.instances < 3]
    if not few:
        return ()
    named = "; ".join(few[:3]) + ("; …" if len(few) > 3 else "")
    return (f"fewer than three instances tell nothing about a type: no interval for {named}",)
