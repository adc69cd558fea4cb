"""Reads Prometheus data for `loadprint import`: range queries of the HTTP API, or snapshots of /metrics."""

from __future__ import annotations

import argparse
import json
import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from loadprint.errors import InputError
from loadprint.importing import exposition, node
from loadprint.importing.imported import LAYOUTS, Entity, Imported, ImportedTable, columns_of, unit_of_metric
from loadprint.reading import bounds, strict_json

SAVE = 'save the response of /api/v1/query_range, or of /api/v1/query with a range such as {job="node"}[1h]'
NAMED = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)[T_ ]?(\d\d)[:-]?(\d\d)[:-]?(\d\d)|(?<!\d)(\d{13}|\d{10})(?!\d)")
STATED = re.compile(r"^node_time(?:_seconds)?(?:\{.*\})?[ \t]+(\S+)", re.MULTILINE)
LABELLED = re.compile(r"([a-zA-Z_][a-zA-Z0-9_]*)=(.*)", re.DOTALL)
Rows = dict[tuple[Entity, int], dict[str, int | float]]
Labels = Mapping[str, str]
OfHost = list[tuple[node.NodeCell, "PrometheusSeries"]]


class PrometheusSeries(NamedTuple):
    """One series with its values by time (ns since 1970)."""

    name: str
    labels: Labels
    points: dict[int, float]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `import prometheus`."""
    parser.add_argument(
        "--instance",
        action="append",
        default=[],
        metavar="VALUE|LABEL=VALUE",
        help="host whose node_exporter metrics fill the tables, if the files contain several: its label"
        " `instance`, or another label, as in agent_hostname=web1 (repeatable: all must match)",
    )


def read(arguments: argparse.Namespace) -> Imported:
    """Read the files. Raises InputError."""
    paths: list[Path] = arguments.paths
    series = _all(paths)
    if not any(one.points for one in series):
        raise InputError(", ".join(map(str, paths)), "contains no sample", SAVE)
    times = sorted({at for one in series for at in one.points})
    ticks = {at: tick for tick, at in enumerate(times)}
    placed = [(node.cell(one.name, one.labels), one) for one in series]
    host = _host([one.labels for place, one in placed if place], arguments.instance)
    of_host: OfHost = []
    others: list[PrometheusSeries] = []
    unread: set[str] = set()
    for place, one in placed:
        is_of_host = _matches(one.labels, host)
        if place and is_of_host:
            of_host.append((place, one))
        else:
            others.append(one)
            unread |= {one.name} if is_of_host else set()
    _require_one_host(of_host)
    negative = _without_negative(of_host)
    left_out = sorted(filter(node.is_left_out, unread))
    tables = [*_tables(of_host, ticks), _scrape(others, ticks)]
    notes = [f"metrics of node_exporter that no table has: {', '.join(left_out)}"] if left_out else []
    notes += [f"negative values are no readings: {', '.join(negative)}"] if negative else []
    return Imported(
        kind="prometheus",
        sources=[path.name for path in paths],
        realtime_ns=times,
        tables=[table for table in tables if len(table.ticks)],
        facts=_facts(series, host, notes),
        notes=notes,
    )


def _all(paths: Sequence[Path]) -> Collection[PrometheusSeries]:
    """Series of all files, each once. Raises InputError, also for two values at one time or above a limit."""
    merged: dict[tuple[str, frozenset[tuple[str, str]]], PrometheusSeries] = {}
    number = samples = 0
    for path in paths:
        for name, labels, points in _series(path):
            number += 1
            samples += len(points)
            if number > bounds.SERIES or samples > bounds.SAMPLES:
                what = f"more than {bounds.SERIES:,} series or {bounds.SAMPLES:,} samples up to this file"
                raise InputError(path, what, "import fewer files at a time")
            key = name, frozenset(labels.items())
            one = merged.setdefault(key, PrometheusSeries(name, labels, {}))
            for at, value in points:
                first = one.points.setdefault(at, value)
                if first != value and not (math.isnan(first) and math.isnan(value)):
                    series = exposition.series_text(name, labels)
                    when = f"at {at // 1_000_000_000} s since 1970"
                    what = f"`{series}` has two values {when}, {first:.15g} and {value:.15g}"
                    raise InputError(path, what, "import one snapshot per point in time, of one exporter")
    return merged.values()


def _series(path: Path) -> Iterator[tuple[str, Labels, list[tuple[int, float]]]]:
    """Names, labels and samples (ns since 1970, value) of one file's series."""
    text = bounds.read_text(path, bounds.IMPORTED, SAVE)
    start = text.lstrip()[:9]
    if start[:1] in ("{", "["):
        try:
            return _matrix(path, strict_json.loads(text))
        except json.JSONDecodeError as error:
            # an exposition can also start with a brace
            if start[:2] != '{"' or start == '{"status"':
                what = f"not JSON at line {error.lineno} column {error.colno} ({error.msg})"
                raise InputError(path, what, SAVE) from error
        except ValueError as error:
            raise InputError(path, f"not valid JSON of Prometheus: {error}", SAVE) from error
    at = _stated(text) or _time(path)
    # not the timestamps of samples: exporters stamp single samples, with the times of their own caches
    samples = exposition.samples(path, text)
    return ((sample.name, sample.labels, [(at, sample.value)]) for sample in samples)


