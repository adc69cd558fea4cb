"""A fleet's table as pivot tables, which text, Markdown, CSV and JSON know how to write."""

from __future__ import annotations

from collections.abc import Callable

from loadprint.fleet.table import Fleet, Level
from loadprint.numbers import ratio
from loadprint.pivot import Pivot, Report

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
    factors = [metric.factor for metric in fleet.metrics]
    heads = tuple(SHORT.get(metric.key, f"{metric.label} {metric.shown}".strip()) for metric in fleet.metrics)
    rows = tuple(group.name for group in fleet.groups)

    def pivot(
        key: str, title: str, unit: str, cell: Callable[[Level, float], float | None], note: str = ""
    ) -> Pivot:
        cells = tuple(
            tuple(cell(level, factor) for level, factor in zip(group.levels, factors, strict=True))
            for group in fleet.groups
        )
        return Pivot(key, title, unit, "group", rows, heads, cells, note, columns_differ=True)

    counts = Pivot(
        "counts",
        "How many",
        "",
        "group",
        rows,
        ("instances", "runs"),
        tuple((float(group.instances), float(group.runs)) for group in fleet.groups),
    )
    found = [
        counts,
        pivot(
            "level", "Level", "", lambda level, factor: None if level.mean is None else level.mean * factor
        ),
    ]
    if len(fleet.groups) > 1:
        found += [
            pivot(
                "ratio",
                f"Ratio to {fleet.reference}",
                "",
                lambda level, _: level.versus.centre if level.versus else None,
            ),
            pivot(
                "ratio_low",
                "Ratio, lower 95 % bound",
                "",
                lambda level, _: level.versus.low if level.versus else None,
            ),
            pivot(
                "ratio_high",
                "Ratio, upper 95 % bound",
                "",
                lambda level, _: level.versus.high if level.versus else None,
            ),
        ]
    found += [
        pivot(
            "between",
            "Spread between instances",
            "CV %",
            lambda level, _: None if level.cv is None else 100 * level.cv,
        ),
        pivot(
            "within",
            "Spread between the runs of an instance",
            "CV %",
            lambda level, _: None if level.runs_cv is None else 100 * level.runs_cv,
        ),
    ]
    return tuple(pivot for pivot in found if any(cell is not None for row in pivot.cells for cell in row))


def _sentences(fleet: Fleet) -> tuple[str, ...]:
    told = [
        f"{each.instance} stands out in {each.group}: {each.metric.label} {ratio(each.ratio)} × its median."
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
