"""Computes the increase of SHOW GLOBAL STATUS over the measure phase.

The generator reads the status outside of its timed phase; its second SHOW counts as one question, which is
subtracted. Statements of other clients are included.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from loadprint.metrics.quantities import Quantities
from loadprint.reading.columns import MILLISECOND
from loadprint.reading.mysql_names import COUNTERS, SUMS
from loadprint.reading.recording import Run

# `Questions` leaves out COM_STMT_PREPARE, _CLOSE and _RESET; the Com_stmt_ counters show them
COUNTED = (
    "Questions",
    "Queries",
    "Com_commit",
    "Com_stmt_prepare",
    "Com_stmt_execute",
    "Com_stmt_close",
    "Com_prepare_sql",
    "Bytes_received",
    "Bytes_sent",
)
GENERATOR_QUERIES = {"Questions": 1, "Queries": 1}


def status(run: Run, seconds: float, out: Quantities) -> None:
    """Add `status.<name>` per second; counters that the server does not have are marked as missing."""
    server = run.server or {}
    begin, end = server.get("status_begin"), server.get("status_end")
    if not isinstance(begin, dict) or not isinstance(end, dict):
        out.mark_missing("status", "the server's status was not read at both ends of the measure phase")
        return
    for name in COUNTED:
        try:
            grown = int(end[name]) - int(begin[name])
        except (KeyError, TypeError, ValueError):
            out.mark_missing(f"status.{name}", f"this server does not count {name}")
            continue
        if grown < 0:
            out.mark_missing(f"status.{name}", "the server restarted in the measure phase")
        else:
            out.put(f"status.{name}", max(0, grown - GENERATOR_QUERIES.get(name, 0)) / seconds, None)


def without_probe(run: Run, seconds: float, out: Quantities) -> None:
    """Add `mysql.<name>` from SHOW GLOBAL STATUS where the MySQL probe did not record it."""
    server = run.server or {}
    begin, end = server.get("status_begin"), server.get("status_end")
    if not isinstance(begin, dict) or not isinstance(end, dict):
        return
    spellings: dict[str, tuple[tuple[str, ...], ...]] = {
        name: tuple((one,) for one in names) for name, names in COUNTERS.items()
    }
    for name, sums in SUMS.items():
        spellings[name] = (*spellings.get(name, ()), *sums)
    for name, choices in spellings.items():
        if f"mysql.{name}" in out.values:
            continue
        grown = next((rise for names in choices if (rise := _grown(begin, end, names)) is not None), None)
        if grown is not None:
            unit = MILLISECOND if name.endswith("_ms") else 1.0
            out.put(f"mysql.{name}", grown * unit / seconds, float(grown), cut=unit < 1)


def _grown(begin: dict[str, Any], end: dict[str, Any], names: Sequence[str]) -> int | None:
    """Increase of the sum of some counters; None if one is missing, or the server restarted."""
    try:
        steps = [int(end[name]) - int(begin[name]) for name in names]
    except (KeyError, TypeError, ValueError):
        return None
    return None if min(steps) < 0 else sum(steps)
