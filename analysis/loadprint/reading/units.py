"""Converts the units of columns and metrics, which are in the footers of tables, to base units.

The recorder stores values in the unit of their source (docs/metrics.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from loadprint.errors import InputError
from loadprint.reading.columns import CPU_FIELDS, page_size
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
}
SCRAPED = "scrape"
FIXED = frozenset({"throughput", "latency"})  # read without a conversion
# units of a column by the end of its name, and by its name; units that are converted to each other
ENDINGS = {"_ms": "ms", "_us": "us", "_ns": "ns", "_bytes": "B", "_sectors": "sector", "_uj": "uJ"}
_TIMES = (*CPU_FIELDS, "guest", "guest_nice", "utime", "stime")
NAMED = dict.fromkeys(_TIMES, "tick") | {"rss": "page", "Innodb_row_lock_time": "ms"}
# table and unit → names of its columns that do not show their unit; a test compares them with docs/metrics.md
_UNITS = {
    ("vmstat", "page"): """
        nr_free_pages nr_dirty nr_writeback nr_dirty_threshold nr_dirty_background_threshold nr_file_pages
        nr_anon_pages nr_mapped nr_shmem nr_dirtied nr_written pswpin pswpout pgfree pgsteal_kswapd
        pgsteal_direct pgscan_kswapd pgscan_direct numa_hit numa_miss numa_foreign numa_local numa_other
        numa_pages_migrated""",
    ("vmstat", "kB"): "pgpgin pgpgout",
    ("tcp", "page"): "sockstat.TCP.mem",
    ("tcp", "B"): "IpExt.InOctets IpExt.OutOctets",
    ("process", "tick"): "starttime cutime cstime",
    ("process", "B"): "rchar wchar",
    ("sockets", "page"): "tcp_mem",
    ("frequency", "kHz"): "khz",
    ("ebpf_block_size", "B"): "buckets",
    ("mysql_statements", "ps"): "buckets",
    ("mysql_digests", "ps"): "sum_timer_wait sum_lock_time cpu_time",
    ("mysql", "s"): "Uptime",
    ("mysql", "B"): """
        Bytes_received Bytes_sent Innodb_buffer_pool_bytes_dirty Innodb_data_read Innodb_data_written
        Innodb_os_log_written Innodb_redo_log_current_lsn Innodb_redo_log_checkpoint_lsn
        Innodb_redo_log_capacity_resized Innodb_lsn_current Innodb_lsn_last_checkpoint Innodb_checkpoint_age
        Innodb_checkpoint_max_age Qcache_free_memory innodb_metrics.log_lsn_checkpoint_age
        innodb_status.log_sequence_number innodb_status.log_flushed_up_to innodb_status.last_checkpoint_at
        loadprint.bytes_received loadprint.bytes_sent""",
    ("mysql", "page"): """
        Innodb_buffer_pool_pages_total Innodb_buffer_pool_pages_data Innodb_buffer_pool_pages_dirty
        Innodb_buffer_pool_pages_flushed Innodb_pages_written
        innodb_metrics.buffer_flush_adaptive_total_pages innodb_metrics.buffer_flush_background_total_pages
        innodb_metrics.buffer_flush_sync_total_pages""",
}
UNITS = {(table, name): unit for (table, unit), names in _UNITS.items() for name in names.split()}
KINDS = {"size": "B kB sector page", "time": "s ms us ns ps tick"}


def named_unit(name: str) -> str | None:
    """The unit that the recorder has for a name, where it can be seen in it."""
    return NAMED.get(name) or next((unit for end, unit in ENDINGS.items() if name.endswith(end)), None)


def unit_of(table: str, name: str) -> str:
    """Unit of a column or metric of the recorder's tables."""
    if table == "memory":
        return "1" if name.startswith("HugePages_") else "kB"
    if name == "buckets" and table.startswith("ebpf_"):
        return UNITS.get((table, name), "ns")
    return UNITS.get((table, name)) or named_unit(name) or "1"


def factor(path: Path, column: str, unit: str | None, run: Run) -> float:
    """The unit of a column of a role's table in base units. Raises InputError if it is not known."""
    role = path.parent.name
    if unit == "tick":
        return 1 / user_hz(run, role)
    if unit == "page":
        return 1.0 if path.stem == "mysql" else page_size(run, role)  # InnoDB's are counted
    if unit not in FACTORS:
        what = f"has the unit `{unit}`, which is not known" if unit else "has no unit"
        raise InputError(path, f"column `{column}` {what}", "record or import it again, or update loadprint")
    return FACTORS[unit]


def unit_flaw(table: str, described: Mapping[str, Any]) -> str:
    """The first column or metric of a table's metadata in a unit that contradicts its name; or empty."""
    for kind in ("column", "metric"):
        for name, meaning in (described.get(f"{kind}s") or {}).items():
            found, expected = (meaning or {}).get("unit"), named_unit(name)
            if found is None or expected is None or table == SCRAPED:
                continue
            if found != expected if table in FIXED else _kind(found) != _kind(expected):
                return f"{kind} `{name}` has the unit `{found}`, expected `{expected}`"
    return ""


def _kind(unit: str) -> str:
    """What a unit measures."""
    return next((kind for kind, units in KINDS.items() if unit in units.split()), unit)
