"""Builds a run's row in the table `runs`: workload, host, window, the generator's counts.

Derived facts (settled, client-bound) are stored with the raw tables because a fleet is filtered by
them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from loadprint.judging import client, steady
from loadprint.metrics import devices
from loadprint.metrics.gather import LATENCIES, Measured
from loadprint.reading.columns import SUPERVISOR_VETH, VETH
from loadprint.reading.instances import identity, kind
from loadprint.reading.recording import Run
from loadprint.tables.header import kernel

TOTALS = ("events", "queries", "commits", "errors")
_COLUMNS: list[tuple[str, pa.DataType]] = [
    ("run", pa.string()),
    ("run_id", pa.string()),
    ("side", pa.string()),
    ("block", pa.int64()),
    ("workload", pa.string()),
    ("operation", pa.string()),
    ("threads", pa.int64()),
    ("rate_asked", pa.float64()),
    ("profile", pa.string()),
    ("server", pa.string()),
    ("instance", pa.string()),
    ("instance_type", pa.string()),
    ("host", pa.string()),
    ("kernel", pa.string()),
    ("started", pa.timestamp("us", tz="UTC")),
    ("seconds", pa.float64()),
    *((name, pa.float64()) for name in TOTALS),
    *((f"latency_{name}_s", pa.float64()) for name in LATENCIES),
    ("user_hz", pa.float64()),
    ("data_disk", pa.string()),
    ("interface", pa.string()),
    ("first_tick", pa.int64()),
    ("last_tick", pa.int64()),
    ("settled", pa.bool_()),
    ("client_bound", pa.bool_()),
    ("oddities", pa.int64()),
]
COLUMNS = pa.schema(_COLUMNS)
SET_COLUMNS = pa.schema(
    [("run", pa.string()), ("side", pa.string()), ("host_role", pa.string()), ("cpu", pa.string())]
)


def facts(key: str, measured: Measured, interfaces: Iterable[str]) -> dict[str, Any]:
    """Return the row of a run; missing facts are None. `interfaces`: those in table `nic`."""
    run = measured.run
    result, server = run.result or {}, run.server or {}
    window, fingerprint = measured.window, run.fingerprint("server")
    disks, nics = devices.disks([[measured]]), devices.interfaces([[measured]])
    row: dict[str, Any] = {
        "run": key,
        "run_id": run.id,
        "side": _text(run.meta.get("side")),
        "block": _whole(run.meta.get("block")),
        "workload": _text(result.get("workload") or run.meta.get("workload")),
        "operation": measured.operation.partition(" (")[0],
        "threads": _whole(result.get("threads")),
        "rate_asked": _number(result.get("rate")),
        "profile": _text(run.meta.get("profile")),
        "server": _text(server.get("version")),
        "instance": identity(run),
        "instance_type": _type(run),
        "host": _text(fingerprint.get("host")),
        "kernel": kernel(fingerprint),
        "started": _started(run.meta.get("started_realtime_ns")),
        "seconds": _number(result.get("seconds")),
        "user_hz": _number(fingerprint.get("user_hz")) or 100.0,
        "data_disk": disks[0].name if disks else None,
        "interface": _interface(nics, interfaces),
        "first_tick": window.first if window else None,
        "last_tick": window.last if window else None,
        "settled": not steady.unsettled(run.id, [measured], steady.together([measured])),
        "client_bound": bool(client.client_bound(run.id, [measured])),
        "oddities": len(measured.quantities.warnings),
    }
    row |= {name: _number(result.get(name)) for name in TOTALS}
    for name in LATENCIES:
        latency = measured.quantities.get(f"latency.{name}")
        row[f"latency_{name}_s"] = latency.rate if latency else None
    return row


def sets(key: str, measured: Measured) -> list[dict[str, Any]]:
    """Return the CPUs of each side and the recorder that has them; `all` without a CPU set."""
    rows = []
    for side, cpus in (("server", measured.server_cpus), ("load", measured.load_cpus)):
        separate_host = side == "load" and side in measured.run.roles
        if side == "load" and not separate_host and (cpus is None or not measured.shared_host):
            continue
        role = side if separate_host else measured.run.roles[0]
        names = ["all"] if cpus is None else [str(cpu) for cpu in cpus]
        rows += [{"run": key, "side": side, "host_role": role, "cpu": cpu} for cpu in names]
    return rows


def _type(run: Run) -> str:
    """Return the cloud's instance type, else the product, else a description of the hardware."""
    machine = run.fingerprint("server").get("virtualisation") or {}
    return str(machine.get("instance_type") or machine.get("product") or kind(run))


def _interface(nics: Sequence[devices.Device], interfaces: Iterable[str]) -> str | None:
    """Return the busiest interface except lo, by its name in the table."""
    busiest = next((nic.name for nic in nics if nic.name != "lo"), None)
    if busiest == VETH:
        return next((name for name in interfaces if SUPERVISOR_VETH.fullmatch(name)), None)
    return busiest


def _started(nanoseconds: Any) -> int | None:
    return nanoseconds // 1000 if isinstance(nanoseconds, int) else None


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None
