"""Reads the tables whose columns are quantities as they are: of each entity, by the names in the catalogue.

Counters are `TABLE.ENTITY.COLUMN` or `TABLE.METRIC`, per second; of gauges there are figures over the window,
such as `mean(memory.Dirty)`. Units and kinds are those in the table's footer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from loadprint.catalogue.files import Catalogue
from loadprint.catalogue.formula import Figure, Formula
from loadprint.metrics.sources import Source
from loadprint.reading.columns import stable_name
from loadprint.reading.counters import Floats
from loadprint.reading.declared import DECLARED
from loadprint.reading.queries import Columns, by_entity, doubles, identifier, listed, metrics, quote
from loadprint.reading.time_series import Series

DEVICES = frozenset({"disk", "nic"})
SUMMED = frozenset({"namespace", "cpu"})  # of an entity, with other names in each run or on each host
GAUGE = "it is a gauge: use mean(), max() or min() of it"
ALWAYS_WHOLE = frozenset({"mysql"})  # the warm-up and checkpoint spikes are judged over time
FIGURES: dict[str, Callable[[Floats], float]] = {"mean": np.nanmean, "max": np.nanmax, "min": np.nanmin}


def recorded(source: Source, rows: Catalogue, tables: frozenset[str]) -> None:
    """Add the quantities of some tables, and the figures over their readings."""
    for table in sorted(tables & rows.columns.keys()):
        of_table = replace(source, charted=source.charted or table in ALWAYS_WHOLE)
        if source.run.table(source.window.role, table) is None or table not in source.window.read:
            source.out.mark_missing(table, source.window.why_missing(table))
            continue
        read: dict[str, Series] = {}
        for entity, columns in _entities(of_table, rows, table, read):
            _counters(of_table, rows, table, entity, columns, read)
        for figure in rows.figures.get(table, ()):
            _figure(source, table, figure, read)
        source.out.readings |= read


def _entities(
    source: Source, rows: Catalogue, table: str, read: dict[str, Series]
) -> Iterator[tuple[str, Columns]]:
    """The start of an entity's names and its columns at `tick`; the metrics of a host are columns of one.

    The sums of entities over SUMMED are added here.
    """
    path, wanted = source.run.table(source.window.role, table), rows.columns[table]
    assert path is not None
    described, stored = source.store.metadata(path), source.store.columns(path)
    if {"metric", "value"} <= set(stored):
        found = source.rows(table, metrics(sorted(wanted)), whole=True)
        for metric, of_metric in by_entity(found, "metric") if found else ():
            yield table, {"tick": of_metric["tick"], metric: of_metric["value"]}
        for metric in wanted.difference(found["metric"].tolist() if found else ()):
            what = "this server does not report" if table == "mysql" else f"{table} has no metric"
            source.out.mark_missing(f"{table}.{metric}", f"{what} {metric}")
        return
    entity = described.get("entity") or (DECLARED[table].entity if table in DECLARED else ())
    key = " || '.' || ".join(identifier(name) for name in entity if name and name not in SUMMED) or "''"
    columns = sorted({name.rpartition(".")[2] for name in wanted} & set(stored))
    if not columns or not entity:
        return
    if member := next((name for name in entity if name in SUMMED), None):
        for name in sorted(
            source.store.fetch(path, f"SELECT DISTINCT {key} AS entity FROM t")["entity"].tolist()
        ):
            start = f"{table}.{name}" if name else table
            where = f"{key} = {quote(name)}"
            counted = _readings_of_sums(source, rows, table, start, columns, where, read)
            source.sum(table, counted, f"hash({member})", where)
        return
    found = source.rows(table, f"SELECT tick, {key} AS entity, {listed(doubles(columns))} FROM t", whole=True)
    for name, of_entity in by_entity(found, "entity") if found else ():
        del of_entity["entity"]
        named = stable_name(name) if table == "nic" else name
        source.out.entities[table].add((named,))
        yield f"{table}.{named}", of_entity


def _readings_of_sums(  # noqa: PLR0913, PLR0917
    source: Source,
    rows: Catalogue,
    table: str,
    start: str,
    columns: Sequence[str],
    where: str,
    read: dict[str, Series],
) -> dict[str, str]:
    """Add the sums of gauges over an entity's members to `read`; returns the names of its counters."""
    counted = {}
    for column in columns:
        name = f"{start}.{column}"
        is_read, is_counted = _uses(source, rows, table, column, name)
        if is_counted:
            counted[column] = name
        if is_read:
            total = f"CASE WHEN count({column}) = count(*) THEN sum({column}::DOUBLE) END"
            query = f"SELECT tick, {total} AS total FROM t WHERE {where} GROUP BY tick"
            of_all = source.rows(table, query, whole=True)
            assert of_all is not None
            values = of_all["total"] * source.unit(f"{table}.{column}")
            read[name] = source.window.grids[table].gauge(of_all["tick"], values)
    return counted


def _uses(source: Source, rows: Catalogue, table: str, column: str, name: str) -> tuple[bool, bool]:
    """Whether the readings of a column are needed, and its increase; a gauge has none."""
    is_read = name in rows.read
    if source.described(f"{table}.{column}").get("kind") == "gauge":
        source.out.gauges.add(name)
        source.out.mark_missing(name, GAUGE)
        return is_read, False
    return is_read, not is_read or name in rows.counted


def _counters(  # noqa: PLR0913, PLR0917
    source: Source, rows: Catalogue, table: str, entity: str, columns: Columns, read: dict[str, Series]
) -> None:
    """Add the increases of counters, and the readings that figures need to `read`."""
    ticks = columns.pop("tick")
    # a host has a dozen idle devices
    busy = table not in DEVICES or any(
        np.nanmin(each, initial=np.inf) < np.nanmax(each, initial=0) for each in columns.values()
    )
    for column, values in columns.items():
        name = f"{entity}.{column}"
        is_read, is_counted = _uses(source, rows, table, column, name)
        if is_read:
            read[name] = source.window.grids[table].gauge(ticks, values * source.unit(f"{table}.{column}"))
        if is_counted:
            of_one = source if busy else replace(source, charted=False)
            of_one.counter(f"{table}.{column}", name, ticks, values)


def _figure(source: Source, table: str, figure: Figure, read: Mapping[str, Series]) -> None:
    """Add a figure over the readings in the window."""
    inside = source.window.grids[table].read
    known = {name: series.values[inside] for name, series in read.items()}
    values = Formula(figure.of).course(known.get, known.get)
    if values is not None and np.isfinite(values).any():
        values = np.where(np.isfinite(values), values, np.nan)
        source.out.put(Formula(figure).text, float(FIGURES[figure.word](values)))
