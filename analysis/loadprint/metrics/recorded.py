"""Reads the tables whose columns are quantities as they are: of each entity, by the names in the catalogue.

Counters are `TABLE.ENTITY.COLUMN` or `TABLE.METRIC`, per second; of gauges there are figures over the window,
such as `mean(memory.Dirty)`. Units and kinds are those in the table's footer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from loadprint.catalogue.files import Catalogue, catalogue
from loadprint.catalogue.formula import Figure, Formula
from loadprint.metrics.rates import Source
from loadprint.reading.columns import stable_name
from loadprint.reading.counters import Floats
from loadprint.reading.declared import DECLARED
from loadprint.reading.queries import Columns, by_entity, doubles, identifier, metrics, quote, select_list
from loadprint.reading.time_series import Series

GAUGE = "it is a gauge: use mean(), max() or min() of it"
FIGURES: dict[str, Callable[[Floats], float]] = {"mean": np.nanmean, "max": np.nanmax, "min": np.nanmin}


def recorded(source: Source, rows: Catalogue, role: str = "", tables: Collection[str] = ()) -> None:
    """Add the quantities of some tables, and the figures over their readings.

    These are the given ones, or all of which formulas name columns, of a role or of any entity, and no module
    has yet delivered or refused any.
    """
    # the courses of named formulas are judged over time
    whole = {name.partition(".")[0] for formula in rows.names.values() for name in formula.columns}
    for table in sorted(tables or _left(source, rows, role)):
        of_table = replace(source, charted=source.charted or table in whole)
        if source.run.table(source.window.role, table) is None or table not in source.window.read:
            source.out.mark_missing(table, source.window.why_missing(table))
            continue
        read: dict[str, Series] = {}
        for entity, columns in _entities(of_table, rows, table, read):
            _counters(of_table, rows, table, entity, columns, read)
        for figure in rows.figures.get(table, ()):
            _figure(source, table, figure, read)
        source.out.readings |= read


def _left(source: Source, rows: Catalogue, role: str) -> Iterator[str]:
    """The tables whose quantities are left to be read."""
    delivered = {*source.out.values, *source.out.missing} - rows.names.keys()
    done = {".".join(name.split(".")[: 2 if role else 1]) for name in delivered}
    start = f"{role}." if role else ""
    for table, names in rows.columns.items():
        is_table = table in DECLARED or source.run.table(source.window.role, table) is not None
        is_named = any(name.startswith(start) for name in names)
        if is_table and is_named and (f"{table}.{role}" if role else table) not in done:
            yield table


def _entities(
    source: Source, rows: Catalogue, table: str, read: dict[str, Series]
) -> Iterator[tuple[str, Columns]]:
    """The start of an entity's names and its columns at `tick`; the metrics of a host are columns of one.

    Entities that the names leave out, such as the CPUs of `softnet.dropped`, are added up here.
    """
    path, wanted = source.run.table(source.window.role, table), rows.columns[table]
    assert path is not None
    described, stored = source.store.metadata(path), source.store.columns(path)
    if {"metric", "value"} <= set(stored):
        read_rows = source.rows(table, metrics(sorted(wanted)), whole=True)
        for metric, of_metric in by_entity(read_rows, "metric") if read_rows else ():
            yield table, {"tick": of_metric["tick"], metric: of_metric["value"]}
        for metric in wanted.difference(read_rows["metric"].tolist() if read_rows else ()):
            what = "this server does not report" if table == "mysql" else f"{table} has no metric"
            source.out.mark_missing(f"{table}.{metric}", f"{what} {metric}")
        return
    declared = DECLARED[table].entity if table in DECLARED else ()
    entity = tuple(filter(None, described.entity or declared))
    # of the catalogue's names: one of the user can leave an entity out by mistake
    number = max(name.count(".") for name in catalogue().columns.get(table, wanted))
    key, member = (_joined(names) for names in (entity[:number], entity[number:]))
    columns = sorted({name.rpartition(".")[2] for name in wanted} & set(stored))
    if not columns:
        return
    if not entity:
        if read_rows := source.rows(
            table, f"SELECT tick, {select_list(doubles(columns))} FROM t", whole=True
        ):
            yield table, read_rows
        return
    if entity[number:]:
        names = source.store.fetch(path, f"SELECT DISTINCT {key} AS entity FROM t")["entity"].tolist()
        for name in sorted(names):
            start = f"{table}.{name}" if name else table
            where = f"{key} = {quote(name)}"
            counted = _readings_of_sums(source, rows, table, start, columns, where, read)
            source.sum(table, counted, f"hash({member})", where)
        return
    read_rows = source.rows(
        table, f"SELECT tick, {key} AS entity, {select_list(doubles(columns))} FROM t", whole=True
    )
    for name, of_entity in by_entity(read_rows, "entity") if read_rows else ():
        del of_entity["entity"]
        named = stable_name(name) if table == "nic" else name
        source.out.entities[table].add((named,))
        yield f"{table}.{named}", of_entity


def _joined(entity: Sequence[str]) -> str:
    """SQL of the texts of an entity as one."""
    return " || '.' || ".join(map(identifier, entity)) or "''"


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
    if source.described(f"{table}.{column}").kind == "gauge":
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
    busy = not any("{}" in name for name in rows.columns[table]) or any(
        np.nanmin(column, initial=np.inf) < np.nanmax(column, initial=0) for column in columns.values()
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
    courses = {name: series.values[inside] for name, series in read.items()}
    values = Formula(figure.of).course(courses.get, courses.get)
    if values is not None and np.isfinite(values).any():
        values = np.where(np.isfinite(values), values, np.nan)
        source.out.put(Formula(figure).text, float(FIGURES[figure.word](values)))
