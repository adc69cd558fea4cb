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
from loadprint.reading.declared import unit_of
from loadprint.reading.latencies import LatencyHistogram
from loadprint.reading.queries import Store
from loadprint.reading.recording import Run
from loadprint.reading.time_series import Series
from loadprint.reading.units import FACTORS
from loadprint.reading.window import inside_segments
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
NO_INTERVALS = "it is a total of the whole measure phase, without intervals"


def totals(run: Run, out: Quantities, known: Catalogue) -> None:
    """Totals of result.json as rates, latencies in seconds."""
    if run.result is None:
        out.mark_missing("load", "load/result.json is missing")
        out.mark_missing("latency", "load/result.json is missing")
        out.mark_missing("connections.", "load/result.json is missing")
        return
    seconds = run.result.get("seconds")
    if run.segments is not None and seconds is None:
        out.missing |= dict.fromkeys(("load", "latency", "connections."), NO_INTERVALS)
        return
    if not isinstance(seconds, int | float) or not seconds > 0:
        raise InputError(
            run.path / "load" / "result.json", "`seconds` is not a positive number", "record the run again"
        )
    for name in ("events", "queries", "reads", "writes", "others", "commits", "rows", "errors", "reconnects"):
        total = run.result.get(name)
        if isinstance(total, int | float):
            out.put(f"load.{name}", total / seconds, None)
        else:
            out.mark_missing(f"load.{name}", f"the load generator does not count {name}")
    latency = run.result.get("latency_ms") or {}
    timed = sum((kind or {}).get("count") or 0 for kind in (run.result.get("transactions") or {}).values())
    for name in known.columns["latency"]:
        value = latency.get(name)
        if name == "p999" and timed < MIN_FOR_P999:
            out.mark_missing(
                "latency.p999",
                f"the run has fewer than {MIN_FOR_P999:,} transactions, so fewer than ten beyond p99.9",
            )
        elif isinstance(value, int | float) and math.isfinite(value):
            out.put(f"latency.{name}", value / 1e3, None)
        else:
            out.mark_missing(f"latency.{name}", "the generator did not report it")
    out.put("load.seconds", float(seconds))
    _failures(run.result, float(seconds), out)
    connection_time(run.result, float(seconds), out)
    _generator_specific(run.result, out)
    status(run, known.columns["status"], float(seconds), out)
    mysql.variables(run, known.columns["variables"], out)


def explain(whole: Run, out: Quantities, known: Catalogue) -> None:
    """Give the reason for figures that only the whole measure phase has: they have no intervals."""
    every = Quantities()
    totals(replace(whole, segments=None), every, known)
    of_load = tuple(
        start
        for start in ("load.", "latency.", "type.", "details.", "connections.")
        # of latencies by interval what is missing has its own reason
        if start in {"load.", "details."} or "latency.p50" not in out.values
    )
    lost = [name for name in every.values if name.startswith(of_load) and name not in out.values]
    out.missing |= dict.fromkeys(lost, NO_INTERVALS)


def _failures(result: dict[str, Any], seconds: float, out: Quantities) -> None:
    """Errors by number and retried events: `load.errors.<errno>`, `load.retries`."""
    for code, count in (result.get("errors_by_code") or {}).items():
        if isinstance(count, int | float):
            out.put(f"load.errors.{code}.count", count / seconds, None)
    retries = result.get("retries")
    if retries is None and result.get("generator") == "native":
        retries = result.get("errors")  # each error that does not end the run is retried
    _put(
        out,
        "load.retries",
        retries,
        "the generator does not report retries",
        1 / seconds,
    )


def courses(reported: Intervals, out: Quantities) -> None:
    """Series of the generator's intervals: `load.events` …, and the backlog of an open loop."""
    middle, half = (reported.begins + reported.ends) / 2, reported.lengths / 2
    for name in reported.totals:
        out.add_series(f"load.{name}", Series(middle, reported.rates(name), half))
    for name, values in reported.states.items():
        unit = 1e-3 if name.endswith("_ms") else 1.0
        out.add_series(f"load.{name.removesuffix('_ms')}", Series(middle, values * unit, half))


def steadiness(rates: NDArray[np.float64], step: float, out: Quantities) -> None:
    """Variation of the seconds: `load.cv`, sd / mean, and `load.worst_second`, min / median."""
    known = gaps.known(rates)
    if round(step) != 1:
        out.mark_missing("load.cv", f"the generator reports every {brief(step, 3)} s, not every second")
    elif len(known) < MIN_SECONDS or np.median(known) <= 0:
        out.mark_missing(
            "load.cv", f"the throughput series has fewer than {MIN_SECONDS} seconds, or no operations"
        )
    else:
        out.put("load.cv", float(known.std(ddof=1) / known.mean()))
        out.put("load.worst_second", float(known.min() / np.median(known)))
        return
    out.mark_missing("load.worst_second", out.missing["load.cv"])


