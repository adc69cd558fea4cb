"""Reads series of scraped endpoints that a user's rows ask for, by patterns.

A series is a counter if its endpoint declares it (`# TYPE`) or its name ends like one, and else a gauge, of
which the row is the mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

import numpy as np

from loadprint.catalogue.formula import Figure, Formula, Name
from loadprint.catalogue.metric import Metric
from loadprint.catalogue.model import ScrapedEntry
from loadprint.metrics.quantities import Quantities
from loadprint.metrics.rates import Source
from loadprint.reading.counters import Floats
from loadprint.reading.queries import among, by_entity

TABLE, TYPE = "scrape", "# TYPE "
OF_TYPES = "SELECT metric, max(text) AS text FROM t WHERE starts_with(metric, '# TYPE ') GROUP BY metric"
COUNTERS = {"counter", "histogram", "summary"}
ENDINGS = ("_total", "_count", "_sum", "_bucket")  # of counters, and of the series of the other types
SEPARATOR = " of "


def scraped(source: Source, wanted: Sequence[ScrapedEntry]) -> None:
    """Add `scrape.<endpoint>.<series>` per second, or the mean of a gauge, each with a row."""
    path = source.run.table(source.window.role, TABLE)
    if not wanted:
        return
    if path is None or TABLE not in source.window.read:
        source.out.warnings.append(f"no scraped series: {source.window.why_missing(TABLE)}")
        return
    metrics = source.store.fetch(path, "SELECT DISTINCT metric FROM t")["metric"].tolist()
    chosen = {
        series: row
        for row in reversed(wanted)
        for series in metrics
        if fnmatchcase(series, row.metrics) and not series.startswith("#")
    }
    for pattern in sorted({row.metrics for row in wanted} - {row.metrics for row in chosen.values()}):
        source.out.warnings.append(f"no scraped series of its own matches {pattern}")
    types: dict[str, str] = {}
    if source.has(TABLE, "text"):  # not if it was imported
        rows = source.store.fetch(path, OF_TYPES)
        types = dict(zip(rows["metric"].tolist(), rows["text"].tolist(), strict=True))
    query = (
        f"SELECT tick, metric || '{SEPARATOR}' || endpoint AS entity, metric, value::DOUBLE AS value"
        f" FROM t WHERE metric IN {among(sorted(chosen))}"
    )
    read = source.rows(TABLE, query)
    for label, series in by_entity(read, "entity") if read else ():
        metric = str(series["metric"][0])
        _add(source, label, chosen[metric], series, is_counter=_is_counter(metric, types))


def _is_counter(series: str, types: dict[str, str]) -> bool:
    name = series.partition("{")[0]
    base = next((name.removesuffix(ending) for ending in ENDINGS if name.endswith(ending)), name)
    declared = types.get(f"{TYPE}{name}") or types.get(f"{TYPE}{base}")
    return name.endswith(ENDINGS) if declared is None else declared in COUNTERS


def _add(
    source: Source, label: str, wanted: ScrapedEntry, series: dict[str, Floats], *, is_counter: bool
) -> None:
    name = Name(f"{TABLE}.{label}")
    formula = Formula(name if is_counter else Figure("mean", name))
    ticks, values = series["tick"], series["value"]
    if is_counter and len(ticks) > 1:
        parts = Quantities(source.out.segments)  # its resolution is not known
        at, of = source.times(TABLE, ticks), source.segments(TABLE, ticks)
        parts.counter(formula.names[0], values, at, 1.0, of=of)
        source.out.add_events(parts)
        source.out.missing |= parts.missing
        for name_of, risen in parts.values.items():
            source.out.put(name_of, risen.rate)
    elif not is_counter and np.isfinite(values).any():
        source.out.put(formula.names[0], float(np.nanmean(values)))
    shown = wanted.show if wanted.show is not None else "/s" if is_counter else ""
    source.out.scraped[label] = Metric(f"scrape_{label}", label, shown, formula, wanted.better)
