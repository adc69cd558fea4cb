"""Divides the time of the load's connections among the transaction types, by the generator's results.

The probes cannot divide the server's time by type: the kernel does not know which statement a thread runs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from loadprint.metrics.quantities import Quantities

REST = "rest"  # not a transaction type


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
