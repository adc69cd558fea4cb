"""A fleet's table: groups of instances side by side. The instance is the unit: its runs are averaged."""

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
FAR_OUT = 3.5  # robust standard deviations (Iglewicz & Hoaglin 1993)
LEAST_FOR_OUTLIERS = 5
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

    `cv` is the coefficient of variation between instances, `runs_cv` that between the runs of one (the median
    over instances); None below two.
    """

    mean: float | None
    cv: float | None
    runs_cv: float | None
    versus: stats.Estimate | None


@dataclass(frozen=True)
class Group:
    """Instances that agree in the columns of `by`."""

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
    """The whole table; `left_out` says how many runs were not counted, and why."""

    by: tuple[str, ...]
    metrics: tuple[Metric, ...]
    groups: tuple[Group, ...]
    reference: str
    instances: int
    outliers: tuple[Outlier, ...]
    left_out: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Question:
    """What is asked of a fleet.

    Groups are made by the columns `by`; ratios are between values of the first of them, `reference` being
    one, where all others are the same. `everything` counts drifting and client-bound runs too.
    """

    by: tuple[str, ...] = DEFAULT_BY
    metrics: tuple[str, ...] = DEFAULT_METRICS
    where: tuple[tuple[str, str], ...] = ()
    reference: str | None = None
    everything: bool = False


def fleet(tables: Tables, asked: Question) -> Fleet:
    """Table of a fleet. Raises InputError where it asks for what is not there."""
    chosen, by = _chosen(asked.metrics), asked.by
    for name in (*by, *(name for name, _ in asked.where)):
        if name not in GROUPABLE:
            raise InputError(
                f"column `{name}`", "is none of a run's facts", f"name one of {', '.join(GROUPABLE)}"
            )
    runs = tables.runs
    for name, value in asked.where:
        runs = runs.filter(runs[name].cast("string") == value)
    kept, left_out = _kept(runs, asked.everything)
    wide = expressions.quantities(Tables(kept, tables.sets, tables.ticks, tables.probes), chosen)
    present = expressions.available(wide, chosen)
    means = _instances(expressions.with_metrics(wide, present), by, present)
    if not len(means["instance"]):
        raise InputError("the data set", "holds no run that counts", "look at --where, or take --everything")
    _one_operation(means, by)
    return _laid_out(means, by, present, asked.reference, left_out)


def _chosen(keys: Sequence[str]) -> list[Metric]:
    unknown = [key for key in keys if key not in METRICS]
    if unknown:
        raise InputError(
            f"--metrics {unknown[0]}", "is no row of a fleet", f"name some of {', '.join(METRICS)}"
        )
    return [METRICS[key] for key in keys]


def _kept(runs: ir.Table, everything: bool) -> tuple[ir.Table, tuple[tuple[str, int], ...]]:
    """Runs that count. One whose counters were reset never does: what they rose by is not known."""
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
    """One row per group and instance: how many runs, and the mean and standard deviation of each metric."""
    keys = {f"by{place}": rows[name].cast("string") for place, name in enumerate(by)}
    figures: dict[str, ir.Value] = {}
    for place, metric in enumerate(metrics):
        figures |= {f"m{place}": rows[metric.key].mean(), f"s{place}": rows[metric.key].std(how="sample")}
    found = rows.group_by(**keys, instance=rows.instance).agg(
        runs=rows.count(), least=rows.operation.min(), most=rows.operation.max(), **figures
    )
    return _fetch(found.order_by([*keys, "instance"]))


def _fetch(expression: ir.Table) -> Means:
    """Columns as arrays of objects, null as NaN or None; by Arrow, which every engine of Ibis can."""
    try:
        table = expression.to_pyarrow()
    except duckdb.Error as error:
        what = str(error).strip().split("\n", maxsplit=1)[0]
        raise InputError("the data set", f"cannot be read ({what})", "export its runs again") from error
    return {name: np.array(table.column(name).to_pylist(), dtype=object) for name in table.column_names}


def _one_operation(means: Means, by: Sequence[str]) -> None:
    for least, most in zip(means["least"], means["most"], strict=True):
        if least != most:
            raise InputError(
                f"--by {','.join(by)}", f"mixes operations ({least}, {most})", "add `workload` to it"
            )


def _laid_out(
    means: Means,
    by: tuple[str, ...],
    metrics: Sequence[Metric],
    reference: str | None,
    left_out: tuple[tuple[str, int], ...],
) -> Fleet:
    rows = list(
        zip(*([_said(part) for part in means[f"by{place}"]] for place in range(len(by))), strict=True)
    )
    firsts = Counter(row[0] for row in rows)
    base = reference or firsts.most_common(1)[0][0]
    if base not in firsts:
        raise InputError(f"--reference {base}", f"is no {by[0]} here", f"name one of {'; '.join(firsts)}")
    members = {row: np.array([each == row for each in rows]) for row in dict.fromkeys(rows)}
    groups: list[Group] = []
    outliers: list[Outlier] = []
    for row, own in members.items():
        other = members.get((base, *row[1:])) if row[0] != base else None
        name, levels = " · ".join(row), []
        for place, metric in enumerate(metrics):
            values = _values(means, own, place)
            alike = other is not None and means["least"][own][0] == means["least"][other][0]
            compared = other if alike or not metric.per_operation else None
            versus = None if compared is None else _versus(values, _values(means, compared, place))
            levels.append(_level(values, versus, _spread(means, own, place)))
            outliers += _outliers(name, metric, means["instance"][own], values)
        runs = sum(int(each) for each in means["runs"][own])
        groups.append(Group(name, int(own.sum()), runs, tuple(levels)))
    instances = len(set(means["instance"].tolist()))
    return Fleet(by, tuple(metrics), tuple(groups), base, instances, tuple(outliers), left_out)


def _values(means: Means, chosen: NDArray[np.bool_], place: int) -> NDArray[np.float64]:
    return np.array([math.nan if v is None else v for v in means[f"m{place}"][chosen]], dtype=np.float64)


def _spread(means: Means, chosen: NDArray[np.bool_], place: int) -> float | None:
    """Median over instances of the coefficient of variation between the runs of one."""
    found = [
        deviation / mean
        for mean, deviation in zip(means[f"m{place}"][chosen], means[f"s{place}"][chosen], strict=True)
        if mean and deviation is not None and not math.isnan(deviation)
    ]
    return float(np.median(found)) if found else None


def _level(values: NDArray[np.float64], versus: stats.Estimate | None, runs_cv: float | None) -> Level:
    known = values[~np.isnan(values)]
    if not len(known):
        return Level(None, None, None, None)
    mean = float(np.exp(np.log(known).mean())) if (known > 0).all() else float(known.mean())
    cv = float(known.std(ddof=1) / known.mean()) if len(known) > 1 and known.mean() else None
    return Level(mean, cv, runs_cv, versus)


def _versus(values: NDArray[np.float64], others: NDArray[np.float64]) -> stats.Estimate | None:
    """Ratio of geometric means over instances; None where a value is zero, or there is none."""
    own, base = values[~np.isnan(values)], others[~np.isnan(others)]
    if not len(own) or not len(base) or not (own > 0).all() or not (base > 0).all():
        return None
    return stats.ratio(own.tolist(), base.tolist(), paired=False)


def _outliers(
    group: str, metric: Metric, instances: NDArray[np.object_], values: NDArray[np.float64]
) -> list[Outlier]:
    """Instances whose logarithm is over 3.5 robust standard deviations from the group's median."""
    if len(values) < LEAST_FOR_OUTLIERS or not (values > 0).all():
        return []
    logs = np.log(values)
    apart = logs - np.median(logs)
    scale = float(np.median(np.abs(apart))) * 1.4826
    if scale == 0:
        return []
    return [
        Outlier(group, str(instances[place]), metric, float(np.exp(apart[place])))
        for place in np.flatnonzero(np.abs(apart) > FAR_OUT * scale)
    ]


def _said(part: object) -> str:
    return "?" if part is None else str(part)
