"""Reads Prometheus data for `loadprint import`: range queries of the HTTP API, or snapshots of /metrics."""

from __future__ import annotations

import argparse
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from loadprint.errors import InputError
from loadprint.importing import exposition, node
from loadprint.importing.imported import LAYOUTS, Entity, Imported, ImportedTable, columns_of, unit_of
from loadprint.reading import bounds, documents

SAVE = 'save the response of /api/v1/query_range, or of /api/v1/query with a range such as {job="node"}[1h]'
NAMED = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)[T_ ]?(\d\d)[:-]?(\d\d)[:-]?(\d\d)|(?<!\d)(\d{13}|\d{10})(?!\d)")
Rows = dict[tuple[Entity, int], dict[str, int | float]]


class PrometheusSeries(NamedTuple):
    """One series with its values by time (ns since 1970)."""

    name: str
    labels: Mapping[str, str]
    points: Mapping[int, float]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `import prometheus`."""
    parser.add_argument(
        "--instance", help="host whose node_exporter metrics fill the tables, if the files contain several"
    )


def read(arguments: argparse.Namespace) -> Imported:
    """Read the files. Raises InputError."""
    paths: list[Path] = arguments.paths
    series = _all(paths)
    if not any(one.points for one in series):
        raise InputError(", ".join(map(str, paths)), "contains no sample", SAVE)
    times = sorted({at for one in series for at in one.points})
    ticks = {at: tick for tick, at in enumerate(times)}
    instance = _instance(series, arguments.instance)
    of_host: list[tuple[node.Cell, PrometheusSeries]] = []
    others: list[PrometheusSeries] = []
    for one in series:
        place = node.cell(one.name, one.labels) if one.labels.get("instance") == instance else None
        if place:
            of_host.append((place, one))
        else:
            others.append(one)
    tables = [*_tables(of_host, ticks), _scrape(others, ticks)]
    return Imported(
        kind="prometheus",
        sources=[path.name for path in paths],
        realtime_ns=times,
        tables=[table for table in tables if len(table.ticks)],
        facts=_facts(series, instance),
    )


def _all(paths: Sequence[Path]) -> list[PrometheusSeries]:
    """Series of all files. Raises InputError, also above the limits of their number."""
    series: list[PrometheusSeries] = []
    samples = 0
    for path in paths:
        for one in _series(path):
            series.append(one)
            samples += len(one.points)
            if len(series) > bounds.SERIES or samples > bounds.SAMPLES:
                what = f"more than {bounds.SERIES:,} series or {bounds.SAMPLES:,} samples up to this file"
                raise InputError(path, what, "import fewer files at a time")
    return series


def _series(path: Path) -> Iterator[PrometheusSeries]:
    text = bounds.read_text(path, bounds.IMPORTED, SAVE)
    start = text.lstrip()[:9]
    if start[:1] in ("{", "["):
        try:
            return _matrix(path, documents.loads(text))
        except json.JSONDecodeError as error:
            # an exposition can also start with a brace
            if start[:2] != '{"' or start == '{"status"':
                what = f"not JSON at line {error.lineno} column {error.colno} ({error.msg})"
                raise InputError(path, what, SAVE) from error
        except ValueError as error:
            raise InputError(path, f"not valid JSON of Prometheus: {error}", SAVE) from error
    at = _time(path)
    # not the timestamp of a sample, which is the time of the exporter's measurement
    found = exposition.samples(path, text)
    return (PrometheusSeries(sample.name, sample.labels, {at: sample.value}) for sample in found)


def _matrix(path: Path, answer: Any) -> Iterator[PrometheusSeries]:
    """Series of a response of the HTTP API, or of `promtool query range -o json`, its result alone."""
    result = answer
    if isinstance(answer, dict):
        if answer.get("status") == "error":
            raise InputError(path, f"is an error response of Prometheus: {answer.get('error')}", SAVE)
        data = answer.get("data")
        data = data if isinstance(data, dict) else {}
        if data.get("resultType") != "matrix":
            raise InputError(path, f"has a result of type {data.get('resultType')!r}, not 'matrix'", SAVE)
        result = data.get("result") or []
    if not isinstance(result, list):
        raise InputError(path, "is not a list of series", SAVE)
    for number, one in enumerate(result):
        place = f"{path} series {number}"
        try:
            labels = {str(key): str(value) for key, value in one["metric"].items()}
            if "histograms" in one:
                raise InputError(place, "is a native histogram", "leave it out of the query")
            points = {round(float(at) * 1000) * 1_000_000: float(value) for at, value in one["values"]}
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise InputError(place, f"is not a series of a matrix ({error!r})", SAVE) from error
        yield PrometheusSeries(labels.pop("__name__", ""), labels, points)


def _time(path: Path) -> int:
    stamp = NAMED.search(path.name)
    if stamp is None:
        return path.stat().st_mtime_ns
    if stamp[7]:
        return int(stamp[7]) * (1_000_000_000 if len(stamp[7]) == 10 else 1_000_000)
    try:
        year, month, day, hour, minute, second = (int(part) for part in stamp.groups()[:6])
        named = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError as error:
        raise InputError(
            path, f"its name is not a valid time ({error})", "rename it, e.g. 2026-11-21T12:00:00Z.prom"
        ) from error
    return int(named.timestamp()) * 1_000_000_000


def _instance(series: Iterable[PrometheusSeries], asked: str | None) -> str | None:
    """Return the host's instance label; None without one. Raises InputError for several."""
    hosts = {one.labels.get("instance") for one in series if one.name == "node_cpu_seconds_total"}
    if asked is not None:
        if asked not in hosts:
            known = ", ".join(sorted(name for name in hosts if name)) or "none"
            raise InputError(f"--instance {asked}", "has no node_cpu_seconds_total", f"available: {known}")
        return asked
    if len(hosts) > 1:
        names = ", ".join(sorted(str(name) for name in hosts))
        raise InputError("the files", f"contain several hosts ({names})", "select one with --instance")
    return next(iter(hosts), None)


