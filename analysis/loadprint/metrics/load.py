"""Adds the figures of the load: totals and latencies, intervals, the status of the server at both ends."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loadprint.catalogue.files import Catalogue
from loadprint.errors import InputError
from loadprint.metrics import mysql
from loadprint.metrics.quantities import Quantities
from loadprint.numbers import brief
from loadprint.reading import latencies
from loadprint.reading.counters import Floats
from loadprint.reading.declared import unit_of
from loadprint.reading.documents import Scalar
from loadprint.reading.latencies import LatencyHistogram
from loadprint.reading.queries import Store
from loadprint.reading.recording import Run
from loadprint.reading.run_documents import LoadResult, TransactionType
from loadprint.reading.time_series import Series
from loadprint.reading.units import FACTORS
from loadprint.series.intervals import Intervals
from loadprint.statistics import gaps

MIN_FOR_P999 = 10_000
MIN_SECONDS = 5  # for a coefficient of variation
REST = "rest"  # not a transaction type
GENERATOR_QUERIES = {"Questions": 1, "Queries": 1}
NOT_OF_EACH = "the server's status was read at both ends of the measure phase only"
NOT_READ = "the server's status was not read at both ends of the measure phase"
# what the load is; all else in result.json counts the whole measure phase
KEPT = (
    *("workload", "generator", "generator_version", "operation", "status", "reason", "mode", "protocol"),
    *("connections", "options", "threads", "workers", "rate", "servers", "flags", "tls", "compression"),
)
QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p999": 0.999}
FROZEN = "{} is frozen as it is: what it counts and times has the pauses between the turns of its side"
NO_INTERVALS = "it is a total of the whole measure phase, without intervals"
COUNTED_AT_END = ("events", "commits", "rows")  # of an operation


def totals(run: Run, out: Quantities, declared: Catalogue) -> None:
    """Totals of result.json as rates, latencies in seconds."""
    result, seconds, why = run.result, run.result.seconds, ""
    if not result:
        why = "load/result.json is missing"
    elif run.segments is not None and seconds is None:
        why = FROZEN.format(result.generator) if run.slices else NO_INTERVALS
    if why:
        out.missing |= dict.fromkeys(("load", "latency", "connections."), why)
        return
    if not seconds:
        raise InputError(
            run.path / "load" / "result.json", "`seconds` is not a positive number", "record the run again"
        )
    for name in ("events", "queries", "reads", "writes", "others", "commits", "rows", "errors", "reconnects"):
        _put(
            out,
            f"load.{name}",
            getattr(result, name),
            f"the load generator does not count {name}",
            seconds,
        )
    timed = sum(kind.count or 0 for kind in result.transactions.values())
    for name in declared.columns["latency"]:
        if name == "p999" and timed < MIN_FOR_P999:
            out.mark_missing(
                "latency.p999",
                f"the run has fewer than {MIN_FOR_P999:,} transactions, so fewer than ten beyond p99.9",
            )
        else:
            _put(out, f"latency.{name}", result.latency_ms.get(name), "the generator did not report it", 1e3)
    out.put("load.seconds", float(seconds))
    _failures(result, float(seconds), out)
    connection_time(result, float(seconds), out)
    _generator_specific(result, out)
    status(run, declared.columns["status"], float(seconds), out)
    mysql.variables(run, declared.columns["variables"], out)


def explain(whole: Run, out: Quantities, declared: Catalogue) -> None:
    """Give the reason for figures that only the whole measure phase has: they have no intervals."""
    every = Quantities()
    totals(replace(whole, segments=None), every, declared)
    of_load = tuple(
        start
        for start in ("load.", "latency.", "type.", "details.", "connections.")
        # of latencies by interval what is missing has its own reason
        if start in {"load.", "details."} or "latency.p50" not in out.values
    )
    lost = [name for name in every.values if name.startswith(of_load) and name not in out.values]
    out.missing |= dict.fromkeys(lost, NO_INTERVALS)


def _failures(result: LoadResult, seconds: float, out: Quantities) -> None:
    """Errors by number and retried events: `load.errors.<errno>`, `load.retries`."""
    for code, count in result.errors_by_code.items():
        out.put(f"load.errors.{code}.count", count / seconds, None)
    retries = result.retries
    if retries is None and result.generator == "native":
        retries = result.errors  # each error that does not end the run is retried
    _put(out, "load.retries", retries, "the generator does not report retries", seconds)


def courses(reported: Intervals, measured: Floats, out: Quantities) -> None:
    """Series of the generator's intervals: `load.events` …, and the backlog of an open loop."""
    middle, half = (reported.begins + reported.ends) / 2, reported.lengths / 2
    for name in reported.totals:
        out.add_series(f"load.{name}", Series(middle, reported.rates(name), half, measured))
    for name, values in reported.states.items():
        unit = 1e-3 if name.endswith("_ms") else 1.0
        out.add_series(f"load.{name.removesuffix('_ms')}", Series(middle, values * unit, half, measured))


