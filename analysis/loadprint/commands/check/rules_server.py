"""Conditions of rules over the server's settings: each returns its evidence, None, or raises Unknown."""

from __future__ import annotations

from loadprint.commands.check.subject import Subject, Unknown
from loadprint.judging.effective import (
    MIB,
    binlog_at_commit,
    data_files,
    mib,
    query_cache,
    redo_at_commit,
    torn_pages,
)
from loadprint.reading import redo_log

POOL_DEFAULT = 128 * MIB
SMALL_HOST = 1 << 30  # of memory, where 128 MiB may be all there is
LARGE_SHARE = 0.85
REDO_DEFAULT = 100 * MIB  # MySQL 8.0.30 and later; two files of 48 MiB before, 96 MiB in MariaDB
IO_CAPACITY_DEFAULT = 200
# a session of sysbench's OLTP scripts prepares up to nine statements for each table, and BEGIN and COMMIT
STATEMENTS_PER_TABLE, STATEMENTS_APART = 9, 2


def _pool(subject: Subject) -> float:
    size = subject.variables().number("innodb_buffer_pool_size")
    if size is None:
        raise Unknown("the server has no innodb_buffer_pool_size")
    return size


def pool_default(subject: Subject) -> str | None:
    """The buffer pool that nobody set, on a host with more memory."""
    size, memory = _pool(subject), subject.memory_bytes
    if size > POOL_DEFAULT or memory <= SMALL_HOST:
        return None
    if subject.data_bytes is not None and subject.data_bytes <= size:
        return None  # small, and large enough
    return f"{mib(size)} on a host of {memory / (1 << 30):.0f} GiB"


def pool_large(subject: Subject) -> str | None:
    """A buffer pool that leaves no memory for anything else."""
    share = _pool(subject) / subject.memory_bytes
    return f"{mib(_pool(subject))}, {100 * share:.0f} % of memory" if share > LARGE_SHARE else None


def data_ratio(subject: Subject) -> str | None:
    """Data that fit into the buffer pool."""
    if subject.data_bytes is None:
        raise Unknown("the size of the data is not known: no campaign planned it")
    ratio = subject.data_bytes / _pool(subject)
    return f"data : buffer pool is {ratio:.2g}" if ratio < 1 else None


def redo_small(subject: Subject) -> str | None:
    """A redo log of the default size."""
    capacity = redo_log.capacity(subject.variables().variables)
    if capacity is None:
        raise Unknown("the server does not tell the size of its redo log")
    return f"{mib(capacity)} of redo log" if capacity <= REDO_DEFAULT else None


def durability(subject: Subject) -> str | None:
    """A commit that does not wait for the disk, or a page that a crash can tear."""
    server = subject.variables()
    relaxed = [text for text in (redo_at_commit(server), binlog_at_commit(server)) if text]
    found = [text for text in relaxed if text not in ("redo synced", "binlog synced", "no binlog")]
    torn = torn_pages(server)
    if torn and not torn.startswith("recovered"):
        found.append(f"torn pages {torn}")
    if data_files(server).endswith("no sync"):
        found.append("data files never synced")
    return "; ".join(found) or None


def cache_of_queries(subject: Subject) -> str | None:
    """A query cache that answers."""
    found = query_cache(subject.variables())
    return found if found != "off" else None


def page_cache(subject: Subject) -> str | None:
    """Data files through the page cache."""
    method = data_files(subject.variables())
    if not method:
        raise Unknown("the server does not tell how it writes data files")
    return method if method.startswith("page cache") else None


def io_capacity(subject: Subject) -> str | None:
    """Flushing limited to what one spinning disk can do, on another kind of disk."""
    limit = subject.variables().number("innodb_io_capacity")
    if limit is None:
        raise Unknown("the server has no innodb_io_capacity")
    if limit > IO_CAPACITY_DEFAULT:
        return None
    if subject.disk().get("rotational") and not subject.guest:
        return None
    return f"innodb_io_capacity is {limit:.0f}"


def query_logs(subject: Subject) -> str | None:
    """A log of every statement."""
    server = subject.variables()
    if server.on("general_log"):
        return "general_log is on"
    if server.on("slow_query_log") and server.number("long_query_time") == 0:
        return "slow_query_log is on with long_query_time 0"
    return None


def performance_schema(subject: Subject) -> str | None:
    """Instruments that are on."""
    return "on" if subject.variables().on("performance_schema") else None


def interleave(subject: Subject) -> str | None:
    """A server on several memory nodes whose buffer pool lies on the first."""
    if subject.server_cpus is None:
        raise Unknown("no CPU set of the server was given")
    used = [node for node in subject.nodes() if node & set(subject.server_cpus)]
    if len(used) < 2:
        return None
    if subject.variables().on("innodb_numa_interleave"):
        return None
    return f"the server's CPUs lie on {len(used)} memory nodes, innodb_numa_interleave is off"


def _threads(subject: Subject) -> int:
    threads = subject.result.get("threads")
    if not isinstance(threads, int):
        raise Unknown("needs a recording: how many connections the load made")
    return threads


def connections(subject: Subject) -> str | None:
    """Fewer connections allowed than the load opens."""
    threads, allowed = _threads(subject), subject.variables().number("max_connections")
    if allowed is None or allowed >= threads:
        return None
    return f"max_connections {allowed:.0f} for {threads} threads"


def prepared(subject: Subject) -> str | None:
    """Fewer prepared statements allowed than the sessions may hold."""
    threads, limit = _threads(subject), subject.variables().number("max_prepared_stmt_count")
    if limit is None:
        raise Unknown("the server has no max_prepared_stmt_count")
    if not str(subject.result.get("protocol") or "").startswith("ps"):
        return None
    tables = (subject.result.get("options") or {}).get("tables")
    if not isinstance(tables, int):
        raise Unknown("the workload does not say how many tables its sessions prepare statements for")
    held = threads * (STATEMENTS_PER_TABLE * tables + STATEMENTS_APART)
    return f"{limit:,.0f} for up to {held:,} of {threads} sessions" if held > limit else None
