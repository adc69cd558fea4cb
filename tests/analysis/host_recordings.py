"""Writes runs of two hosts: the load's host has another monotonic clock, and a clock that is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from recordings import (
    FIRST,
    REALTIME,
    SECOND,
    Host,
    change_column,
    change_json,
    change_rows,
    make_run,
    read_lines,
    write_json,
    write_lines,
    write_manifest,
    write_table,
)

BOOT = "99999999-8888-7777-6666-555555555551"
MILLI = 1_000_000
AHEAD = 300 * SECOND
MEASURE = FIRST + SECOND // 2  # start of `measure` on the server's monotonic clock


def split(path: Path, host: Host | None = None, **meta: Any) -> Path:
    """Write a run whose load's host recorded a copy of the load's half of `make_run`.

    Its CLOCK_MONOTONIC is AHEAD of the server's, its CLOCK_REALTIME is right.
    """
    roles = {"server": {"host": "db1"}, "load": {"host": "load1"}}
    run = make_run(path, host, roles=roles, placement={"verified": True}, **meta)
    change_json(run / "server/fingerprint.json", cpusets={})
    fingerprint = json.loads((run / "server/fingerprint.json").read_text())
    role = run / "load"
    write_json(role / "fingerprint.json", fingerprint | {"host": "load1", "boot_id": BOOT})
    tables = ("cpu", "process", "threads", "ticks")
    for name in tables:
        table = pq.read_table(run / "server" / f"{name}.parquet")
        described = json.loads(table.schema.metadata[b"loadprint"])
        rows = table.to_pylist()
        if name in ("process", "threads"):
            rows = [row for row in rows if row["role"] != "server"]
        if name == "ticks":
            rows = [row for row in rows if row["probe"] in tables]
        write_table(role / f"{name}.parquet", rows, described | {"role": "load", "boot_id": BOOT})
    change_rows(role / "ticks.parquet", lambda row: _later(row, AHEAD))
    _stamps(role, BOOT, AHEAD)
    write_manifest(run)
    return run


def _later(row: dict[str, Any], by: int) -> dict[str, Any]:
    return {**row, **{name: row[name] + by for name in ("intended_ns", "start_ns", "end_ns")}}


def _stamps(role: Path, boot: str, by: int) -> None:
    lines = read_lines(role / "phases.jsonl")
    for line in lines:
        line["monotonic_ns"] += by
        line["boot_id"] = boot
    write_lines(role / "phases.jsonl", lines)


def skew(run: Path, seconds: float) -> None:
    """Set the clock of the load's host wrong by some seconds: every realtime stamp that it wrote."""
    by, role = round(seconds * SECOND), run / "load"
    lines = read_lines(role / "phases.jsonl")
    write_lines(role / "phases.jsonl", [line | {"realtime_ns": line["realtime_ns"] + by} for line in lines])
    change_column(role / "ticks.parquet", "realtime_ns", lambda row: row["realtime_ns"] + by)


def measure_clock(
    run: Path,
    *,
    ahead: float = 0.0,
    drift: float = 0.0,
    server_step: float = 0.0,
    load_step: float = 0.0,
) -> None:
    """Write clock.jsonl of the load's host: half a second before `measure`, and 21 seconds later.

    `ahead`: its CLOCK_REALTIME - the server's, in seconds. `drift`: how much faster its clocks run. The steps
    are of either CLOCK_REALTIME between the two readings, in seconds.
    """
    lines = []
    for at, seconds in (("before", -0.25), ("after", 21.25)):
        server = MEASURE + round(seconds * SECOND)
        load = MEASURE + AHEAD + round(seconds * (1 + drift) * SECOND)
        realtime = REALTIME + server - FIRST
        late = at == "after"
        lines.append(
            {
                "at": at,
                "boot_id": BOOT,
                "monotonic_ns": load,
                "realtime_ns": load
                - AHEAD
                + REALTIME
                - FIRST
                + round((ahead + (load_step if late else 0)) * SECOND),
                "server_realtime_ns": realtime + (round(server_step * SECOND) if late else 0),
                "bound_ns": MILLI // 5,
            }
        )
    write_lines(run / "load" / "clock.jsonl", lines)
    write_manifest(run)