def _tables(
    of_host: Sequence[tuple[node.Cell, PrometheusSeries]], ticks: Mapping[int, int]
) -> Iterator[ImportedTable]:
    cells: dict[str, Rows] = defaultdict(dict)
    for (table, entity, column, factor), one in of_host:
        for at, value in one.points.items():
            row = cells[table].setdefault((entity, ticks[at]), {})
            row[column] = node.whole(value, factor)
    for table, rows in cells.items():
        metrics = sorted({entity[0] for entity, _ in rows} if table not in LAYOUTS else set())
        kind = {"kind": "gauge"} if table == "memory" else {}
        meanings = {name: {"unit": unit_of(table, name), **kind} for name in metrics}
        ticks_of_rows = [tick for _, tick in rows]
        yield ImportedTable(table, ticks_of_rows, columns_of(table, rows), meanings, "node_exporter")


def _scrape(others: Sequence[PrometheusSeries], ticks: Mapping[int, int]) -> ImportedTable:
    columns: dict[str, list[Any]] = {"tick": [], "endpoint": [], "metric": [], "value": []}
    for one in others:
        columns["tick"] += [ticks[at] for at in one.points]
        columns["endpoint"] += [one.labels.get("instance", "")] * len(one.points)
        columns["metric"] += [exposition.series_text(one.name, one.labels)] * len(one.points)
        columns["value"] += one.points.values()
    return ImportedTable("scrape", columns.pop("tick"), columns, source="prometheus")


def _facts(series: Iterable[PrometheusSeries], instance: str | None) -> dict[str, Any]:
    """Facts of the host from node_exporter's info metrics."""
    facts: dict[str, Any] = {"host": instance, "user_hz": node.USER_HZ}
    for one in series:
        if one.labels.get("instance") != instance:
            continue
        if one.name == "node_uname_info":
            facts |= {"host": one.labels.get("nodename", instance), "kernel": one.labels.get("release")}
        elif one.name == "node_cpu_info" and one.labels.get("model_name"):
            facts["cpus"] = {"model": one.labels["model_name"]}
    return facts
