"""Computes the redo log's capacity and the bytes written to it from a server's variables and status."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

LSN = ("Innodb_redo_log_current_lsn", "Innodb_lsn_current")  # MySQL 8.0.30; MariaDB and Percona Server
# Earlier versions report an upper bound: a partly filled block counts each time it is written. Under
# oltp_read_write MySQL 5.7.22 and 8.0.12 report 2.0 to 2.7 times the growth of the LSN.
UPPER_BOUND = ("Innodb_os_log_written",)


def capacity(variables: Mapping[str, Any]) -> float | None:
    """Bytes of redo log that force a checkpoint, from SHOW GLOBAL VARIABLES; None where unknown.

    MySQL 8.0.30 has innodb_redo_log_capacity and ignores the older names. Older versions and MariaDB have
    size × files; MariaDB 10.5 has one file and no variable for it.
    """
    total = number(variables.get("innodb_redo_log_capacity"))
    if total is not None:
        return total
    size = number(variables.get("innodb_log_file_size"))
    return None if size is None else size * (number(variables.get("innodb_log_files_in_group")) or 1)


def written(before: Mapping[str, Any], after: Mapping[str, Any], names: Sequence[str] = LSN) -> float | None:
    """Bytes of redo between two readings of SHOW GLOBAL STATUS; None where the server does not count it."""
    for name in names:
        first, last = number(before.get(name)), number(after.get(name))
        if first is not None and last is not None:
            return last - first if last >= first else None  # the server restarted
    return None


def number(text: Any) -> float | None:
    """A variable or status value as a number; None where it is missing or not one."""
    try:
        return float(text)
    except (TypeError, ValueError):
        return None
