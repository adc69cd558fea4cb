"""Computes the table of a fleet: groups of instances; the runs of an instance are averaged."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import duckdb
import ibis.expr.types as ir
import numpy as np
from numpy.typing import NDArray

from loadprint.commands.fleet import expressions
from loadprint.commands.fleet.expressions import DISK, NIC, Tables
from loadprint.errors import InputError
from loadprint.metrics import costs, derived, derived_cpu, derived_devices
from loadprint.metrics.derived import Metric
from loadprint.statistics import stats

DEFAULT_BY = ("instance_type", "workload", "side")
GROUPABLE = (
    "instance_type",
    "instance",
    "host",
    "workload",
    "threads",
    "side",
    "server",
    "kernel",
    "profile",
    "campaign",
    "operation",
    "rate_asked",
)
Means = dict[str, NDArray[np.object_]]
OUTLIER = 3.5  # robust standard deviations (Iglewicz & Hoaglin 1993)
MIN_FOR_OUTLIERS = 5
_COSTS = costs.cost_metrics(costs.OPERATION, costs.CostScope(DISK, NIC, host_switches=True))
METRICS: dict[str, Metric] = {
    metric.key: metric
    for metric in (
        *derived.THROUGHPUT,
        *derived.LATENCY,
        *derived_cpu.cpu_metrics("server"),
        *(metric.of(DISK) for metric in derived_devices.DISK),
        *(metric.of(NIC) for metric in derived_devices.NETWORK),
        *(metric for metric in derived.KERNEL if metric.key.endswith("_host")),
        *_COSTS,
    )
}
DEFAULT_METRICS = (
    "operations",
    "latency_p99",
    "cpu_server_utilisation",
    "server_cpu_per_operation",
    "disk_data_await",
    "disk_write_kb_per_operation",
    "net_tx_per_operation",
)


@dataclass(frozen=True)
class Level:
    """One metric in one group: geometric mean over instances, their spread, the ratio to the reference.

    `cv` is the coefficient of variation between instances, `runs_cv` that between the runs of one
    (the median over instances); None below two.
    """

    mean: float | None
    cv: float | None
    runs_cv: float | None
    versus: stats.Estimate | None


@dataclass(frozen=True)
class Group:
    """Instances with equal values in the columns of `by`."""

    name: str
    instances: int
    runs: int
    levels: tuple[Level, ...]


@dataclass(frozen=True)
class Outlier:
    """An instance far from the others of its group; `ratio` is to their median."""

    group: str
    instance: str
    metric: Metric
    ratio: float


@dataclass(frozen=True)
class Fleet:
    """The table; `left_out` contains reasons and the number of runs excluded for each."""

    by: tuple[str, ...]
    metrics: tuple[Metric, ...]
    groups: tuple[Group, ...]
    reference: str
    instances: int
    outliers: tuple[Outlier, ...]
    left_out: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Query:
    """The parameters of a table.

    Runs are grouped by the columns `by`. Ratios compare values of the first of them with
    `reference`, where all other columns are equal. `everything` includes drifting and client-bound
    runs.
    """

    by: tuple[str, ...] = DEFAULT_BY
    metrics: tuple[str, ...] = DEFAULT_METRICS
    where: tuple[tuple[str, str], ...] = ()
    reference: str | None = None
    everything: bool = False


def fleet(tables: Tables, query: Query) -> Fleet:
    """Compute the table of a fleet. Raises InputError for unknown columns, metrics or references."""
    chosen, by = _chosen(query.metrics), query.by
    for name in (*by, *(name for name, _ in query.where)):
        if name not in GROUPABLE:
            raise InputError(
                f"column `{name}`", "not a column of `runs`", f"name one of {', '.join(GROUPABLE)}"
            )
    runs = tables.runs
    for name, value in query.where:
        runs = runs.filter(runs[name].cast("string") == value)
    kept, left_out = _kept(runs, query.everything)
    wide = expressions.quantities(Tables(kept, tables.sets, tables.ticks, tables.probes), chosen)
    present = expressions.available(wide, chosen)
    means = _instances(expressions.with_metrics(wide, present), by, present)
    if not len(means["instance"]):
        raise InputError("the data set", "no run is left", "change --where, or add --everything")
    _one_operation(means, by)
    return _laid_out(means, by, present, query.reference, left_out)


def _chosen(keys: Sequence[str]) -> list[Metric]:
    unknown = [key for key in keys if key not in METRICS]
    if unknown:
        raise InputError(
            f"--metrics {unknown[0]}", "no such row", f"name one or more of {', '.join(METRICS)}"
        )
    return [METRICS[key] for key in keys]


def _kept(runs: ir.Table, everything: bool) -> tuple[ir.Table, tuple[tuple[str, int], ...]]:
    """Select runs. Runs with a reset counter are always excluded: its increase is not known."""
    reasons = {"a counter was reset or wrapped": runs.oddities > 0}
    if not everything:
        reasons |= {
            "never settled": ~runs.settled & (runs.oddities == 0),
            "client-bound": runs.client_bound & runs.settled & (runs.oddities == 0),
        }
    counted = runs.aggregate(**{f"r{place}": why.sum() for place, why in enumerate(reasons.values())})
    numbers = _fetch(counted)
    left_out = [(why, int(numbers[f"r{place}"][0] or 0)) for place, why in enumerate(reasons)]
    kept = runs.filter(runs.oddities == 0)
    if not everything:
        kept = kept.filter(kept.settled & ~kept.client_bound)
    return kept, tuple((why, count) for why, count in left_out if count)


def _instances(rows: ir.Table, by: Sequence[str], metrics: Sequence[Metric]) -> Means:
    """Return runs, mean and standard deviation of each metric, per group and instance."""
    keys = {f"by{place}": rows[name].cast("string") for place, name in enumerate(by)}
    figures: dict[str, ir.Value] = {}
    for place, metric in enumerate(metrics):
        figures |= {f"m{place}": rows[metric.key].mean(), f"s{place}": rows[metric.key].std(how="sample")}
    means = rows.group_by(**keys, instance=rows.instance).agg(
        runs=rows.count(), operation=rows.operation.min(), last_operation=rows.operation.max(), **figures
    )
    return _fetch(means.order_by([*keys, "instance"]))


def _fetch(expression: ir.Table) -> Means:
    """Return columns as arrays of objects, null as NaN or None; every engine of Ibis supports Arrow."""
    try:
        table = expression.to_pyarrow()
    except duckdb.Error as error:
        what = str(error).strip().split("\n", maxsplit=1)[0]
        raise InputError("the data set", f"cannot be read ({what})", "export its runs again") from error
    return {name: np.array(table.column(name).to_pylist(), dtype=object) for name in table.column_names}


def _one_operation(means: Means, by: Sequence[str]) -> None:
    for first, last in zip(means["operation"], means["last_operation"], strict=True):
        if first != last:
            raise InputError(
                f"--by {','.join(by)}", f"mixes operations ({first}, {last})", "add `workload` to it"
            )


def _laid_out(
    means: Means,
    by: tuple[str, ...],
    metrics: Sequence[Metric],
    reference: str | None,
    left_out: tuple[tuple[str, int], ...],
) -> Fleet:
    rows = list(
        zip(*([_text(part) for part in means[f"by{place}"]] for place in range(len(by))), strict=True)
    )
    firsts = Counter(row[0] for row in rows)
    base = reference or firsts.most_common(1)[0][0]
    if base not in firsts:
        raise InputError(f"--reference {base}", f"no such {by[0]}", f"name one of {'; '.join(firsts)}")
    members = {row: np.array([each == row for each in rows]) for row in dict.fromkeys(rows)}
    groups: list[Group] = []
    outliers: list[Outlier] = []
    operation = means["operation"]
    for row, chosen in members.items():
        other = members.get((base, *row[1:])) if row[0] != base else None
        name, levels = " · ".join(row), []
        same_operation = other is not None and operation[chosen][0] == operation[other][0]
        for place, metric in enumerate(metrics):
            values = _values(means, chosen, place)
            compared = other if same_operation or not metric.per_operation else None
            versus = None if compared is None else _versus(values, _values(means, compared, place))
            levels.append(_level(values, versus, _spread(means, chosen, place)))
            outliers += _outliers(name, metric, means["instance"][chosen], values)
        runs = sum(int(each) for each in means["runs"][chosen])
        groups.append(Group(name, int(chosen.sum()), runs, tuple(levels)))
    instances = len(set(means["instance"].tolist()))
    return Fleet(by, tuple(metrics), tuple(groups), base, instances, tuple(outliers), left_out)


def _values(means: Means, chosen: NDArray[np.bool_], place: int) -> NDArray[np.float64]:
    return np.array([math.nan if v is None else v for v in means[f"m{place}"][chosen]], dtype=np.float64)


def _spread(means: Means, chosen: NDArray[np.bool_], place: int) -> float | None:
    """Return the median over instances of the coefficient of variation between the runs of one."""
    by_instance = [
        deviation / mean
        for mean, deviation in zip(means[f"m{place}"][chosen], means[f"s{place}"][chosen], strict=True)
        if mean and deviation is not None and not math.isnan(deviation)
    ]
    return float(np.median(by_instance)) if by_instance else None


def _level(values: NDArray[np.float64], versus: stats.Estimate | None, runs_cv: float | None) -> Level:
    known = values[~np.isnan(values)]
    if not len(known):
        return Level(None, None, None, None)
    mean = float(np.exp(np.log(known).mean())) if (known > 0).all() else float(known.mean())
    cv = float(known.std(ddof=1) / known.mean()) if len(known) > 1 and known.mean() else None
    return Level(mean, cv, runs_cv, versus)


def _versus(values: NDArray[np.float64], others: NDArray[np.float64]) -> stats.Estimate | None:
    """Return the ratio of geometric means over instances; None without values, or with a zero."""
    known, base = values[~np.isnan(values)], others[~np.isnan(others)]
    if not len(known) or not len(base) or not (known > 0).all() or not (base > 0).all():
        return None
    return stats.ratio(known.tolist(), base.tolist(), paired=False)


def _outliers(
    group: str, metric: Metric, instances: NDArray[np.object_], values: NDArray[np.float64]
) -> list[Outlier]:
    """Return instances over 3.5 robust standard deviations from the group's median, on the log scale."""
    if len(values) < MIN_FOR_OUTLIERS or not (values > 0).all():
        return []
    logs = np.log(values)
    deviations = logs - np.median(logs)
    scale = float(np.median(np.abs(deviations))) * 1.4826
    if scale == 0:
        return []
    return [
        Outlier(group, str(instances[place]), metric, float(np.exp(deviations[place])))
        for place in np.flatnonzero(np.abs(deviations) > OUTLIER * scale)
    ]


def _text(part: object) -> str:
    return "?" if part is None else str(part)
