"""Builds the lines of a run in a fleet's data set: its facts, and one row with its value in each line.

The judgements `settled` and `client_bound` are stored with the values because a fleet is filtered by them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from loadprint.judging import client, steady
from loadprint.metrics.gather import Measured
from loadprint.reading.instances import identity, kind
from loadprint.reading.recording import Run
from loadprint.tables import run_metrics
from loadprint.tables.rows import evaluate

TYPES: dict[pa.DataType, str] = {
    pa.int64(): "block threads oddities",
    pa.float64(): "rate_asked value",
    pa.bool_(): "settled client_bound",
    pa.timestamp("us", tz="UTC"): "time",
}


def table(lines: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return one or more lines of `run_rows` as a table; texts are dictionaries."""
    types = {name: kind for kind, names in TYPES.items() for name in names.split()}
    schema = pa.schema([(name, types.get(name, pa.string())) for name in lines[0]])
    return pa.Table.from_pylist(lines, schema=schema)


def run_rows(key: str, measured: Measured) -> Iterator[dict[str, Any]]:
    """Yield a line for each row that the run measured; missing facts are None."""
    facts = _facts(key, measured)
    for _, metric in run_metrics.of_run(measured):
        value, _ = evaluate(metric, measured)
        if value is not None:
            yield {**facts, "row": metric.key, "unit": metric.unit, "value": value}


def _facts(key: str, measured: Measured) -> dict[str, Any]:
    run = measured.run
    result, meta, fingerprint = run.result, run.meta, run.fingerprint("server")
    started = meta.started_realtime_ns
    return {
        "run": key,
        "run_id": run.id,
        "side": meta.side or None,
        "block": meta.block,
        "workload": run.workload or None,
        "operation": measured.operation.partition(" (")[0],
        "threads": None if result.threads is None else int(result.threads),
        "rate_asked": result.rate,
        "profile": meta.profile or None,
        "server": run.server.version or None,
        "instance": identity(run),
        "instance_type": _type(run),
        "host": fingerprint.host or None,
        "kernel": fingerprint.kernel.release or None,
        "time": None if started is None else started // 1000,
        "settled": not steady.unsettled(run.id, [measured], steady.together([measured])),
        "client_bound": bool(client.client_bound(run.id, [measured])),
        "oddities": measured.quantities.falls,
    }


def _type(run: Run) -> str:
    """Return the cloud's instance type, else the product, else a description of the hardware."""
    machine = run.fingerprint("server").virtualisation
    return machine.instance_type or machine.product or kind(run)
