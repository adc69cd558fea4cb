"""Measures the windows of an experiment: each is a segment of its recording."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from loadprint.commands.ab.result import AbWindow
from loadprint.metrics import host
from loadprint.metrics.quantities import Quantities
from loadprint.metrics.rates import Source
from loadprint.reading.columns import CPU_FIELDS
from loadprint.reading.counters import Floats, steps
from loadprint.reading.queries import Store, among, by_entity, quote, together
from loadprint.reading.recording import Run
from loadprint.reading.segments import WindowSpan, windows_of
from loadprint.reading.window import window_of

ROLE = "server"
ROWS = ("Innodb_rows_read", "Innodb_rows_inserted", "Innodb_rows_updated", "Innodb_rows_deleted")
CONNECTED = "Threads_connected"
METRICS = (
    "SELECT metric, tick, value::DOUBLE AS value FROM t"
    " WHERE starts_with(metric, 'Com_') OR starts_with(metric, 'loadprint.')"
    f" OR metric IN {among(('Questions', CONNECTED, *ROWS))}"
)
IDLE = ("idle", "iowait")
# texts of the recorder's statements, which have no schema, unlike an application's
RECORDER_TEXTS = ("SHOW GLOBAL ", "performance_schema", "INNODB_METRICS", "ENGINE INNODB STATUS")
COVERED = 0.5  # of a window must be between two reads of the digests


def windows(run: Run, store: Store, cpus: Sequence[int] | None = None) -> list[AbWindow]:
    """Return all windows of an experiment with their measurements.

    `cpus`: the CPUs of `host_busy`; None: all.
    Raises InputError if the recorder's tables cannot be read.
    """
    spans = list(windows_of(run))
    if not spans:
        return []
    parts = replace(run, segments=tuple((span.begin_ns, span.end_ns) for span in spans))
    rates = Quantities(len(spans))
    source = Source(parts, window_of(parts, ROLE, store), store, rates)
    host.process(source)
    host.cpu(source, ROLE, cpus)
    restarted, connected = _server(source)
    restarted |= _is_succeeded(source)
    digests = list(_digests(source, spans))
    measure = run.phase("measure")
    zero = measure.begin_ns if measure is not None else spans[0].begin_ns
    measured = [
        _window(span, zero, Rates(rates.by_segment, place), digests[place], connected[place])
        for place, span in enumerate(spans)
    ]
    previous = (None, *(span.variant for span in spans))
    return [
        replace(
            window,
            previous=before,
            note="the server restarted in it" if again else window.note,
            cpu=None if again else window.cpu,
        )
        for window, before, again in zip(measured, previous, restarted, strict=False)
    ]


@dataclass(frozen=True)
class Rates:
    """The rates of one window, by name; None without two readings in it, or if a counter fell."""

    by_name: Mapping[str, Floats]
    place: int

    def get(self, name: str) -> float | None:
        """Rate of a counter."""
        rate = self.by_name[name][self.place] if name in self.by_name else np.nan
        return None if np.isnan(rate) else float(rate)

    def sum(self, names: Iterable[str]) -> float | None:
        """Sum of some rates; None if one is not known."""
        rates = [self.get(name) for name in names]
        measured = [rate for rate in rates if rate is not None]
        return sum(measured) if len(measured) == len(rates) else None

    def kinds(self, seconds: float) -> dict[str, float]:
        """Statements by `Com_*`, without the recorder's."""
        counts = {}
        for name in self.by_name:
            table, _, kind = name.partition(".")
            if table == "mysql" and kind.startswith("Com_"):
                rate = (self.get(name) or 0.0) - (self.get(f"mysql.loadprint.{kind.lower()}") or 0.0)
                counts[kind] = rate * seconds
        return {kind: count for kind, count in counts.items() if count > 0}


