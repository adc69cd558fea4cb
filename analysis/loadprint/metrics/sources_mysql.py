"""Reads the MySQL probe's table over the window: counters as increases, states as mean and maximum.

Names differ by version and flavour: the first recorded one is used. The probe's statements are in the
server's counters and are subtracted.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from loadprint.metrics.quantities import Quantities
from loadprint.metrics.sources import Source
from loadprint.reading import redo_log
from loadprint.reading.columns import MILLISECOND
from loadprint.reading.counters import Floats, increase
from loadprint.reading.mysql_names import AGES, CAPACITY, COUNTERS, GAUGES, PROBE_TRAFFIC, SUMS
from loadprint.reading.queries import Columns, by_entity, metrics
from loadprint.reading.time_series import Series


def mysql(source: Source) -> None:
    """Counters as `mysql.<name>` per second, states as `mysql.<name>.mean` and `.max`."""
    wanted = {name for names in (*COUNTERS.values(), *GAUGES.values()) for name in names}
    wanted |= {*PROBE_TRAFFIC.values(), *(name for pair in AGES for name in pair)}
    wanted |= {name for sums in SUMS.values() for names in sums for name in names}
    # always of the whole recording: the warm-up and spikes are judged by series
    rows = replace(source, charted=True).rows("mysql", metrics(sorted(wanted)), whole=True)
    if rows is None:
        source.out.mark_missing("mysql", source.window.why_missing("mysql"))
        return
    _series(source, dict(by_entity(rows, "metric")))
    series = dict(by_entity(source.inside("mysql", rows), "metric"))
    for name, names in COUNTERS.items():
        recorded = next((series[one] for one in names if one in series), None)
        unit = MILLISECOND if name.endswith("_ms") else 1.0
        if recorded is not None and len(recorded["tick"]) > 1:
            seconds = source.seconds("mysql", recorded["tick"])
            source.out.counter(f"mysql.{name}", recorded["value"], seconds, unit)
        else:
            source.out.mark_missing(f"mysql.{name}", f"this server does not count {' or '.join(names)}")
    _sums(source, series)
    for name, names in GAUGES.items():
        _state(source, name, next((series[one]["value"] for one in names if one in series), None), names)
    if "mysql.checkpoint_age.mean" not in source.out.values:
        _state(source, "checkpoint_age", _age(series), AGES[0])
    if "mysql.redo_capacity.mean" not in source.out.values:
        capacity = redo_log.capacity((source.run.server or {}).get("variables") or {})
        _state(source, "redo_capacity", None if capacity is None else np.array([capacity]), CAPACITY)
    _subtract_probe(source, series)
    _misses(source, series)


def _series(source: Source, recorded: dict[str, Columns]) -> None:
    """Courses of counters, states, the checkpoint age and the redo capacity."""
    grid = source.window.grids["mysql"]
    for name, names in COUNTERS.items():
        if rows := next((recorded[one] for one in names if one in recorded), None):
            unit = MILLISECOND if name.endswith("_ms") else 1.0
            source.out.add_series(f"mysql.{name}", grid.counter(rows["tick"], rows["value"], unit))
    for name, names in GAUGES.items():
        if rows := next((recorded[one] for one in names if one in recorded), None):
            source.out.add_series(f"mysql.{name}", grid.gauge(rows["tick"], rows["value"]))
    # before MySQL 8.0.30, and in MariaDB, the capacity is only a variable
    capacity = redo_log.capacity((source.run.server or {}).get("variables") or {})
    if capacity is not None:
        constant = np.full(len(grid.seconds), capacity)
        source.out.add_series("mysql.redo_capacity", Series(grid.seconds, constant))
    for pair in AGES:
        if set(pair) <= recorded.keys():
            last, first = (grid.placed(recorded[one]["tick"], recorded[one]["value"]) for one in pair)
            source.out.add_series("mysql.checkpoint_age", Series(grid.seconds, last - first))


def _misses(source: Source, series: dict[str, Columns]) -> None:
    """Buffer pool miss ratio in the first and the last third of the window."""
    reads, requests = (series.get(COUNTERS[name][0]) for name in ("page_reads", "page_requests"))
    if reads is None or requests is None or len(reads["tick"]) < 9 or len(requests["tick"]) < 9:
        return
    for third, begin, end in (("first", 0, 1 / 3), ("last", 2 / 3, 1)):
        risen = []
        for values in (reads["value"], requests["value"]):
            last = len(values) - 1
            risen.append(increase(values[round(last * begin) : round(last * end) + 1]))
        if risen[0] and risen[1] and risen[1].amount > 0:
            source.out.put(f"mysql.miss_ratio.{third}", risen[0].amount / risen[1].amount)


def _sums(source: Source, series: dict[str, Columns]) -> None:
    """Sums of server counters: of several sets of names the first that is complete."""
    for name, spellings in SUMS.items():
        names = next((names for names in spellings if all(one in series for one in names)), ())
        if f"mysql.{name}" in source.out.values or not names:
            continue
        parts = Quantities()
        for one in names:
            parts.counter(one, series[one]["value"], source.seconds("mysql", series[one]["tick"]), 1.0)
        if len(parts.values) == len(names):
            source.out.total(f"mysql.{name}", list(parts.values.values()))


def _age(series: dict[str, Columns]) -> Floats | None:
    """Bytes of redo since the last checkpoint; None if the server does not report both LSNs."""
    for last, first in AGES:
        if last in series and first in series:
            end, checkpoint = series[last], series[first]
            _, here, there = np.intersect1d(end["tick"], checkpoint["tick"], return_indices=True)
            age: Floats = end["value"][here] - checkpoint["value"][there]
            return age
    return None


def _state(source: Source, name: str, values: Floats | None, names: tuple[str, ...]) -> None:
    if values is None or np.isnan(values).all():
        source.out.mark_missing(f"mysql.{name}", f"this server does not report {' or '.join(names)}")
        return
    source.out.put(f"mysql.{name}.mean", float(np.nanmean(values)))
    source.out.put(f"mysql.{name}.max", float(np.nanmax(values)))


def _subtract_probe(source: Source, series: dict[str, Columns]) -> None:
    """Subtract the probe's statements and bytes from the server's counters."""
    for name, probe_counter in PROBE_TRAFFIC.items():
        counted, by_probe = source.out.get(name), series.get(probe_counter)
        risen = None if by_probe is None else increase(by_probe["value"])
        if counted is None or by_probe is None or risen is None:
            continue
        seconds = source.seconds("mysql", by_probe["tick"])
        source.out.put(name, max(0.0, counted.rate - risen.amount / seconds))
