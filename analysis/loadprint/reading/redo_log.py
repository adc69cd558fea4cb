"""The redo log by a server's own figures: its capacity, and the bytes written to it between two readings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

LSN = ("Innodb_redo_log_current_lsn", "Innodb_lsn_current")  # MySQL 8.0.30; MariaDB and Percona Server
# What earlier versions have is an upper bound: a block that is written partly filled counts again each time.
# Under oltp_read_write MySQL 5.7.22 and 8.0.12 report 2.0 to 2.7 times the growth of the LSN.
UPPER_BOUND = ("Innodb_os_log_written",)


def capacity(variables: Mapping[str, Any]) -> float | None:
    """Bytes of redo log before a checkpoint must follow, from SHOW GLOBAL VARIABLES; None where unknown.

    MySQL 8.0.30 has innodb_redo_log_capacity and ignores the older names; before, and in MariaDB, it is
    size × files, of which MariaDB 10.5 has one and no variable.
    """
    total = number(variables.get("innodb_redo_log_capacity"))
    if total is not None:
        return total
    size = number(variables.get("innodb_log_file_size"))
    return None if size is None else size * (number(variables.get("innodb_log_files_in_group")) or 1)


def written(before: Mapping[str, Any], after: Mapping[str, Any], names: Sequence[str] = LSN) -> float | None:
    """Bytes of redo between two readings of SHOW GLOBAL STATUS; None where this server does not count it."""
    for name in names:
        first, last = number(before.get(name)), number(after.get(name))
        if first is not None and last is not None:
            return last - first
    return None


def number(text: Any) -> float | None:
    """A variable or status value as a number; None where it is missing or not one."""
    try:
        return float(text)
    except (TypeError, ValueError):
        return None