def steadiness(rates: NDArray[np.float64], step: float, out: Quantities) -> None:
    """Variation of the seconds: `load.cv`, sd / mean, and `load.worst_second`, min / median."""
    measured = gaps.measured(rates)
    if round(step) != 1:
        out.mark_missing("load.cv", f"the generator reports every {brief(step, 3)} s, not every second")
    elif len(measured) < MIN_SECONDS or np.median(measured) <= 0:
        out.mark_missing(
            "load.cv", f"the throughput series has fewer than {MIN_SECONDS} seconds, or no operations"
        )
    else:
        out.put("load.cv", float(measured.std(ddof=1) / measured.mean()))
        out.put("load.worst_second", float(measured.min() / np.median(measured)))
        return
    out.mark_missing("load.worst_second", out.missing["load.cv"])


def _generator_specific(result: LoadResult, out: Quantities) -> None:
    """Figures of some generators: rates of an open loop, details of the workload, latencies by type."""
    for name in ("rate", "achieved_rate", "backlog_max", "backlog_end"):
        _put(out, f"load.{name}", getattr(result, name), "the load ran in a closed loop")
    for name in ("nopm", "tpm"):
        _put(out, f"details.{name}", getattr(result.details, name), f"the generator does not report {name}")
    if (waiting := result.details.sockets.after.tcp_time_wait) is not None:
        out.put("load.time_wait", waiting)
    out.mark_missing("type", "this side does not have this transaction type")
    for kind, reported in result.transactions.items():
        out.mark_missing(f"type.{kind}.", "no transaction of this type was timed")
        for name, value in reported.latency_ms.items():
            out.put(f"type.{kind}.{name}", value / 1e3, None)


def _put(out: Quantities, name: str, value: float | None, reason: str, per: float = 1.0) -> None:
    if value is None:
        out.mark_missing(name, reason)
    else:
        out.put(name, value / per, None)


def connection_time(result: LoadResult, seconds: float, out: Quantities) -> None:
    """Shares of connections × seconds as `connections.in.<type>`, the others' as `connections.rest`.

    An open loop's wait for a connection is no part of it.
    """
    threads, kinds = result.threads, result.transactions
    if not threads:
        out.mark_missing("connections.", "the generator does not report its connections")
        return
    shares = {}
    for kind, reported in kinds.items():
        share = _in_transactions(reported, threads * seconds)
        if share is None:
            reason = f"the generator does not report count and mean latency of {kind}"
            out.mark_missing(f"connections.in.{kind}", reason)
            out.mark_missing(f"connections.{REST}", reason)
        else:
            shares[kind] = share
            out.put(f"connections.in.{kind}.share", share)
    out.mark_missing("connections.in.", "this side does not have this transaction type")
    if len(shares) == len(kinds):
        out.put(f"connections.{REST}", 1 - math.fsum(shares.values()))


def _in_transactions(reported: TransactionType, whole: float) -> float | None:
    count, mean = reported.count, reported.latency_ms.get("mean")
    if count == 0:
        return 0.0
    if count is None or mean is None:
        return None
    return count * (mean - (reported.wait_ms_mean or 0.0)) / 1e3 / whole


