"""Reads the tables whose columns are quantities as they are: of each entity, by the names in the catalogue.

Counters are `TABLE.ENTITY.COLUMN` or `TABLE.METRIC`, per second; of gauges there are figures over the window,
such as `mean(memory.Dirty)`. Units and kinds are those in the table's footer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from loadprint.catalogue.files import Catalogue
from loadprint.catalogue.formula import Figure, Formula
from loadprint.metrics.sources import Source
from loadprint.reading.column_types import is_entity
from loadprint.reading.columns import stable_name
from loadprint.reading.queries import Columns, by_entity, doubles, identifier, listed, metrics
from loadprint.reading.time_series import Floats

DEVICES = frozenset({"disk", "nic"})
OF_RUN = frozenset({"namespace"})  # an entity with another name in each run: one for each role
ALWAYS_WHOLE = frozenset({"mysql"})  # the warm-up and checkpoint spikes are judged over time
FIGURES: dict[str, Callable[[Floats], float]] = {"mean": np.nanmean, "max": np.nanmax, "min": np.nanmin}


def recorded(source: Source, rows: Catalogue, tables: frozenset[str]) -> None:
    """Add the quantities of some tables, and the figures over their readings."""
    for table in sorted(tables & rows.columns.keys()):
        of_table = replace(source, charted=source.charted or table in ALWAYS_WHOLE)
        if source.run.table(source.window.role, table) is None or table not in source.window.middle_ns:
            source.out.mark_missing(table, source.window.why_missing(table))
            continue
        for entity, columns in _entities(of_table, table, rows.columns[table]):
            _counters(of_table, rows, table, entity, columns)
        for figure in rows.figures:
            if Formula(figure.of).columns[0].startswith(f"{table}."):
                _figure(source, table, figure)


def _entities(source: Source, table: str, wanted: frozenset[str]) -> Iterator[tuple[str, Columns]]:
    """The start of an entity's names and its columns at `tick`; the metrics of a host are columns of one."""
    path = source.run.table(source.window.role, table)
    assert path is not None
    described, stored = source.store.metadata(path), source.store.columns(path)
    if described.get("shape") == "metrics":
        rows = source.rows(table, metrics(sorted(wanted)), whole=True)
        for metric, of_metric in by_entity(rows, "metric") if rows else ():
            yield table, {"tick": of_metric["tick"], metric: of_metric["value"]}
        return
    entity = described.get("entity") or [name for name in stored if is_entity(table, name)]
    entity = [name for name in entity if name not in OF_RUN]
    columns = sorted({name.rpartition(".")[2] for name in wanted} & set(stored))
    key = " || '.' || ".join(map(identifier, entity))
    rows = source.rows(table, f"SELECT tick, {key} AS entity, {listed(doubles(columns))} FROM t", whole=True)
    for name, of_entity in by_entity(rows, "entity") if rows else ():
        del of_entity["entity"]
        yield f"{table}.{stable_name(name) if table == 'nic' else name}", of_entity


def _counters(source: Source, rows: Catalogue, table: str, entity: str, columns: Columns) -> None:
    """Add the increases of counters, and the readings of all columns."""
    ticks = columns.pop("tick")
    # a host has a dozen idle devices
    busy = table not in DEVICES or any(
        np.nanmin(read, initial=np.inf) < np.nanmax(read, initial=0) for read in columns.values()
    )
    for column, values in columns.items():
        described, name = source.described(table, column), f"{entity}.{column}"
        if name in rows.read:
            source.out.readings[name] = source.window.grids[table].gauge(
                ticks, values * source.unit(table, column)
            )
        if described.get("kind") != "gauge":
            of_one = source if busy else replace(source, charted=False)
            of_one.counter(f"{table}.{column}", name, {"tick": ticks, column: values}, column)


def _figure(source: Source, table: str, figure: Figure) -> None:
    """Add a figure over the readings in the window."""
    grid, (first, last) = source.window.grids[table], source.window.ends(table)
    inside = (grid.ticks >= first) & (grid.ticks <= last)
    formula, readings = Formula(figure.of), source.out.readings
    known = {name: readings[name].values[inside] for name in formula.columns if name in readings}
    values = formula.value(known.get)
    if values is not None and not np.isnan(values).all():
        source.out.put(Formula(figure).text, float(FIGURES[figure.word](values)))
