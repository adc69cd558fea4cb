"""Measures the windows of a run directory between the stamps of load/phases.jsonl.

The rate of a counter is last − first over the ticks entirely inside a window at which it was read, divided by
the time between the middles of these two reads of the probe.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from loadprint.commands.ab.result import BASELINE, TREATMENT, AbWindow
from loadprint.errors import InputError
from loadprint.reading import bounds, documents
from loadprint.reading.bounds import COPY_AGAIN
from loadprint.reading.columns import CPU_FIELDS
from loadprint.reading.counters import MANY, increase, steps
from loadprint.reading.queries import Columns, Store, among, doubles, grouped, listed
from loadprint.reading.recording import Run
from loadprint.reading.units import factor
from loadprint.reading.window import STAMPS

ROLE = "server"
ROWS = ("Innodb_rows_read", "Innodb_rows_inserted", "Innodb_rows_updated", "Innodb_rows_deleted")
METRICS = (
    "SELECT metric AS name, tick::DOUBLE AS tick, value::DOUBLE AS value FROM t"
    " WHERE starts_with(metric, 'Com_') OR starts_with(metric, 'loadprint.')"
    f" OR metric IN {among(('Questions', 'Threads_connected', *ROWS))}"
)
# utime + stime of each of the server's processes with all threads (proc(5))
PROCESS_TIME = (
    "SELECT concat(pid, ' of ', starttime) AS name, tick::DOUBLE AS tick, (utime + stime)::DOUBLE AS value"
    " FROM t WHERE role = 'server'"
)
IDLE = ("idle", "iowait")
# texts of the recorder's statements, which have no schema, unlike an application's
RECORDER_TEXTS = ("SHOW GLOBAL ", "performance_schema", "INNODB_METRICS", "ENGINE INNODB STATUS")
COVERED = 0.5  # of a window must be between two reads of the digests
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class WindowSpan:
    """A window's stamps, CLOCK_MONOTONIC ns."""

    number: int
    block: int
    variant: str
    begin_ns: int
    end_ns: int
    fixed_work_ns: int | None = None


def spans(run: Run) -> list[WindowSpan]:
    """Return the complete windows, in order. Raises InputError if a line is not a stamp."""
    path = run.path / "load" / "phases.jsonl"
    complete, begin_ns = [], {}
    text = bounds.read_text(path, bounds.LINES, COPY_AGAIN, errors="replace") if path.is_file() else ""
    lines = text.splitlines()
    for at, line in enumerate(lines, start=1):
        try:
            stamp = documents.loads(line)
            name, event, when = stamp["phase"], stamp["event"], int(stamp["monotonic_ns"])
            if abs(when) > documents.LARGEST_INTEGER:
                raise ValueError(line)
            if name not in (TREATMENT, BASELINE):
                continue
            key = int(stamp["window"])
            if event == "begin":
                begin_ns[key] = when
            elif key in begin_ns and not stamp.get("broken_off"):
                work = stamp.get("fixed_work_ns")
                work = None if work is None else int(work)
                if work is not None and not 0 < work <= documents.LARGEST_INTEGER:
                    raise ValueError(line)
                complete.append(WindowSpan(key, int(stamp["block"]), name, begin_ns[key], when, work))
        except (ValueError, KeyError, TypeError) as error:
            if at == len(lines):  # cut off by a crash
                break
            raise InputError(f"{path} line {at}", "is not a phase stamp", COPY_AGAIN) from error
    return complete