def _matrix(path: Path, answer: Any) -> Iterator[tuple[str, Labels, list[tuple[int, float]]]]:
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
            points = [(_ns(at), float(value)) for at, value in one["values"]]
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise InputError(place, f"is not a series of a matrix ({error!r})", SAVE) from error
        yield labels.pop("__name__", ""), labels, points


def _ns(seconds: Any) -> int:
    """Seconds since 1970 in ns, rounded to Prometheus's ms. Raises ValueError, TypeError, OverflowError."""
    return round(float(seconds) * 1000) * 1_000_000


def _stated(text: str) -> int | None:
    """The host's own time in a snapshot of its node_exporter; None without one, or with those of several.

    It is the time of the measurement; that of a file is the time of its last copy, or in an unknown zone.
    """
    stated = set(STATED.findall(text))
    try:
        [at] = map(_ns, stated)
    except (ValueError, OverflowError):
        return None
    return at


def _time(path: Path) -> int:
    """The time in a file's name, in UTC, else that of its last change. Raises InputError."""
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


def _host(labelled: Sequence[Labels], asked: Sequence[str]) -> dict[str, str]:
    """Labels that select the host's series: those asked for, else its instance. Raises InputError."""
    host: dict[str, str] = {}
    for text in asked:
        label, value = match.groups() if (match := LABELLED.fullmatch(text)) else ("instance", text)
        host[label] = value
        if not any(_matches(labels, host) for labels in labelled):
            choices = ", ".join(sorted({labels[label] for labels in labelled if label in labels})) or "none"
            raise InputError(f"--instance {text}", "has no metric of node_exporter", f"available: {choices}")
    instances = {labels.get("instance", "") for labels in labelled if _matches(labels, host)}
    if len(instances) > 1:
        raise _several({"instance": instances})
    return host or {"instance": next(iter(instances), "")}


def _matches(labels: Labels, wanted: Labels) -> bool:
    """Whether series have these labels; a missing label is an empty one, as in PromQL."""
    return all(labels.get(label, "") == value for label, value in wanted.items())


def _require_one_host(of_host: OfHost) -> None:
    """Refuse series that differ in labels and not in their cell of a table: those of several hosts."""
    cells: dict[tuple[str, Entity, str], list[Labels]] = defaultdict(list)
    for place, one in of_host:
        cells[place[:3]].append({name: one.labels[name] for name in one.labels.keys() - node.OF_VERSIONS})
    differing: dict[str, set[str]] = defaultdict(set)
    for labelled in cells.values():
        for label in {label for labels in labelled for label in labels} if len(labelled) > 1 else ():
            values = {labels.get(label, "") for labels in labelled}
            if len(values) > 1:
                differing[label] |= values
    if differing:
        raise _several(differing)


def _without_negative(of_host: OfHost) -> list[str]:
    """Remove negative counts, times and sizes, and return their names. A few of tcp and vmstat can be so."""
    names = set()
    for place, one in of_host:
        if place.table not in ("tcp", "vmstat"):
            for at in [at for at, value in one.points.items() if value < 0]:
                del one.points[at]
                names.add(one.name)
    return sorted(names)


def _several(differing: Mapping[str, set[str]]) -> InputError:
    """The error for series of several hosts, by the labels in which they differ."""
    values = {label: ", ".join(f'"{value}"' for value in sorted(differing[label])) for label in differing}
    what = "; ".join(f"{label} {values_text}" for label, values_text in sorted(values.items()))
    label = min(differing)
    choice = next(value for value in sorted(differing[label]) if value)
    example = choice if label == "instance" else f"{label}={choice}"
    return InputError("the files", f"contain several hosts ({what})", f"select one, as --instance {example}")


def _tables(of_host: OfHost, ticks: Mapping[int, int]) -> Iterator[ImportedTable]:
    cells: dict[str, Rows] = defaultdict(dict)
    # of the names of two versions, such as by recording rules, that of the newer one counts
    for place, one in sorted(of_host, key=lambda placed: placed[0].renamed):
        for at, value in one.points.items():
            row = cells[place.table].setdefault((place.entity, ticks[at]), {})
            row.setdefault(place.column, node.whole(value, place.factor))
    for table, rows in cells.items():
        metrics = sorted({entity[0] for entity, _ in rows} if table not in LAYOUTS else set())
        kind = {"kind": "gauge"} if table == "memory" else {}
        meanings = {name: {"unit": unit_of_metric(table, name), **kind} for name in metrics}
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


def _facts(series: Iterable[PrometheusSeries], host: Labels, notes: list[str]) -> dict[str, Any]:
    """Facts of the host from node_exporter's info metrics; null with a note where they differ."""
    distinct: dict[str, set[str]] = {"nodename": set(), "release": set(), "model_name": set()}
    for one in series:
        if one.name in ("node_uname_info", "node_cpu_info") and _matches(one.labels, host):
            for name in distinct.keys() & one.labels.keys():
                distinct[name].add(one.labels[name])
    notes += [
        f"several values of {name}: {', '.join(sorted(values))}"
        for name, values in distinct.items()
        if len(values) > 1
    ]
    nodename, release, model = (next(iter(seen)) if len(seen) == 1 else None for seen in distinct.values())
    named = next(filter(None, host.values()), None)
    facts = {"host": nodename if distinct["nodename"] else named, "kernel": release, "user_hz": node.USER_HZ}
    return facts | ({"cpus": {"model": model}} if model else {})