def status(run: Run, names: Collection[str], seconds: float, out: Quantities) -> None:
    """Add `status.<name>` per second; counters that the server does not have are marked as missing."""
    begin, end = run.server.status_begin, run.server.status_end
    if not begin or not end or run.segments is not None:
        out.mark_missing("status", NOT_READ if run.segments is None else NOT_OF_EACH)
        return
    for name in sorted(names):
        grown = _grown(begin, end, name)
        if grown is None:
            out.mark_missing(f"status.{name}", f"this server does not count {name}")
        elif grown < 0:
            out.mark_missing(f"status.{name}", "the server restarted in the measure phase")
        else:
            out.put(f"status.{name}", max(0, grown - GENERATOR_QUERIES.get(name, 0)) / seconds)


def without_probe(run: Run, names: Collection[str], seconds: float, out: Quantities) -> None:
    """Add `mysql.<name>` from SHOW GLOBAL STATUS where the MySQL probe did not record it."""
    begin, end = run.server.status_begin, run.server.status_end
    if not begin or not end:
        return
    for name in names:
        grown = _grown(begin, end, name)
        is_known = f"mysql.{name}" in out.values or f"mysql.{name}" in out.lost
        if not is_known and grown is not None and grown >= 0 and f"mysql.{name}" not in out.gauges:
            unit = FACTORS.get(unit_of("mysql", name) or "1", 1.0)
            out.put(f"mysql.{name}", grown * unit / seconds, float(grown), cut=unit < 1)


def _grown(begin: Mapping[str, Scalar], end: Mapping[str, Scalar], name: str) -> int | None:
    """Increase of a counter; None if the server does not have it."""
    try:
        return int(end[name]) - int(begin[name])
    except (KeyError, ValueError):
        return None


def in_segments(
    run: Run, reported: Intervals | None, inside: NDArray[np.bool_], store: Store
) -> tuple[Run, Intervals | None]:
    """The run with the figures of the load in its segments, and the intervals inside; else as they are.

    `seconds` are those of the intervals; a figure without intervals is absent.

    A side that takes turns begins no operation before its turn, and ends some after it. So its operations are
    those that it worked on: with operations of 0.13 s in turns of 1.9 s, 3 % more than ended in the turns.
    """
    if run.segments is None or not run.result:
        return run, reported
    result: dict[str, Any] = {name: value for name, value in run.result.items() if name in KEPT}
    more = 1.0
    if reported is not None:
        every, reported = reported, reported.some(inside)
        if (seconds := float(reported.lengths.sum())) > 0:
            sums = {name: float(counts.sum()) for name, counts in reported.totals.items()}
            if run.turns:
                more = _worked_on(every, reported)
                sums |= {name: more * sums[name] for name in COUNTED_AT_END if name in sums}
            result |= {"seconds": seconds} | {
                name: total for name, total in sums.items() if np.isfinite(total)
            }
    by_type = latencies.read(run, store)
    if by_type:
        result["latency_ms"] = _latency(latencies.added(list(by_type.values())))
        result["transactions"] = {
            kind: {"count": more * counted.total, "latency_ms": _latency(counted)}
            for kind, counted in by_type.items()
        }
    return replace(run, result=LoadResult.model_validate(result)), reported


def _worked_on(every: Intervals, inside: Intervals) -> float:
    """Operations worked on inside the turns, to those that ended inside; 1 if no statements are counted.

    The work on operations is measured by the share of their statements.
    """
    if not {"events", "queries"} <= every.totals.keys():
        return 1.0
    work = inside.totals["queries"].sum() * np.nansum(every.totals["events"])
    ended = inside.totals["events"].sum() * np.nansum(every.totals["queries"])
    return float(work / ended) if work > 0 and ended > 0 else 1.0


def _latency(counted: LatencyHistogram) -> dict[str, float]:
    """As in result.json, in ms."""
    values = counted.quantiles(np.array(list(QUANTILES.values())))
    figures = {"min": counted.minimum, "mean": counted.mean, "max": counted.maximum}
    figures |= dict(zip(QUANTILES, values.tolist(), strict=True))
    return {name: 1e3 * value for name, value in figures.items()}