@dataclass(frozen=True)
class Readings:
    """A probe's table with the stamps of its reads: entity → (start, end, values), arrays over ticks."""

    series: Mapping[str, tuple[Floats, Floats, Floats]]

    def rate(self, name: str, span: WindowSpan) -> float | None:
        """Return the increase per second within a window; None without two readings in it."""
        inside = self.inside(name, span)
        if inside is None:
            return None
        middle, values = inside
        grown = increase(values)
        if grown is None or grown.restarts or middle[grown.last] <= middle[grown.first]:
            return None
        return float(grown.amount / (middle[grown.last] - middle[grown.first]) * 1e9)

    def total(self, span: WindowSpan) -> tuple[float | None, bool]:
        """Return the sum of the rates of all processes, and whether none of them was there all the time.

        Each counts for the time in which it was seen. None if that of one is not known.
        """
        found = {name: inside[0] for name in self.series if (inside := self.inside(name, span))}
        if not found:
            return None, False
        whole = max(at[-1] for at in found.values()) - min(at[0] for at in found.values())
        shares = {name: float((at[-1] - at[0]) / whole) for name, at in found.items()}
        rates = [rate * shares[name] for name in found if (rate := self.rate(name, span)) is not None]
        return (sum(rates) if len(rates) == len(found) else None), max(shares.values()) < 1

    def was_reset(self, name: str, span: WindowSpan) -> bool:
        """Whether a counter decreased within a window."""
        inside = self.inside(name, span)
        if inside is None:
            return False
        each = steps(inside[1][~np.isnan(inside[1])])
        return bool((each.restarted | each.unknown).any())

    def mean(self, name: str, span: WindowSpan) -> float | None:
        """Return the mean of a gauge over the reads in a window."""
        inside = self.inside(name, span)
        return None if inside is None or np.isnan(inside[1]).all() else float(np.nanmean(inside[1]))

    def inside(self, name: str, span: WindowSpan) -> tuple[Floats, Floats] | None:
        """Return the middles of the reads entirely inside a window, and their values; None below two."""
        if name not in self.series:
            return None
        begin, end, values = self.series[name]
        kept = (begin >= span.begin_ns) & (end <= span.end_ns)
        return ((begin[kept] + end[kept]) / 2, values[kept]) if kept.sum() >= 2 else None


def windows(run: Run, store: Store, cpus: Sequence[int] | None = None) -> list[AbWindow]:
    """Return all windows of an experiment with their measurements.

    `cpus`: the CPUs of `host_busy`; None: all.
    Raises InputError if the recorder's tables cannot be read.
    """
    complete = spans(run)
    if not complete:
        return []
    stamps = _stamps(run, store)
    mysql = _readings(run, store, stamps, "mysql", METRICS)
    process = _readings(run, store, stamps, "process", PROCESS_TIME)
    cpu = _readings(run, store, stamps, "cpu", _cpu_times(cpus))
    digests = _digests(run, store, stamps)
    measure = run.phase("measure")
    zero = measure.begin_ns if measure is not None else complete[0].begin_ns
    path = run.table(ROLE, "process")
    unit = factor(path, "utime", store.described(path, "utime").get("unit"), run) if path else math.nan
    tables = _Tables(mysql, process, cpu, digests, unit)
    measured, previous = [], None
    for span in complete:
        measured.append(_window(span, previous, zero, tables))
        previous = span.variant
    return measured


@dataclass(frozen=True)
class _Tables:
    mysql: Readings
    process: Readings
    cpu: Readings
    digests: list[tuple[float, dict[str, float]]]
    unit: float  # of process times, in s


def _window(span: WindowSpan, previous: str | None, zero: int, tables: _Tables) -> AbWindow:
    mysql = tables.mysql
    questions, recorder = mysql.rate("Questions", span), mysql.rate("loadprint.queries", span)
    queries = None if questions is None else max(0.0, questions - (recorder or 0.0))
    ticks, ended = tables.process.total(span)
    times = {state: tables.cpu.rate(state, span) or 0.0 for state in CPU_FIELDS if state != "steal"}
    whole = sum(times.values())
    rows = [mysql.rate(name, span) for name in ROWS]
    note = ""
    if mysql.was_reset("Questions", span) or ended:
        note = "the server restarted in it"
    elif queries is None:
        note = "no two readings of the server's statements in it"
    elif ticks is None:
        note = "no two readings of the server's process in it"
    return AbWindow(
        number=span.number,
        block=span.block,
        variant=span.variant,
        previous=previous,
        begin_s=(span.begin_ns - zero) / 1e9,
        end_s=(span.end_ns - zero) / 1e9,
        queries=queries,
        cpu=None if ticks is None or ended else ticks * tables.unit,
        commits=mysql.rate("Com_commit", span),
        rows=None if None in rows else sum(row for row in rows if row is not None),
        host_busy=1 - sum(times[state] for state in IDLE) / whole if whole else None,
        connections=mysql.mean("Threads_connected", span),
        kinds=_kinds(mysql, span),
        digests=_between(tables.digests, span),
        fixed_work_ns=span.fixed_work_ns,
        note=note,
    )


def _kinds(mysql: Readings, span: WindowSpan) -> dict[str, float]:
    """Return the statements by `Com_*`, without the recorder's."""
    kinds = {}
    for name in mysql.series:
        if name.startswith("Com_"):
            recorder = mysql.rate(f"loadprint.{name.lower()}", span) or 0.0
            rate = (mysql.rate(name, span) or 0.0) - recorder
            if rate > 0:
                kinds[name] = rate * (span.end_ns - span.begin_ns) / 1e9
    return kinds


