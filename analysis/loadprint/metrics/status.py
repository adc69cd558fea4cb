"""Computes the increase of SHOW GLOBAL STATUS over the measure phase.

The generator reads the status outside of its timed phase; its second SHOW counts as one question, which is
subtracted. Statements of other clients are included.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from loadprint.metrics.quantities import Quantities
from loadprint.reading.declared import unit_of
from loadprint.reading.recording import Run
from loadprint.reading.units import FACTORS

GENERATOR_QUERIES = {"Questions": 1, "Queries": 1}
NOT_OF_EACH = "the server's status was read at both ends of the measure phase only"
NOT_READ = "the server's status was not read at both ends of the measure phase"


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
