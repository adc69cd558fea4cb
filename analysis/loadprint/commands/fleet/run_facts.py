"""Builds a run's row in the table `runs`: workload, host, window, the generator's counts.

Derived facts (settled, client-bound) are stored with the raw tables because a fleet is filtered by
them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
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
TYPES: dict[pa.DataType, str] = {
    pa.string(): "run run_id side workload operation profile server instance instance_type host kernel"
    " data_disk interface",
    pa.int64(): "block threads first_tick last_tick oddities",
    pa.bool_(): "settled client_bound",
    pa.timestamp("us", tz="UTC"): "started",
}
SET_COLUMNS = pa.schema(
    [("run", pa.string()), ("side", pa.string()), ("host_role", pa.string()), ("cpu", pa.string())]
)


def table(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return the table of one or more rows of `facts`."""
    types = {name: kind for kind, names in TYPES.items() for name in names.split()}
    schema = pa.schema([(name, types.get(name, pa.float64())) for name in rows[0]])
    return pa.Table.from_pylist(rows, schema=schema)


def facts(key: str, measured: Measured, interfaces: Iterable[str]) -> dict[str, Any]:
    """Return the row of a run; missing facts are None. `interfaces`: those in table `nic`."""
    run = measured.run
    result, server = run.result or {}, run.server or {}
    window, fingerprint = measured.window, run.fingerprint("server")
    disks, nics = devices.disks([[measured]]), devices.interfaces([[measured]])
    latencies = {name: measured.quantities.get(f"latency.{name}") for name in LATENCIES}
    started = run.meta.get("started_realtime_ns")
    return {
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
        "started": started // 1000 if isinstance(started, int) else None,
        "seconds": _number(result.get("seconds")),
        **{name: _number(result.get(name)) for name in TOTALS},
        **{f"latency_{name}_s": latency.rate if latency else None for name, latency in latencies.items()},
        "user_hz": _number(fingerprint.get("user_hz")) or 100.0,
        "data_disk": disks[0].name if disks else None,
        "interface": _interface(nics, interfaces),
        "first_tick": window.first if window else None,
        "last_tick": window.last if window else None,
        "settled": not steady.unsettled(run.id, [measured], steady.together([measured])),
        "client_bound": bool(client.client_bound(run.id, [measured])),
        "oddities": measured.quantities.falls,
    }


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


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None