def _stamps(run: Run, store: Store) -> dict[str, dict[int, tuple[float, float]]]:
    """Return probe → tick → start and end of its read."""
    rows = store.fetch(
        run.path / ROLE / "ticks.parquet",
        f"SELECT probe, {STAMPS} FROM t WHERE status = 'ok'",
    )
    stamps: dict[str, dict[int, tuple[float, float]]] = {}
    for probe, tick, start, end in zip(rows["probe"], rows["tick"], rows["start"], rows["end"], strict=True):
        stamps.setdefault(str(probe), {})[int(tick)] = (float(start), float(end))
    return stamps


def _cpu_times(cpus: Sequence[int] | None) -> str:
    """SELECT of the time of the CPUs in each state, in clock ticks, since the first read.

    Each CPU counts from its first read; a fall by more than kernels correct adds nothing.
    """
    names = ["all"] if cpus is None else [str(cpu) for cpu in cpus]
    states = ", ".join(CPU_FIELDS)
    times = listed(doubles(CPU_FIELDS))
    return (
        "SELECT name, tick::DOUBLE AS tick, sum(sum(risen) FILTER (risen >= "
        f"-{MANY})) OVER (PARTITION BY name ORDER BY tick) AS value FROM ("
        "SELECT name, tick, value - lag(value) OVER (PARTITION BY cpu, name ORDER BY tick) AS risen"
        f" FROM (UNPIVOT (SELECT tick, cpu, {times} FROM t WHERE cpu IN {among(names)})"
        f" ON {states} INTO NAME name VALUE value)) GROUP BY name, tick"
    )


def _readings(
    run: Run, store: Store, stamps: dict[str, dict[int, tuple[float, float]]], probe: str, query: str
) -> Readings:
    path, at = run.table(ROLE, probe), stamps.get(probe, {})
    if path is None:
        return Readings({})
    rows: Columns = store.fetch(path, f"{query} ORDER BY name, tick")
    stamped = np.array(sorted(at), dtype=float)
    edges = np.array([at[tick] for tick in sorted(at)], dtype=float).reshape(-1, 2)
    series = {}
    for name, places in grouped(rows["name"]):
        kept = places[np.isin(rows["tick"][places], stamped)]
        read = edges[np.searchsorted(stamped, rows["tick"][kept])]
        series[name] = (read[:, 0], read[:, 1], rows["value"][kept].astype(float))
    return Readings(series)


def _digests(
    run: Run, store: Store, stamps: dict[str, dict[int, tuple[float, float]]]
) -> list[tuple[float, dict[str, float]]]:
    """Return every read of the digests: its middle, and executions by digest, without the recorder's."""
    path, at = run.table(ROLE, "mysql_digests"), stamps.get("mysql_digests", {})
    if path is None:
        return []
    rows = store.fetch(
        path,
        'SELECT "schema", digest, digest_text AS text, tick::DOUBLE AS tick, "count"::DOUBLE AS "count"'
        " FROM t",
    )
    reads: dict[int, dict[str, float]] = {tick: {} for tick in at}
    for schema, digest, text, tick, count in zip(
        rows["schema"], rows["digest"], rows["text"], rows["tick"], rows["count"], strict=True
    ):
        of_recorder = not schema and any(word in (text or "") for word in RECORDER_TEXTS)
        if int(tick) in reads and not of_recorder:
            reads[int(tick)][f"{schema}/{digest}"] = float(count)
    return [(sum(at[tick]) / 2, counts) for tick, counts in sorted(reads.items())]


def _between(reads: list[tuple[float, dict[str, float]]], span: WindowSpan) -> dict[str, float] | None:
    """Return executions by digest between the first and last read in a window; None if not known."""
    inside = [counts for when, counts in reads if span.begin_ns <= when <= span.end_ns]
    times = [when for when, _ in reads if span.begin_ns <= when <= span.end_ns]
    if len(inside) < 2 or times[-1] - times[0] < COVERED * (span.end_ns - span.begin_ns):
        return None
    at, counts = np.array(times), {}
    for key in inside[-1]:
        values = np.array([read.get(key, 0.0) for read in inside])
        grown = increase(values)
        if grown is None or grown.restarts or grown.steps_back:
            return None  # the digests were reset, so what was executed before is not known
        counts[key] = float(grown.amount * (at[-1] - at[0]) / (at[grown.last] - at[grown.first]))
    return {key: count for key, count in counts.items() if count > 0}