def _window(
    span: WindowSpan, zero: int, rates: Rates, digests: Mapping[str, float] | None, connected: float
) -> AbWindow:
    questions, recorder = rates.get("mysql.Questions"), rates.get("mysql.loadprint.queries")
    cpu = rates.sum(f"process.server.{name}" for name in ("utime", "stime"))
    whole = rates.sum(f"cpu.server.{name}" for name in CPU_FIELDS if name != "steal")
    idle, note = rates.sum(f"cpu.server.{name}" for name in IDLE), ""
    if questions is None:
        note = "no two readings of the server's statements in it"
    elif cpu is None:
        note = "no two readings of the server's process in it"
    return AbWindow(
        number=span.number,
        block=span.block,
        variant=span.variant,
        previous=None,
        begin_s=(span.begin_ns - zero) / 1e9,
        end_s=(span.end_ns - zero) / 1e9,
        queries=None if questions is None else max(0.0, questions - (recorder or 0.0)),
        cpu=cpu,
        commits=rates.get("mysql.Com_commit"),
        rows=rates.sum(f"mysql.{name}" for name in ROWS),
        host_busy=1 - idle / whole if whole and idle is not None else None,
        connections=None if np.isnan(connected) else connected,
        kinds=rates.kinds((span.end_ns - span.begin_ns) / 1e9),
        digests=digests,
        fixed_work_ns=span.fixed_work_ns,
        note=note,
    )


def _server(source: Source) -> tuple[NDArray[np.bool_], Floats]:
    """Add the server's counters; returns the windows in which one fell, and mean connections of each."""
    number = source.window.segments
    fell, connected = np.zeros(number, dtype=bool), np.full(number, np.nan)
    rows = source.rows("mysql", METRICS)
    for name, series in by_entity(rows, "metric") if rows else ():
        ticks, values = series["tick"], series["value"]
        if name != CONNECTED:
            source.counter(f"mysql.{name}", f"mysql.{name}", ticks, values)
        of, finite = source.segments("mysql", ticks), np.isfinite(values)
        if name == "Questions":
            rises = steps(values[finite], None, of[finite])
            fell[of[finite][1:][rises.restarted | rises.unknown]] = True
        if name == CONNECTED:
            reads, sums = (np.bincount(of[finite], weights, number) for weights in (None, values[finite]))
            connected = np.divide(sums, reads, out=connected, where=reads > 0)
    return fell, connected


def _is_succeeded(source: Source) -> NDArray[np.bool_]:
    """The windows in which no process of the server was there all the time."""
    succeeded = np.zeros(source.window.segments, dtype=bool)
    for lives in source.members(
        "process", (), host.PROCESS.format(host.start_time(source)), "role = 'server'"
    ):
        of = source.segments("process", lives.ticks)
        for place in np.unique(of):
            succeeded[place] = not lives.present[:, of == place].all(axis=1).any()
    return succeeded


def _digests(source: Source, spans: Sequence[WindowSpan]) -> Iterator[dict[str, float] | None]:
    """Executions in each window by digest, without the recorder's; None if not known."""
    table = "mysql_digests"
    of_recorder = " OR ".join(
        f"contains(coalesce(digest_text, ''), {quote(text)})" for text in RECORDER_TEXTS
    )
    rows = source.rows(
        table,
        'SELECT tick, concat("schema", \'/\', digest) AS name, "count"::DOUBLE AS "count" FROM t'
        f" WHERE NOT (\"schema\" = '' AND ({of_recorder}))",
    )
    if rows is None:
        yield from [None] * len(spans)
        return
    grid = source.window.grids[table]
    reads, names = together(rows, "name", grid.ticks[grid.read]).born_at_zero(), np.unique(rows["name"])
    of = grid.segment[grid.read]
    for place, span in enumerate(spans):
        inside = of == place
        at, counts = grid.seconds[grid.read][inside], reads.values["count"][:, inside]
        if len(at) < 2 or (at[-1] - at[0]) < COVERED * (span.end_ns - span.begin_ns) / 1e9:
            yield None
        elif not (np.diff(counts, axis=1) >= 0).all():
            yield None  # the digests were reset, so what was executed before is not known
        else:
            risen = counts[:, -1] - counts[:, 0]
            yield {str(name): float(count) for name, count in zip(names, risen, strict=True) if count > 0}
