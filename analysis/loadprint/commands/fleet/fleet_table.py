"""Computes the table of a fleet: groups of instances; the runs of an instance are averaged."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import duckdb
import ibis.expr.types as ir
import numpy as np
from numpy.typing import NDArray

from loadprint.catalogue.metric import Metric
from loadprint.errors import InputError
from loadprint.statistics import stats
from loadprint.tables.run_metrics import metrics as known_rows

DEFAULT_BY = ("instance_type", "workload", "side")
_GROUPABLE = (
    "instance_type instance host workload threads side server kernel profile campaign operation rate_asked"
)
GROUPABLE = _GROUPABLE.split()
Row = dict[str, Any]
OUTLIER = 3.5  # robust standard deviations (Iglewicz & Hoaglin 1993)
MIN_FOR_OUTLIERS = 5
DEFAULT_METRICS = (
    "operations",
    "latency_p99",
    "cpu_server_utilisation",
    "server_cpu_per_operation",
    "disk_data_await",
    "disk_write_kb_per_operation",
    "net_tx_per_operation",
)


class FleetLevel(NamedTuple):
    """One metric in one group: geometric mean over instances, their spread, the ratio to the reference.

    `cv` is the coefficient of variation between instances, `runs_cv` that between the runs of one
    (the median over instances); None below two.
    """

    mean: float | None = None
    cv: float | None = None
    runs_cv: float | None = None
    versus: stats.Estimate | None = None


class FleetGroup(NamedTuple):
    """Instances with equal values in the columns of `by`."""

    name: str
    instances: int
    runs: int
    levels: tuple[FleetLevel, ...]


class Outlier(NamedTuple):
    """An instance far from the others of its group; `ratio` is to their median."""

    group: str
    instance: str
    metric: Metric
    ratio: float


class Fleet(NamedTuple):
    """The table; `left_out` contains reasons and the number of runs excluded for each."""

    by: tuple[str, ...]
    metrics: tuple[Metric, ...]
    groups: tuple[FleetGroup, ...]
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


def fleet(lines: ir.Table, query: Query) -> Fleet:
    """Compute the table of a fleet from its data set, on the engine that has it.

    Raises InputError for unknown columns, metrics or references.
    """
    chosen, by = _chosen(query.metrics), query.by
    for name in (*by, *(name for name, _ in query.where)):
        if name not in GROUPABLE:
            raise InputError(
                f"column `{name}`", "not a column to group by", f"name one of {', '.join(GROUPABLE)}"
            )
    for name, value in query.where:
        lines = lines.filter(lines[name].cast("string") == value)
    kept, left_out = _kept(lines, query.everything)
    rows = _instances(kept, by, chosen)
    if not rows:
        raise InputError("the data set", "no run is left", "change --where, or add --everything")
    present = [metric for metric in chosen if any(f"mean {metric.key}" in row for row in rows)]
    return _laid_out(rows, by, present, query.reference, left_out)


def _chosen(keys: Sequence[str]) -> list[Metric]:
    rows = known_rows()
    unknown = [key for key in keys if key not in rows]
    if unknown:
        raise InputError(f"--metrics {unknown[0]}", "no such row", f"name one or more of {', '.join(rows)}")
    return [rows[key] for key in keys]


def _kept(lines: ir.Table, everything: bool) -> tuple[ir.Table, tuple[tuple[str, int], ...]]:
    """Select runs. Runs with a reset counter are always excluded: its increase is not known."""
    reasons = {"a counter was reset or wrapped": lines.oddities > 0}
    if not everything:
        reasons |= {
            "never settled": ~lines.settled & (lines.oddities == 0),
            "client-bound": lines.client_bound & lines.settled & (lines.oddities == 0),
        }
    counts = {why: lines.run.nunique(where=chosen) for why, chosen in reasons.items()}
    [counted] = _fetch(lines.aggregate(**counts))
    kept = lines.filter(lines.oddities == 0)
    if not everything:
        kept = kept.filter(kept.settled & ~kept.client_bound)
    return kept, tuple((why, int(count)) for why, count in counted.items() if count)


def _instances(lines: ir.Table, by: Sequence[str], metrics: Sequence[Metric]) -> list[Row]:
    """Return runs, mean and standard deviation of each metric, per group and instance."""
    keys = {f"by{place}": lines[name].cast("string") for place, name in enumerate(by)}
    grouped = lines.group_by(**keys, instance=lines.instance).agg(
        runs=lines.run.nunique(), operation=lines.operation.min(), last_operation=lines.operation.max()
    )
    rows = {_key(row, keys): row for row in _fetch(grouped.order_by([*keys, "instance"]))}
    chosen = lines.filter(lines.row.isin([metric.key for metric in metrics]))
    figures = chosen.group_by(**keys, instance=chosen.instance, row=chosen.row).agg(
        mean=chosen.value.mean(), deviation=chosen.value.std(how="sample")
    )
    for row in _fetch(figures):
        rows[_key(row, keys)] |= {
            f"mean {row['row']}": row["mean"],
            f"deviation {row['row']}": row["deviation"],
        }
    return list(rows.values())


def _key(row: Row, keys: Iterable[str]) -> tuple[Any, ...]:
    return (*(row[key] for key in keys), row["instance"])


def _fetch(expression: ir.Table) -> list[Row]:
    """Return rows, null as NaN or None; every engine of Ibis supports Arrow."""
    try:
        rows: list[Row] = expression.to_pyarrow().to_pylist()
    except duckdb.Error as error:
        what = str(error).strip().split("\n", maxsplit=1)[0]
        raise InputError("the data set", f"cannot be read ({what})", "export its runs again") from error
    return rows


def _laid_out(
    rows: Sequence[Row],
    by: tuple[str, ...],
    metrics: Sequence[Metric],
    reference: str | None,
    left_out: tuple[tuple[str, int], ...],
) -> Fleet:
    members: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        parts = [row[f"by{place}"] for place in range(len(by))]
        members.setdefault(tuple("?" if part is None else str(part) for part in parts), []).append(row)
    firsts: Counter[str] = Counter()
    for key, group in members.items():
        firsts[key[0]] += len(group)
    base = reference or firsts.most_common(1)[0][0]
    if base not in firsts:
        raise InputError(f"--reference {base}", f"no such {by[0]}", f"name one of {'; '.join(firsts)}")
    groups: list[FleetGroup] = []
    outliers: list[Outlier] = []
    for key, group in members.items():
        operations = {row[name] for row in group for name in ("operation", "last_operation")}
        if len(operations) > 1:
            what = f"mixes operations ({', '.join(sorted(map(str, operations)))})"
            raise InputError(f"--by {','.join(by)}", what, "add `workload` to it")
        others = members.get((base, *key[1:]), []) if key[0] != base else []
        other_operation = not others or group[0]["operation"] != others[0]["operation"]
        name, levels = " · ".join(key), []
        for metric in metrics:
            compared = [] if metric.per_operation and other_operation else others
            levels.append(_level(metric, group, compared))
            outliers += _outliers(name, metric, group)
        groups.append(FleetGroup(name, len(group), sum(row["runs"] for row in group), tuple(levels)))
    instances = len({row["instance"] for row in rows})
    return Fleet(by, tuple(metrics), tuple(groups), base, instances, tuple(outliers), left_out)


def _values(rows: Sequence[Row], metric: Metric) -> NDArray[np.float64]:
    values = [row.get(f"mean {metric.key}") for row in rows]
    return np.array([math.nan if value is None else value for value in values], dtype=np.float64)


def _level(metric: Metric, rows: Sequence[Row], others: Sequence[Row]) -> FleetLevel:
    """Return a metric's figures, and its ratio of geometric means to other instances."""
    values, base = _values(rows, metric), _values(others, metric)
    measured, base = values[~np.isnan(values)], base[~np.isnan(base)]
    if not len(measured):
        return FleetLevel()
    positive = (measured > 0).all()
    mean = float(np.exp(np.log(measured).mean())) if positive else float(measured.mean())
    cv = float(measured.std(ddof=1) / measured.mean()) if len(measured) > 1 and measured.mean() else None
    compared = len(base) and positive and (base > 0).all()
    versus = stats.ratio(measured.tolist(), base.tolist(), paired=False) if compared else None
    runs = [(row.get(f"mean {metric.key}"), row.get(f"deviation {metric.key}")) for row in rows]
    spreads = [
        deviation / mean
        for mean, deviation in runs
        if mean and deviation is not None and not math.isnan(deviation)
    ]
    return FleetLevel(mean, cv, float(np.median(spreads)) if spreads else None, versus)


def _outliers(group: str, metric: Metric, rows: Sequence[Row]) -> list[Outlier]:
    """Return instances over 3.5 robust standard deviations from the group's median, on the log scale."""
    values = _values(rows, metric)
    if len(values) < MIN_FOR_OUTLIERS or not (values > 0).all():
        return []
    logs = np.log(values)
    deviations = logs - np.median(logs)
    scale = float(np.median(np.abs(deviations))) * 1.4826
    if scale == 0:
        return []
    return [
        Outlier(group, str(rows[place]["instance"]), metric, float(np.exp(deviations[place])))
        for place in np.flatnonzero(np.abs(deviations) > OUTLIER * scale).tolist()
    ]
