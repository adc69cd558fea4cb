"""Makes the table of every probe."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any
from zlib import crc32

from declarations import Declared, declared
from loadprint.catalogue.files import catalogue
from recordings import DISK, NIC, Host, Rows, change_json, make_run

BOUNDS = [0, 1000, 10_000, 100_000, 1_000_000, None]
# entities that readers look for; others are those that rows name, or a word
WORDS = {
    "role": ("server", "load"),
    "threads": ("connection", "other"),
    "state": ("run queue", "block I/O", "lock", "network", "sleep", "other", "off CPU: futex"),
    "cpus": ("all", "server"),
    "cpu": ("all", "0"),
    "event": (
        *("cycles", "instructions", "cache_references"),
        *("cache_misses", "dtlb_load_misses", "branch_misses"),
    ),
    "side": ("accepted", "opened"),
    "port": ("3306",),
    "device": ("vda",),
    "operation": ("read", "write", "write_fua", "flush", "discard"),
    "stage": ("queue", "device"),
    "syscall": ("fsync", "fdatasync", "pread64", "pwrite64", "read"),
    "command": ("COM_QUERY", "COM_STMT_EXECUTE"),
    "statements": ("all",),
    "metric": tuple(
        f"eth0.{limit}_allowance_exceeded" for limit in ("bw_in", "bw_out", "pps", "conntrack", "linklocal")
    ),
    "control": ("intel-rapl",),
    "zone": ("package-0", "package-0/dram"),
    "kind": ("hard", "NET_RX", "BLOCK"),
    "stack": ("0",),
}


# names that are not declared with a unit
SERVER = (
    *("Innodb_rows_inserted", "Innodb_rows_updated", "Innodb_rows_deleted"),
    *("Handler_write", "Handler_update", "Handler_delete", "Rows_read"),
)


def every_table(ticks: range) -> dict[str, tuple[Rows, dict[str, Any]]]:
    """Tables for `Host.more`, without those of `make_run` and `profile`, which needs stacks.json."""
    own = ("cpu", "interrupts", "softirqs", "disk", "nic", "pressure", "process", "threads", "tcp", "profile")
    return {probe.name: _table(probe, ticks) for probe in declared() if probe.name not in own}


def _table(probe: Declared, ticks: range) -> tuple[Rows, dict[str, Any]]:
    rows: Rows = []
    listed = WORDS
    if probe.shape == "metrics" and probe.units:
        listed = {**WORDS, "metric": (*probe.units, *(SERVER if probe.name == "mysql" else ()))}
    named = [name.split(".")[:-1] for name in catalogue().columns.get(probe.name, ())]
    by_place = (tuple(sorted({parts[place] for parts in named if len(parts) > place})) for place in range(9))
    places = zip(probe.entities, by_place, strict=False)
    for words in itertools.product(*(listed.get(name) or found or ("x",) for name, found in places)):
        entity = dict(zip(probe.entities, words, strict=True))
        for tick in ticks:
            values = {name: _value(name, kind, tick, words) for name, kind in _kinds(probe).items()}
            rows.append({"tick": tick, **entity, **values})
    columns: dict[str, Any] = {name: {"unit": unit} for name, unit in probe.units.items()}
    if "buckets" in columns:
        columns["buckets"]["bounds"] = BOUNDS
    key = "metrics" if probe.shape == "metrics" else "columns"
    return rows, {"shape": probe.shape, "entity": list(probe.entities), key: columns}


def _kinds(probe: Declared) -> dict[str, str]:
    if probe.shape == "metrics":
        return {"value": "counter", "text": "info"}
    return probe.columns


def _value(name: str, kind: str, tick: int, words: tuple[str, ...]) -> Any:
    """Every counter has another rate, so that one cannot be taken for another."""
    if kind == "info":
        return "text"
    rate = 500 + crc32(f"{words} {name}".encode()) % 1000
    if name == "enabled_ns":  # a counter runs while it is enabled
        rate += 1000
    if name == "buckets":
        return [tick * rate * factor for factor in (1, 20, 300, 40, 5)]
    return rate * tick + 7


RESULT = {
    "rows": 4000,
    "retries": 12,
    "errors": 7,
    "errors_by_code": {"1213": 5},
    "rate": 120.0,
    "achieved_rate": 110.0,
    "backlog_max": 9,
    "backlog_end": 3,
    "details": {"nopm": 5000, "tpm": 9000},
    "transactions": {
        kind: {"count": count, "latency_ms": {"mean": 3.5, "p50": 3, "p95": 5, "p99": 8, "max": 20}}
        for kind, count in (("neword", 11_000), ("payment", 9000))
    },
}
STATUS = (
    *("Questions", "Queries", "Com_commit", "Com_stmt_prepare", "Com_stmt_execute", "Com_stmt_close"),
    *("Com_prepare_sql", "Bytes_received", "Bytes_sent"),
)


def complete_host(**changes: Any) -> Host:
    """A host with every table, whose generator and server report every figure."""
    host = Host(
        seconds=40,
        nics={"veth0": {name: 900 + place for place, name in enumerate(NIC)}},
        disks={"vda": {name: 300 + place for place, name in enumerate(DISK)}},
        result=RESULT,
        grown={name: 80_000 + place for place, name in enumerate(STATUS)},
        more=every_table,
    )
    return replace(host, **changes)


def complete_run(path: Path) -> Path:
    """A run of it, on two CPUs of one core."""
    run = make_run(path, complete_host())
    cores = [{"cpu": cpu, "package": 0, "core": 0, "siblings": "0-1"} for cpu in (0, 1)]
    return change_json(run / "server/fingerprint.json", cpus={"model": "Test CPU", "list": cores})
