"""Derives effective settings of a server from its variables: durability at commit, torn pages, memory.

MySQL and MariaDB have different names for one setting, and one name for different settings; for the latter
see facts.toml. Sources: the reference manuals of MySQL 5.7 to 9.x (InnoDB startup options, doublewrite
buffer, redo log) and MariaDB's documentation of innodb_flush_method and innodb_doublewrite.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from loadprint.judging.findings import Fact
from loadprint.reading import redo_log
from loadprint.reading.documents import Scalar
from loadprint.reading.run_documents import ServerRecord

YES, NO = {"on", "1", "yes", "true"}, {"off", "0", "no", "false"}


@dataclass(frozen=True)
class Server:
    """A server's flavour, version and variables."""

    flavour: str
    version: tuple[int, ...]
    variables: Mapping[str, Scalar]
    status: Mapping[str, Scalar]

    @classmethod
    def of(cls, record: ServerRecord) -> Server:
        """Read the content of server.json; a version that is not a number becomes (0,)."""
        text = f"{record.version} {record.version_comment}"
        numbers = re.match(r"(?:5\.5\.5-)?(\d+(?:\.\d+)*)", record.version)
        version = tuple(int(part) for part in numbers[1].split(".")) if numbers else (0,)
        flavour = "MariaDB" if "mariadb" in text.lower() else "MySQL"
        return cls(flavour, version, record.variables, record.status_begin)

    @property
    def mariadb(self) -> bool:
        """Whether it is MariaDB."""
        return self.flavour == "MariaDB"

    def release(self) -> str:
        """Flavour and version number."""
        return f"{self.flavour} {'.'.join(map(str, self.version))}"

    def text(self, name: str) -> str | None:
        """Value of a variable, None if the server does not have it."""
        value = self.variables.get(name)
        return None if value is None else str(value)

    def number(self, name: str) -> float | None:
        """Value of a variable as a number."""
        return redo_log.number(self.variables.get(name))

    def on(self, name: str) -> bool | None:
        """Whether a switch is on; None if the server does not have it."""
        word = (self.text(name) or "").lower()
        return True if word in YES else False if word in NO else None


def effective(server: Server) -> list[Fact]:
    """All effective settings whose variables are recorded; `inputs` are those that each depends on."""
    return [*_durability(server), *_memory(server)]


def _durability(server: Server) -> Iterator[Fact]:
    waits = [text for text in (redo_at_commit(server), binlog_at_commit(server)) if text]
    if waits:
        inputs = (
            "innodb_flush_log_at_trx_commit",
            "innodb_flush_log_at_timeout",
            "sync_binlog",
            "log_bin",
            "skip_log_bin",
            "innodb_log_file_write_through",
        )
        yield Fact("durability", "commit", ", ".join(waits), inputs=inputs, decides=True)
    if torn := torn_pages(server):
        yield Fact("durability", "torn pages", torn, inputs=("innodb_doublewrite",), decides=True)
    if method := data_files(server):
        files = (
            "innodb_flush_method",
            "innodb_data_file_buffering",
            "innodb_data_file_write_through",
            "innodb_log_file_buffering",
            "innodb_use_fdatasync",
        )
        yield Fact("durability", "data files", method, inputs=files)


def redo_at_commit(server: Server) -> str:
    """What a commit does with the redo log: sync, write, or neither; empty if unknown."""
    mode = server.text("innodb_flush_log_at_trx_commit")
    if mode is None:
        return ""
    if str(server.status.get("Innodb_redo_log_enabled", "")).lower() in NO:
        return "no redo log"
    every = server.text("innodb_flush_log_at_timeout") or "1"
    if mode == "0":
        return f"redo written and synced every {every} s"
    if mode == "2":
        return f"redo written, synced every {every} s"
    method = (server.text("innodb_flush_method") or "").lower()
    if method == "nosync" and not (server.mariadb and server.version >= (11,)):
        return "redo written, never synced"
    return "redo synced"


def binlog_at_commit(server: Server) -> str:
    """What a commit does with the binary log; empty if unknown."""
    logged = server.on("log_bin")
    if logged is None:
        return ""
    if not logged:
        return "no binlog"
    every = server.text("sync_binlog")
    if every is None:
        return "binlog written"
    if every == "0":
        return "binlog left to the kernel"
    return "binlog synced" if every == "1" else f"binlog synced every {every} commits"


def torn_pages(server: Server) -> str:
    """How a torn page is recovered: the doublewrite buffer, by its own values."""
    mode = (server.text("innodb_doublewrite") or "").lower()
    if not mode:
        return ""
    if mode in NO:
        return "not recovered"
    # MySQL 8.0.30: DETECT_AND_RECOVER is ON, DETECT_ONLY keeps no page
    return "detected only" if mode == "detect_only" else "recovered from the doublewrite buffer"


def data_files(server: Server) -> str:
    """How data files are written: direct or through the page cache, and whether they are synced."""
    if server.mariadb and server.version >= (11,) and server.on("innodb_data_file_buffering") is not None:
        way = "page cache" if server.on("innodb_data_file_buffering") else "direct I/O"
        if server.on("innodb_data_file_write_through"):
            return f"{way}, written through"
        unsynced = (server.text("innodb_doublewrite") or "").lower() == "fast"
        return f"{way}, no sync" if unsynced else f"{way} and sync"
    method = server.text("innodb_flush_method")
    if method is None:
        return ""
    return {
        "o_direct": "direct I/O and sync",
        "all_o_direct": "direct I/O and sync",
        "o_direct_no_fsync": "direct I/O, no sync",
        "nosync": "page cache, no sync",
        "littlesync": "page cache, hardly a sync",
    }.get(method.lower(), "page cache and sync")


def _memory(server: Server) -> Iterator[Fact]:
    for variable, name in (
        ("innodb_buffer_pool_size", "buffer pool"),
        ("innodb_log_buffer_size", "log buffer"),
    ):
        if size := server.number(variable):
            yield Fact("memory", name, mib(size), inputs=(variable,))
    if capacity := redo_log.capacity(server.variables):
        sizes = ("innodb_redo_log_capacity", "innodb_log_file_size", "innodb_log_files_in_group")
        yield Fact("memory", "redo capacity", mib(capacity), inputs=sizes)
    if server.variables:
        inputs = ("query_cache_type", "query_cache_size")
        yield Fact("memory", "query cache", query_cache(server), inputs=inputs, decides=True)
    large = server.on("large_pages")
    if large is not None:
        yield Fact("memory", "large pages", "on" if large else "off", inputs=("large_pages",))


def query_cache(server: Server) -> str:
    """The size of the query cache, or `off`: without a type or a size it answers no SELECT."""
    size = server.number("query_cache_size") or 0
    asked = (server.text("query_cache_type") or "off").lower() in (*YES, "2", "demand")
    return f"on ({mib(size)})" if size and asked else "off"


def mib(size: float) -> str:
    """Bytes in the largest unit that needs at most one decimal, because sizes are compared as text."""
    for unit, step in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= step and size / step == round(size / step, 1):
            return f"{size / step:.1f}".removesuffix(".0") + f" {unit}"
    return f"{size:.0f} B"
