"""Lists variables whose meaning, or effect, changed with the version while the name stayed.

Each entry is variable → (flavour, since version, meaning), … in the order of versions. Servers with the same
value differ if the meanings differ. Sources: release notes and reference manuals of
MySQL 5.7, 8.0, 8.4 and 9.x; MariaDB's documentation and its notes on InnoDB in 10.5, 10.8 and 11.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from loadprint.judging.effective import Server

Since = tuple[str, tuple[int, ...], str]

MEANINGS: Mapping[str, tuple[Since, ...]] = {
    "innodb_doublewrite": (
        ("MySQL", (0,), "in the system tablespace"),
        ("MySQL", (8, 0, 20), "in separate files"),
        ("MariaDB", (0,), "in the system tablespace"),
    ),
    "innodb_flush_method": (
        ("MySQL", (0,), "of data files, the redo log goes through the page cache"),
        ("MariaDB", (0,), "of data files, the redo log goes through the page cache"),
        ("MariaDB", (10, 8), "of data files, the redo log is written directly where the device allows"),
        ("MariaDB", (11, 0), "only read at start, to set four switches"),
    ),
    "innodb_log_file_size": (
        ("MySQL", (0,), "of each file"),
        ("MySQL", (8, 0, 30), "ignored with innodb_redo_log_capacity"),
        ("MariaDB", (0,), "of each file"),
        ("MariaDB", (10, 5), "of the only file"),
    ),
    "innodb_buffer_pool_instances": (
        ("MySQL", (0,), "effective"),
        ("MariaDB", (0,), "effective"),
        ("MariaDB", (10, 5), "ignored: one"),
    ),
    "innodb_page_cleaners": (
        ("MySQL", (0,), "effective"),
        ("MariaDB", (0,), "effective"),
        ("MariaDB", (10, 5), "ignored: one"),
    ),
    "innodb_dedicated_server": (
        ("MySQL", (8, 0), "sizes buffer pool, redo log by memory, and the flush method"),
        ("MySQL", (8, 4), "sizes the buffer pool by memory, the redo log by CPUs"),
    ),
    "performance_schema": (
        ("MySQL", (0,), "statements and waits of 5.6 and 5.7"),
        ("MySQL", (8, 0), "also transactions, memory and errors by default"),
        ("MariaDB", (0,), "statements and waits of 5.6 and 5.7"),
    ),
}
# values of a switch for which its change of meaning matters
MATTERS_WHEN = {
    "innodb_doublewrite": ("on", "1", "detect_and_recover"),
    "innodb_dedicated_server": ("on", "1"),
    "performance_schema": ("on", "1"),
}
# older name → newer name, which is compared
RENAMED = {
    "tx_isolation": "transaction_isolation",
    "tx_read_only": "transaction_read_only",
    "log_slave_updates": "log_replica_updates",
    "have_openssl": "have_ssl",
    "metadata_locks_hash_instances": "metadata_locks_cache_size",
    "innodb_undo_logs": "innodb_rollback_segments",
}
PREFIXES = (
    ("slave_", "replica_"),
    ("master_", "source_"),
    ("rpl_semi_sync_slave_", "rpl_semi_sync_replica_"),
)
# values are lists of words or name=value; versions support different words
LISTS = ("optimizer_switch", "sql_mode", "old_mode", "optimizer_trace", "optimizer_trace_features")


@cache
def canonical(name: str) -> str:
    """The newest name of a variable."""
    for old, new in PREFIXES:
        if name.startswith(old):
            return new + name.removeprefix(old)
    return RENAMED.get(name, name)


def meaning(server: Server, name: str) -> str:
    """What a variable means on this server; empty if its meaning never changed or does not matter."""
    value = (server.text(name) or "").lower()
    if name in MATTERS_WHEN and value not in MATTERS_WHEN[name]:
        return ""
    latest = ""
    for flavour, since, text in MEANINGS.get(name, ()):
        if flavour == server.flavour and server.version >= since:
            latest = text
    return latest


def listed(value: str) -> dict[str, str]:
    """Words of a list: `a=on,b` is {a: on, b: set}."""
    words = [word.partition("=") for word in value.split(",") if word]
    return {name: setting or "set" for name, _, setting in words}
