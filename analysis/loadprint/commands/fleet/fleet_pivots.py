"""Converts a fleet's table to pivot tables, which have renderers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from loadprint.catalogue.metric import Metric
from loadprint.commands.fleet.fleet_table import Fleet, FleetLevel
from loadprint.numbers import ratio
from loadprint.rendering.pivot import Pivot, PivotReport

MAX_OUTLIERS = 12
SHORT_HEADS = {
    "operations": "ops/s",
    "latency_p99": "p99 ms",
    "cpu_server_utilisation": "CPU %",
    "server_cpu_per_operation": "CPU µs/op",
    "disk_data_await": "await ms",
    "disk_write_kb_per_operation": "disk kB/op",
    "net_tx_per_operation": "sent B/op",
}
Value = Callable[[FleetLevel, Metric], float | None]
FIGURES: tuple[tuple[str, str, str, Value], ...] = (  # key, title, unit, value
    ("level", "Level", "", lambda level, metric: _times(level.mean, metric.factor)),
    ("ratio", "Ratio to {reference}", "", lambda level, _: getattr(level.versus, "centre", None)),
    ("ratio_low", "Ratio, lower 95 % bound", "", lambda level, _: getattr(level.versus, "low", None)),
    ("ratio_high", "Ratio, upper 95 % bound", "", lambda level, _: getattr(level.versus, "high", None)),
    ("between", "Spread between instances", "CV %", lambda level, _: _times(level.cv, 100)),
    ("within", "Spread between the runs of an instance", "CV %", lambda level, _: _times(level.runs_cv, 100)),
)


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def report(fleet: Fleet, url: str) -> PivotReport:
    """Return pivots of levels, ratios to the reference, and spread, and sentences about outliers."""
    facts = [
        ("data set", url),
        ("groups", f"by {', '.join(fleet.by)}; ratios to {fleet.reference}"),
        (
            "counted",
            f"{sum(group.runs for group in fleet.groups)} runs of {fleet.instances} instances"
            + "".join(f"; excluded {count}: {why}" for why, count in fleet.left_out),
        ),
        ("method", "geometric mean over instances, each the mean of its runs; the instance is the unit"),
    ]
    return PivotReport("Fleet", tuple(facts), tuple(_pivots(fleet)), _sentences(fleet), _warnings(fleet))


def _pivots(fleet: Fleet) -> Iterator[Pivot]:
    """The number of instances and runs, and each figure that some group has."""
    names = tuple(group.name for group in fleet.groups)
    counts = tuple((float(group.instances), float(group.runs)) for group in fleet.groups)
    yield Pivot("counts", "Counts", "", "group", names, ("instances", "runs"), counts)
    heads = tuple(
        SHORT_HEADS.get(metric.key) or f"{_name(metric)} {metric.shown}".strip() for metric in fleet.metrics
    )
    for key, title, unit, value in FIGURES:
        cells = tuple(
            tuple(value(level, metric) for level, metric in zip(group.levels, fleet.metrics, strict=True))
            for group in fleet.groups
        )
        if any(cell is not None for row in cells for cell in row):
            named = title.format(reference=fleet.reference)
            yield Pivot(key, named, unit, "group", names, heads, cells, columns_differ=True)


def _name(metric: Metric) -> str:
    """Return the label of a metric; a cost and its rate have the same label."""
    return f"{metric.label} per operation" if metric.key.endswith("_per_operation") else metric.label


def _sentences(fleet: Fleet) -> tuple[str, ...]:
    sentences = [
        f"{outlier.instance} is an outlier in {outlier.group}: "
        f"{_name(outlier.metric)} {ratio(outlier.ratio)} × the median."
        for outlier in fleet.outliers[:MAX_OUTLIERS]
    ]
    if len(fleet.outliers) > MAX_OUTLIERS:
        sentences.append(f"{len(fleet.outliers) - MAX_OUTLIERS} more outliers (all in --format json).")
    return tuple(sentences)


def _warnings(fleet: Fleet) -> tuple[str, ...]:
    few = [group.name for group in fleet.groups if group.instances < 3]
    if not few:
        return ()
    named = "; ".join(few[:3]) + ("; …" if len(few) > 3 else "")
    return (f"no interval for {named}: a type needs three or more instances",)
