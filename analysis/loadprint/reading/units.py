"""Converts the units of columns and metrics, which are in the footers of tables, to base units.

The recorder stores values in the unit of their source (docs/metrics.md). Scraped series may have any.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loadprint.reading.columns import page_size
from loadprint.reading.cpusets import user_hz
from loadprint.reading.recording import Run

# unit in base units; of a host's own units see `factor`
FACTORS = {
    "1": 1.0,
    "B": 1.0,
    "kB": 1024.0,
    "sector": 512.0,  # for every block size of the device (Documentation/block/stat.rst)
    "s": 1.0,
    "ms": 1e-3,
    "us": 1e-6,
    "ns": 1e-9,
    "ps": 1e-12,
    "uJ": 1e-6,
    "kHz": 1e3,
    "percent": 1.0,
}
FIXED = frozenset({"throughput", "latency", "mysql_digests"})  # read without a conversion
# units of a column by the end of its name, and units that are converted to each other
ENDINGS = {"_ms": "ms", "_us": "us", "_ns": "ns", "_bytes": "B", "_sectors": "sector", "_uj": "uJ"}
KINDS = {"size": "B kB sector", "time": "s ms us ns ps"}
OF_HOST = frozenset({"tick", "page"})
SCRAPED = "scrape"


def ending_unit(name: str) -> str | None:
    """Unit that a name ends with."""
    return next((unit for ending, unit in ENDINGS.items() if name.endswith(ending)), None)


def factor(table: str, described: Mapping[str, Any], run: Run, role: str) -> float:
    """The unit of a column or metric in base units, by its metadata."""
    unit = described.get("unit") or "1"
    if unit == "tick":
        return 1 / user_hz(run, role)
    if unit == "page" and table != "mysql":  # whose pages are InnoDB's, and counted
        return page_size(run, role)
    return FACTORS.get(unit, 1.0)


def unit_flaw(table: str, described: Mapping[str, Any]) -> str:
    """The first column or metric of a table's metadata in an unknown or unfit unit; empty if none is."""
    for kind in ("column", "metric") if table != SCRAPED else ():
        for name, meaning in (described.get(f"{kind}s") or {}).items():
            found, expected = (meaning or {}).get("unit") or "1", ending_unit(name)
            if found not in FACTORS and found not in OF_HOST:
                return f"{kind} `{name}` has the unit `{found}`, which is not known"
            is_fit = found == expected if table in FIXED else _kind(found) == _kind(expected or found)
            if expected and not is_fit:
                return f"{kind} `{name}` has the unit `{found}`, expected `{expected}`"
    return ""


def _kind(unit: str) -> str:
    """What a unit measures."""
    return next((kind for kind, units in KINDS.items() if unit in units.split()), unit)
