"""Checks the server's settings: functions return evidence or None, or raise Unknown."""

from __future__ import annotations

from loadprint.commands.check.subject import Subject, required
from loadprint.judging import effective
from loadprint.judging.effective import mib
from loadprint.numbers import brief
from loadprint.reading import redo_log
from loadprint.reading.bounds import MIB

POOL_DEFAULT = 128 * MIB
SMALL_HOST = 1 << 30  # bytes of memory, for which a pool of 128 MiB may be right
LARGE_SHARE = 0.85
POOL_STEP = 128 * MIB  # innodb_buffer_pool_chunk_size: pool sizes are multiples of it
REDO_ADVISED = 4 << 30
REDO_DEFAULT = 100 * MIB  # MySQL 8.0.30 and later; two files of 48 MiB before, 96 MiB in MariaDB
IO_CAPACITY_DEFAULT = 200
# a session of sysbench's OLTP scripts prepares up to nine statements per table, and BEGIN and COMMIT
STATEMENTS_PER_TABLE, STATEMENTS_PER_SESSION = 9, 2


def _number(subject: Subject, variable: str) -> float:
    return required(subject.variables().number(variable), f"the server has no {variable}")


def _pool(subject: Subject) -> float:
    return _number(subject, "innodb_buffer_pool_size")


def buffer_pool_default(subject: Subject) -> str | None:
    """A buffer pool of the default size on a host with more memory."""
    size, memory = _pool(subject), subject.memory_bytes
    if size > POOL_DEFAULT or memory <= SMALL_HOST:
        return None
    if subject.data_bytes is not None and subject.data_bytes <= size:
        return None
    return f"{mib(size)} on a host of {memory / (1 << 30):.0f} GiB"


def buffer_pool_large(subject: Subject) -> str | None:
    """A buffer pool that takes nearly all memory."""
    share = _pool(subject) / subject.memory_bytes
    return f"{mib(_pool(subject))}, {100 * share:.0f} % of memory" if share > LARGE_SHARE else None


def data_ratio(subject: Subject) -> str | None:
    """Data that fit into the buffer pool."""
    missing = "the size of the data is not known: the run is not part of a campaign"
    ratio = required(subject.data_bytes, missing) / _pool(subject)
    return f"data : buffer pool is {brief(ratio, 2)}" if ratio < 1 else None


def redo_small(subject: Subject) -> str | None:
    """A redo log of the default size."""
    missing = "the size of the redo log was not recorded"
    capacity = required(redo_log.capacity(subject.variables().variables), missing)
    return f"{mib(capacity)} of redo log" if capacity <= REDO_DEFAULT else None


def redo_fix(subject: Subject) -> str:
    """The variable that sets the size of the redo log in this version; some need a restart."""
    server = subject.variables()
    if server.text("innodb_redo_log_capacity") is not None:
        return f"SET GLOBAL innodb_redo_log_capacity = {REDO_ADVISED}"
    if server.mariadb and server.version >= (10, 9):
        return f"SET GLOBAL innodb_log_file_size = {REDO_ADVISED}"
    size = int(REDO_ADVISED / (server.number("innodb_log_files_in_group") or 1))
    return f"innodb_log_file_size={size} in the configuration, and a restart"


def durability(subject: Subject) -> str | None:
    """A commit that does not wait for the disk, or a page that a crash can tear."""
    server = subject.variables()
    at_commit = [
        text for text in (effective.redo_at_commit(server), effective.binlog_at_commit(server)) if text
    ]
    evidence = [text for text in at_commit if text not in ("redo synced", "binlog synced", "no binlog")]
    torn = effective.torn_pages(server)
    if torn and not torn.startswith("recovered"):
        evidence.append(f"torn pages {torn}")
    if effective.data_files(server).endswith("no sync"):
        evidence.append("data files never synced")
    return "; ".join(evidence) or None


def query_cache(subject: Subject) -> str | None:
    """A query cache that is in use."""
    state = effective.query_cache(subject.variables())
    return state if state != "off" else None


def page_cache(subject: Subject) -> str | None:
    """Data files that are read and written through the page cache."""
    method = effective.data_files(subject.variables())
    method = required(method or None, "the flush method of data files was not recorded")
    return method if method.startswith("page cache") else None


def io_capacity(subject: Subject) -> str | None:
    """Flushing limited to the rate of one rotating disk, on another kind of disk."""
    limit = _number(subject, "innodb_io_capacity")
    if limit > IO_CAPACITY_DEFAULT or (subject.disk().rotational and not subject.guest):
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
    """The performance schema."""
    return "performance_schema is on" if subject.variables().on("performance_schema") else None


def numa_interleave(subject: Subject) -> str | None:
    """A server on several memory nodes with its buffer pool on the first."""
    cpus = set(required(subject.server_cpus, "no CPU set of the server was given"))
    used = [node for node in subject.nodes() if node & cpus]
    if len(used) < 2 or (state := subject.variables().on("innodb_numa_interleave")):
        return None
    setting = "innodb_numa_interleave is off" if state is False else "its memory is not interleaved"
    return f"the server's CPUs are on {len(used)} memory nodes, {setting}"


def interleave_fix(subject: Subject) -> str:
    """The server's own switch only where its build has it."""
    switch = "innodb_numa_interleave=ON, " if subject.variables().text("innodb_numa_interleave") else ""
    return f"{switch}numactl --interleave=all, or a CPU set of one node"


def _threads(subject: Subject) -> int:
    return int(required(subject.result.threads, "needs a recording, for the number of connections"))


def max_connections(subject: Subject) -> str | None:
    """Fewer connections allowed than the load opens."""
    threads, allowed = _threads(subject), subject.variables().number("max_connections")
    if allowed is None or allowed >= threads:
        return None
    return f"max_connections {allowed:.0f} for {threads} threads"


def prepared_statements(subject: Subject) -> str | None:
    """Fewer prepared statements allowed than the sessions may prepare."""
    threads, limit = _threads(subject), _number(subject, "max_prepared_stmt_count")
    if not (subject.result.protocol or "").startswith("ps"):
        return None
    tables = subject.result.options.get("tables")
    missing = "the workload does not report the number of tables with prepared statements"
    tables = required(tables if isinstance(tables, int) else None, missing)
    needed = threads * (STATEMENTS_PER_TABLE * tables + STATEMENTS_PER_SESSION)
    if needed <= limit:
        return None
    return f"max_prepared_stmt_count {limit:,.0f} for up to {needed:,} statements of {threads} sessions"


def half_of_memory(subject: Subject) -> str:
    """A size for the buffer pool."""
    half = int(subject.memory_bytes / 2) // POOL_STEP * POOL_STEP
    return f"{half} ({mib(half)})"