def time_wait_after(result: dict[str, Any]) -> float | None:
    """Sockets in TIME_WAIT after an external generator ran, by its own report."""
    sockets = (result.get("details") or {}).get("sockets") or {}
    waits = (sockets.get("after") or {}).get("tcp_time_wait")
    return float(waits) if isinstance(waits, int | float) else None


def _generator_specific(result: dict[str, Any], out: Quantities) -> None:
    """Figures of some generators: rates of an open loop, details of the workload, latencies by type."""
    for name in ("rate", "achieved_rate", "backlog_max", "backlog_end"):
        _put(out, f"load.{name}", result.get(name), "the load ran in a closed loop")
    for name in ("nopm", "tpm"):
        _put(
            out,
            f"details.{name}",
            (result.get("details") or {}).get(name),
            f"the generator does not report {name}",
        )
    if (waiting := time_wait_after(result)) is not None:
        out.put("load.time_wait", waiting)
    out.mark_missing("type", "this side does not have this transaction type")
    for kind, reported in (result.get("transactions") or {}).items():
        for name, value in ((reported or {}).get("latency_ms") or {}).items():
            _put(out, f"type.{kind}.{name}", value, "no transaction of this type was timed", 1e-3)


def _put(out: Quantities, name: str, value: Any, reason: str, factor: float = 1.0) -> None:
    if isinstance(value, int | float) and math.isfinite(value):
        out.put(name, value * factor, None)
    else:
        out.mark_missing(name, reason)


def connection_time(result: Mapping[str, Any], seconds: float, out: Quantities) -> None:
    """Shares of connections × seconds as `connections.in.<type>`, the others' as `connections.rest`.

    An open loop's wait for a connection is no part of it.
    """
    threads, kinds = result.get("threads"), result.get("transactions") or {}
    if not isinstance(threads, int | float) or threads <= 0:
        out.mark_missing("connections.", "the generator does not report its connections")
        return
    shares = {}
    for kind, reported in kinds.items():
        share = _in_transactions(reported or {}, threads * seconds)
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


def _in_transactions(reported: Mapping[str, Any], whole: float) -> float | None:
    count, mean = reported.get("count"), (reported.get("latency_ms") or {}).get("mean")
    wait = reported.get("wait_ms_mean") or 0.0
    if count == 0:
        return 0.0
    if not (
        isinstance(count, int | float) and isinstance(mean, int | float) and isinstance(wait, int | float)
    ):
        return None
    return count * (mean - wait) / 1e3 / whole


def status(run: Run, names: Collection[str], seconds: float, out: Quantities) -> None:
    """Add `status.<name>` per second; counters that the server does not have are marked as missing."""
    begin, end = _ends(run)
    if begin is None or end is None or run.segments is not None:
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
    begin, end = _ends(run)
    if begin is None or end is None:
        return
    for name in names:
        grown = _grown(begin, end, name)
        is_known = f"mysql.{name}" in out.values or f"mysql.{name}" in out.lost
        if not is_known and grown is not None and grown >= 0 and f"mysql.{name}" not in out.gauges:
            unit = FACTORS.get(unit_of("mysql", name) or "1", 1.0)
            out.put(f"mysql.{name}", grown * unit / seconds, float(grown), cut=unit < 1)


def _ends(run: Run) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    server = run.server or {}
    begin, end = server.get("status_begin"), server.get("status_end")
    return begin if isinstance(begin, dict) else None, end if isinstance(end, dict) else None


def _grown(begin: dict[str, Any], end: dict[str, Any], name: str) -> int | None:
    """Increase of a counter; None if the server does not have it."""
    try:
        return int(end[name]) - int(begin[name])
    except (KeyError, TypeError, ValueError):
        return None


def in_segments(run: Run, reported: Intervals | None, store: Store) -> tuple[Run, Intervals | None]:
    """The run with the figures of the load in its segments, and the intervals inside; else as they are.

    `seconds` are those of the intervals; a figure without intervals is absent.
    """
    if run.segments is None or run.result is None:
        return run, reported
    result: dict[str, Any] = {name: run.result[name] for name in KEPT if name in run.result}
    if reported is not None:
        reported = reported.some(inside_segments(run, store, reported.begins, reported.ends))
        if (seconds := float(reported.lengths.sum())) > 0:
            sums = {name: float(counts.sum()) for name, counts in reported.totals.items()}
            result |= {"seconds": seconds} | {
                name: total for name, total in sums.items() if np.isfinite(total)
            }
    by_type = latencies.read(run, store)
    if by_type:
        result["latency_ms"] = _latency(latencies.added(list(by_type.values())))
        result["transactions"] = {
            kind: {"count": counted.total, "latency_ms": _latency(counted)}
            for kind, counted in by_type.items()
        }
    return replace(run, result=result), reported


def _latency(counted: LatencyHistogram) -> dict[str, float]:
    """As in result.json, in ms."""
    values = counted.quantiles(np.array(list(QUANTILES.values())))
    figures = {"min": counted.minimum, "mean": counted.mean, "max": counted.maximum}
    figures |= dict(zip(QUANTILES, values.tolist(), strict=True))
    return {name: 1e3 * value for name, value in figures.items()}
