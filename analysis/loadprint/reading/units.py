"""Converts the units of columns and metrics, which are in the footers of tables, to base units.

The recorder stores values in the unit of their source (docs/metrics.md).
"""

from __future__ import annotations

from pathlib import Path

from loadprint.errors import InputError
from loadprint.reading.declared import unit_of
from loadprint.reading.recording import Run
from loadprint.reading.run_documents import TableMeaning

USER_HZ, PAGE = 100, 4096  # of a host that did not record them
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
}
SCRAPED = "scrape"
FIXED = frozenset({"throughput", "latency"})  # read without a conversion
SIZES, TIMES = ("B", "kB", "sector", "page"), ("s", "ms", "us", "ns", "ps", "tick")


def factor(path: Path, column: str, unit: str | None, run: Run) -> float:
    """The unit of a column of a role's table in base units. Raises InputError if it is not known."""
    host = run.fingerprint(path.parent.name)
    if unit == "tick":
        return 1 / (host.user_hz or USER_HZ)
    if unit == "page":
        return 1.0 if path.stem == "mysql" else float(host.page_size or PAGE)  # InnoDB's are counted
    if unit not in FACTORS:
        what = f"has the unit `{unit}`, which is not known" if unit else "has no unit"
        raise InputError(path, f"column `{column}` {what}", "record or import it again, or update loadprint")
    return FACTORS[unit]


def unit_flaw(table: str, described: TableMeaning) -> str:
    """The first column or metric of a table's metadata in a unit that contradicts its name; or empty.

    That is the unit that its probe declares, else a unit at the end of its name.
    """
    for kind, meanings in (("column", described.columns), ("metric", described.metrics)):
        for name, meaning in meanings.items():
            unit, ending = meaning.unit, name.rpartition("_")[2]
            expected = unit_of(table, name) or ending
            if unit is None or expected not in SIZES + TIMES or table == SCRAPED:
                continue
            if unit != expected if table in FIXED else _measured(unit) != _measured(expected):
                return f"{kind} `{name}` has the unit `{unit}`, expected `{expected}`"
    return ""


def _measured(unit: str) -> str:
    """What a unit measures."""
    return "size" if unit in SIZES else "time" if unit in TIMES else unit
