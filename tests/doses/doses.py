"""The doses: how each is given, which rows it belongs to, and how much of it the instruments counted."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .bench import GROUPS, HERE, Bench, Ledgers

OPERATIONS_PER_S = 300
PERIOD_US, QUOTA_US = 20_000, 1_500
BUSY_MS, BUSY_PERIOD_MS = 18, 20
HOLDER = """
CREATE EVENT sbtest.hold ON SCHEDULE AT CURRENT_TIMESTAMP DO BEGIN
    DECLARE since DATETIME(6);
    WHILE (SELECT goes FROM sbtest.holder) DO
        START TRANSACTION;
        SELECT COUNT(*) INTO @rows FROM sbtest.sbtest1 FOR UPDATE;
        SET since = SYSDATE(6);
        DO SLEEP(0.02);
        UPDATE sbtest.holder SET held = held + TIMESTAMPDIFF(MICROSECOND, since, SYSDATE(6));
        COMMIT;
        DO SLEEP(0.002);
    END WHILE;
END
"""
FIGHTER = """
CREATE EVENT sbtest.{} ON SCHEDULE AT CURRENT_TIMESTAMP DO BEGIN
    WHILE (SELECT goes FROM sbtest.holder) DO
        START TRANSACTION;
        SELECT COUNT(*) INTO @rows FROM sbtest.fought FOR UPDATE;
        DO SLEEP(0.02);
        COMMIT;
    END WHILE;
END
"""
Give = Callable[[Bench], contextlib.AbstractContextManager[None]]


@contextlib.contextmanager
def nothing(_: Bench) -> Iterator[None]:
    """No dose."""
    yield


@dataclass(frozen=True)
class Dose:
    """`rows` of the time ledger and `groups` of the CPU ledger that it belongs to, and its instrument."""

    give: Give
    rows: tuple[str, ...]
    meter: str
    groups: tuple[str, ...] = ()
    base: Give = nothing  # what it is compared with

    def expected(self, base: Ledgers, dosed: Ledgers) -> float:
        """The dose by its instrument, µs per statement."""
        if self.meter == "operations":
            # the device's operations are all of the time of a statement
            return dosed.meters["operations"] / OPERATIONS_PER_S - base.time["latency"]
        return dosed.meters[self.meter] - base.meters.get(self.meter, 0.0)


def relayed(on: str, off: str) -> Give:
    """What the relay does between two commands."""

    @contextlib.contextmanager
    def give(bench: Bench) -> Iterator[None]:
        bench.command(on)
        try:
            yield
        finally:
            bench.command(off)

    return give


def text(added: str) -> Give:
    """A text at the end of every statement."""
    return relayed(f"add {added}", "add ")


@contextlib.contextmanager
def row_lock(bench: Bench) -> Iterator[None]:
    """A session that locks all rows most of the time. It is an event: it has no connection."""
    bench.sql("UPDATE sbtest.holder SET goes = 1")
    bench.sql(HOLDER)
    try:
        yield
    finally:
        bench.sql("UPDATE sbtest.holder SET goes = 0")


@contextlib.contextmanager
def sleep_among_row_locks(bench: Bench) -> Iterator[None]:
    """Each statement sleeps, while events fight for a row that the load does not use."""
    bench.sql("UPDATE sbtest.holder SET goes = 1")
    bench.sql("CREATE TABLE sbtest.fought (id INT PRIMARY KEY)")
    bench.sql("INSERT INTO sbtest.fought VALUES (1)")
    for name in ("one", "two"):
        bench.sql(FIGHTER.format(name))
    try:
        with text(" AND SLEEP(0.002) = 0")(bench):
            yield
    finally:
        bench.sql("UPDATE sbtest.holder SET goes = 0")
        time.sleep(0.5)
        bench.sql("DROP TABLE sbtest.fought")


@contextlib.contextmanager
def quota(bench: Bench) -> Iterator[None]:
    """Less CPU time for the server than it needs."""
    group = bench.groups["cpu"]
    (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
    (group / "cpu.cfs_quota_us").write_text(str(QUOTA_US))
    try:
        yield
    finally:
        (group / "cpu.cfs_quota_us").write_text("-1")


@contextlib.contextmanager
def neighbour(bench: Bench) -> Iterator[None]:
    """Another program on the server's CPU."""
    words = [HERE / "neighbour.py", bench.server_cpu, BUSY_MS, BUSY_PERIOD_MS, GROUPS / "cpu"]
    with subprocess.Popen([sys.executable, *map(str, words)], text=True) as process:
        bench.neighbour = process
        try:
            yield
        finally:
            bench.neighbour = None
            process.kill()


@contextlib.contextmanager
def flush(bench: Bench) -> Iterator[None]:
    """The redo log is flushed at each commit."""
    bench.sql("SET GLOBAL innodb_flush_log_at_trx_commit = 1")
    try:
        yield
    finally:
        bench.sql("SET GLOBAL innodb_flush_log_at_trx_commit = 0")


@contextlib.contextmanager
def slow_device(bench: Bench) -> Iterator[None]:
    """Few operations per second on the block device."""
    device = os.stat(bench.defaults).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    limit = bench.groups["blkio"] / "blkio.throttle.write_iops_device"
    limit.write_text(f"{number} {OPERATIONS_PER_S}")
    try:
        yield
    finally:
        limit.write_text(f"{number} 0")


@contextlib.contextmanager
def flush_slowly(bench: Bench) -> Iterator[None]:
    """The redo log is flushed at each commit, to a slow device."""
    with flush(bench), slow_device(bench):
        yield


@contextlib.contextmanager
def sync_slowly(bench: Bench) -> Iterator[None]:
    """The binary log is flushed at each commit, to a slow device."""
    assert bench.sql("SELECT @@log_bin") == "1", "this server has no binary log"
    bench.sql("SET GLOBAL sync_binlog = 1")
    try:
        with slow_device(bench):
            yield
    finally:
        bench.sql("SET GLOBAL sync_binlog = 0")


DOSES = {
    # 2 ms, both ways together
    "network": Dose(relayed("delay 2", "delay 0"), ("between",), "relay"),
    "row lock": Dose(row_lock, ("lock",), "held"),
    "SLEEP() among row locks": Dose(sleep_among_row_locks, ("lock",), "statements"),
    "CPU quota": Dose(quota, ("throttled",), "throttled"),
    "neighbour": Dose(neighbour, ("run_queue",), "neighbour"),
    "flush at commit": Dose(flush_slowly, ("redo",), "log file"),
    "binary log": Dose(sync_slowly, ("binlog",), "binary log"),
    "slow device": Dose(flush_slowly, ("redo",), "operations", base=flush),
    "BENCHMARK()": Dose(text(" AND BENCHMARK(800000, SQRT(2)) = 0"), ("user",), "statements", ("executor",)),
    "long WHERE": Dose(
        text(f" AND k NOT IN ({','.join(map(str, range(1_000_000, 1_010_000)))})"),
        ("user",),
        "statements",
        ("parser", "optimizer", "allocation", "executor"),
    ),
}
