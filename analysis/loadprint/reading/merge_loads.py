"""Merges the results of several load hosts into that of one generator (result.json).

Counts and rates are added. Quantiles come from the sum of the latency logs, never from other quantiles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np

from loadprint.errors import InputError
from loadprint.reading import interval_log
from loadprint.reading.interval_log import LogHistogram

Result = Mapping[str, Any]

SUMMED = (
    *("events", "queries", "reads", "writes", "others", "commits", "rollbacks", "rows", "errors", "retries"),
    *("reconnects", "threads", "rate", "achieved_rate", "backlog_max", "backlog_end", "workers"),
)
LONGEST = ("seconds", "drain_seconds")
BY_KEY = ("errors_by_code", "reconnects_by_cause", "protocol_calls")
LISTED = ("per_thread", "servers", "flags")
PER_EVENT = ("wait_ms_mean", "service_ms_mean")
EQUAL = ("workload", "operation", "generator", "mode", "protocol", "scenario")
# counted in the server, or a setting: each load host reports that of the whole run
OF_SERVER = ("nopm", "tpm", "warehouses")
# of the details: counts and rates of one load host
DETAILS = (
    *("ids", "buffers", "rows_per_second", "statements_per_second", "queue_full_seconds"),
    *("writers_idle_seconds", "clients", "connections", "rows_inserted", "rows_deleted"),
    *("inserts_per_second", "deletes_per_second", "insert_rate_target"),
)


def merged(run: Path, results: Mapping[str, Result | None]) -> dict[str, Any] | None:
    """Merge the results of load hosts, by role; None if one has no result.

    `seconds` are those of the host that ran longest. Raises InputError if the hosts ran different workloads,
    or a latency log is damaged.
    """
    roles = list(results)
    parts = [dict(result) for result in results.values() if result is not None]
    if len(parts) < len(roles):
        return None
    if len(parts) == 1:
        return parts[0]
    for role, part in zip(roles, parts, strict=True):
        for name in EQUAL:
            if part.get(name) != parts[0].get(name):
                what = f"`{name}` is {part.get(name)}, that of {roles[0]} is {parts[0].get(name)}"
                raise InputError(run / role / "result.json", what, "run all load hosts with one workload")
    out = {name: value for name, value in parts[0].items() if name not in ("part", "seed", "point")}
    out |= {name: _sum(part.get(name) for part in parts) for name in SUMMED if name in out}
    out |= {name: _with(max, (part.get(name) for part in parts)) for name in LONGEST if name in out}
    out |= {name: _sum_by_key([part.get(name) for part in parts]) for name in BY_KEY if name in out}
    out |= {name: _joined(part.get(name) for part in parts) for name in LISTED if name in out}
    for name in PER_EVENT:
        if name in out:
            out[name] = _mean([(part.get(name), part.get("events")) for part in parts])
    if "rate_held" in out:
        out["rate_held"] = _with(all, (part.get("rate_held") for part in parts))
    failed = [part for part in parts if part.get("status") == "failed"]
    if failed:
        out |= {"status": "failed", "reason": failed[0].get("reason")}
    out["details"] = _details([part.get("details") or {} for part in parts])
    logs = [run / role / "latency.hlog" for role in roles]
    by_type = interval_log.read_all(logs) if all(log.is_file() for log in logs) else {}
    kinds = dict.fromkeys(kind for part in parts for kind in part.get("transactions") or {})
    out["transactions"] = {
        kind: _type([(part.get("transactions") or {}).get(kind) or {} for part in parts], by_type.get(kind))
        for kind in kinds
    }
    timed = [
        sum((kind or {}).get("count") or 0 for kind in (part.get("transactions") or {}).values())
        or part.get("events")
        or 0
        for part in parts
    ]
    everything = reduce(LogHistogram.plus, by_type.values()) if by_type else None
    out["latency_ms"] = _latency([part.get("latency_ms") or {} for part in parts], timed, everything)
    return out


def _type(parts: Sequence[Result], log: LogHistogram | None) -> dict[str, Any]:
    """One transaction type of all hosts."""
    counts = [part.get("count") or 0 for part in parts]
    return {
        "count": sum(counts),
        "latency_ms": _latency([part.get("latency_ms") or {} for part in parts], counts, log),
        "wait_ms_mean": _mean([(part.get("wait_ms_mean"), n) for part, n in zip(parts, counts, strict=True)]),
        "errors_by_code": _sum_by_key([part.get("errors_by_code") for part in parts]),
    }


def _latency(parts: Sequence[Result], counts: Sequence[float], log: LogHistogram | None) -> dict[str, Any]:
    """Latencies of all hosts in ms; a quantile is None without a log of every host."""
    out: dict[str, Any] = {}
    for name in dict.fromkeys(name for part in parts for name in part):
        values = [part.get(name) for part in parts]
        if name == "mean":
            out[name] = _mean(list(zip(values, counts, strict=True)))
        elif name == "sum":
            out[name] = _sum(values)
        elif name in ("min", "max"):
            known = [value for value in values if value is not None]
            out[name] = (min if name == "min" else max)(known, default=None)
        elif (share := _share(name)) is not None:
            out[name] = _quantile(log, share)
    return out


def _share(name: str) -> float | None:
    """0.95 of `p95`, 0.999 of `p999`; None for another name."""
    digits = name.removeprefix("p")
    if not name.startswith("p") or not digits.isdecimal():
        return None
    return int(digits) / (100 if len(digits) < 3 else 10 ** len(digits))


def _quantile(log: LogHistogram | None, share: float) -> float | None:
    """Largest value of the quantile's bucket in ms, as the generator reports it."""
    if log is None or not log.total:
        return None
    upper = float(log.quantiles(np.array([share]))[0])
    return (upper - interval_log.NANOSECOND) * 1e3


def _details(parts: Sequence[Result]) -> dict[str, Any]:
    """Details of the workload; one that differs between the hosts and cannot be added is left out."""
    out = {}
    for name in dict.fromkeys(name for part in parts for name in part):
        values = [part.get(name) for part in parts]
        if name in OF_SERVER:
            out[name] = _with(lambda known: sum(known) / len(known), values)
        elif name in DETAILS:
            out[name] = _sum(values)
        elif all(value == values[0] for value in values):
            out[name] = values[0]
    return out


def _with(function: Callable[[list[Any]], Any], values: Iterable[Any]) -> Any:
    """A function of values that are all known, else None."""
    listed = list(values)
    return None if any(value is None for value in listed) else function(listed)


def _sum(values: Iterable[Any]) -> Any:
    return _with(sum, values)


def _mean(weighted: Sequence[tuple[float | None, float | None]]) -> float | None:
    """Mean of (value, weight); None if a value with a weight is unknown."""
    counted = [(value, weight) for value, weight in weighted if weight]
    if not counted or any(value is None for value, _ in counted):
        return None
    return sum((value or 0.0) * (weight or 0.0) for value, weight in counted) / sum(
        w or 0.0 for _, w in counted
    )


def _sum_by_key(parts: Sequence[Mapping[str, float] | None]) -> dict[str, float] | None:
    if any(part is None for part in parts):
        return None
    sums: dict[str, float] = {}
    for part in parts:
        for key, value in (part or {}).items():
            sums[key] = sums.get(key, 0) + (value or 0)
    return sums


def _joined(parts: Iterable[Sequence[Any] | None]) -> list[Any] | None:
    """The lists one after another; equal texts once."""
    known = [part for part in parts if part is not None]
    listed = [value for part in known for value in part]
    texts = all(isinstance(value, str) for value in listed)
    return (list(dict.fromkeys(listed)) if texts else listed) if known else None
