"""Writes run directories (docs/recording-format.md) with counter values that a test chooses.

A host does the same in every second, so every rate is known. Written with pyarrow alone.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import google_crc32c
import pyarrow as pa
import pyarrow.parquet as pq
from declarations import declared

SECOND = 1_000_000_000
BOOT = "11111111-2222-3333-4444-555555555555"
REALTIME = 1_700_000_000 * SECOND
FIRST = 1_000 * SECOND  # monotonic stamp of tick 0
MEASURE = FIRST + SECOND // 2  # of the start of `measure`

Rows = list[dict[str, Any]]
Tables = dict[str, tuple[Rows, dict[str, Any]]]  # rows and metadata by probe
COLUMNS = {probe.name: tuple(probe.columns) for probe in declared()}
CPU, OF_HOST = COLUMNS["cpu"][:10], COLUMNS["cpu"][10:]
DISK, NIC, THREAD = COLUMNS["disk"], COLUMNS["nic"], COLUMNS["threads"][1:]
BOUNDS = (0, 1000, 2000, 4000, None)  # of the buckets of a histogram, in nanoseconds


@dataclass
class Host:
    """Rates per second of one run; change what a test is about."""

    seconds: int = 20
    cpus: Mapping[str, Mapping[str, int]] = field(
        default_factory=lambda: {
            # jiffies a second (they add up to 100): exactly 10 % usr, 4 % sys, 20 % iowait on CPU 0
            "0": {"user": 10, "system": 4, "softirq": 1, "iowait": 20, "idle": 65},
            "1": {"user": 30, "system": 10, "idle": 60},
        }
    )
    disks: Mapping[str, Mapping[str, int]] = field(
        default_factory=lambda: {
            "vda": {
                "reads": 10,
                "read_sectors": 320,
                "read_ms": 20,
                "writes": 40,
                "write_sectors": 1600,
                "write_ms": 120,
                "io_ms": 100,
                "weighted_ms": 140,
                "flushes": 8,
                "flush_ms": 16,
            }
        }
    )
    nics: Mapping[str, Mapping[str, int]] = field(
        default_factory=lambda: {
            "veth0": {"rx_bytes": 102_400, "rx_packets": 500, "tx_bytes": 1_024_000, "tx_packets": 900},
            "lo": {},
        }
    )
    server_ticks: Mapping[str, int] = field(default_factory=lambda: {"utime": 9, "stime": 3})
    load_ticks: Mapping[str, int] = field(default_factory=lambda: {"utime": 25, "stime": 8})
    switches: int = 1500
    events: int = 100
    statements: int = 2000
    commits: int = 100
    operation: str = "sysbench event"
    workload: str = "oltp_read_write"
    options: Mapping[str, Any] = field(default_factory=dict)
    latency_ms: float = 10.0
    series: Callable[[int], int] | None = None
    variables: Mapping[str, str] = field(
        default_factory=lambda: {"innodb_flush_log_at_trx_commit": "1", "port": "3306"}
    )
    host: str = "db1"
    result: Mapping[str, Any] = field(default_factory=dict)  # further keys of result.json
    grown: Mapping[str, int] = field(default_factory=dict)  # status counters, increase in the measure phase
    drive: Mapping[str, Any] = field(default_factory=dict)
    # further probes: name → rows and description, for the ticks
    more: Callable[[range], Tables] | None = None


def make_run(path: Path, host: Host | None = None, **meta: Any) -> Path:
    """Write a complete run directory; `meta` overrides keys of run.json."""
    host = host or Host()
    (path / "load").mkdir(parents=True)
    (path / "server").mkdir()
    ticks = range(host.seconds + 3)  # measure begins after tick 1 and ends after tick seconds + 1
    probes = _probes(host, ticks) | (host.more(ticks) if host.more else {})
    _ticks(path, ticks, list(probes))
    for name, (rows, described) in probes.items():
        write_table(path / "server" / f"{name}.parquet", rows, {"probe": name, "role": "server", **described})
    _fingerprint(path, host)
    _load(path, host)
    run = {
        "format_version": 1,
        "id": path.name,
        "side": path.name,
        "workload": host.workload,
        "status": "complete",
        "operation": host.operation,
        "roles": {"server": {"host": host.host, "cpus": "0"}, "load": {"host": host.host, "cpus": "1"}},
        "placement": {"verified": True},
        "seed": 7,
        **meta,
    }
    write_json(path / "run.json", run)
    write_manifest(path)
    return path


def write_latencies(run: Path, kind: str, seconds: Sequence[Iterable[int]]) -> Path:
    """Write load/latency.parquet with the latencies of each second of `measure`, in ns; returns the run."""
    begins = (line for line in read_lines(run / "load" / "phases.jsonl") if line["event"] == "begin")
    begin = next(line["monotonic_ns"] for line in begins if line["phase"] == "measure")
    rows = [
        {
            "second": second,
            "monotonic_ns": begin + (second + 1) * SECOND,
            "type": kind,
            "from_ns": lowest,
            "to_ns": lowest + width,
            "count": count,
        }
        for second, values in enumerate(seconds)
        for (lowest, width), count in sorted(Counter(map(_bucket, values)).items())
    ]
    path = run / "load" / "latency.parquet"
    write_table(path, rows, {"probe": "latency", "shape": "table"})
    return agreed(path)


def _bucket(value: int) -> tuple[int, int]:
    """Lowest value and width of HdrHistogram's bucket of a value, with three significant digits."""
    width = 1 << max(0, value.bit_length() - 11)
    return value // width * width, width


def write_manifest(path: Path) -> None:
    """List every file with its size and CRC-32C."""
    files = {
        str(file.relative_to(path)): {
            "bytes": file.stat().st_size,
            "crc32c": f"{google_crc32c.value(file.read_bytes()):08x}",
        }
        for file in sorted(path.rglob("*"))
        if file.is_file() and file.name != "manifest.json"
    }
    write_json(path / "manifest.json", {"format_version": 1, "files": files})


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file."""
    path.write_text(json.dumps(value), encoding="utf-8")


def read_lines(path: Path) -> Rows:
    """Read JSON lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write_lines(path: Path, lines: Iterable[Mapping[str, Any]]) -> None:
    """Write JSON lines."""
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def write_phases(run: Path, *phases: tuple[str, float, float | None]) -> None:
    """Write load/phases.jsonl: each phase with its begin and end, in seconds after MEASURE."""
    lines = []
    for phase, *ends in phases:
        for event, after in zip(("begin", "end"), ends, strict=True):
            if after is not None:
                at = MEASURE + round(after * SECOND)
                stamps = {"monotonic_ns": at, "realtime_ns": REALTIME + at - FIRST, "boot_id": BOOT}
                lines.append({"phase": phase, "event": event, **stamps})
    write_lines(run / "load" / "phases.jsonl", lines)


def change_lines(path: Path, change: Callable[[dict[str, Any]], Mapping[str, Any]]) -> Path:
    """Change each line of a file of JSON lines of a run; returns the run."""
    write_lines(path, map(change, read_lines(path)))
    return agreed(path)


def change_json(path: Path, **changes: Any) -> Path:
    """Change keys of a JSON file; returns the run that it is in, or its directory."""
    write_json(path, json.loads(path.read_text()) | changes)
    return agreed(path)


def change_rows(path: Path, change: Callable[[dict[str, Any]], dict[str, Any] | None]) -> Path:
    """Change or drop the rows of a run's table, whose metadata stay; returns the run."""
    table = pq.read_table(path)
    rows = [row for row in map(change, table.to_pylist()) if row is not None]
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path)
    return agreed(path)


def change_column(
    path: Path, name: str, value: Callable[[dict[str, Any]], Any], kind: pa.DataType | None = None
) -> Path:
    """Compute a column of a run's table again from each row, perhaps with another type; returns the run."""
    table = pq.read_table(path)
    place = table.schema.get_field_index(name)
    values = pa.array([value(row) for row in table.to_pylist()], kind or table.schema.field(place).type)
    pq.write_table(table.set_column(place, name, values), path)
    return agreed(path)


def change_metadata(path: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """Change the `loadprint` metadata of a run's table in place; returns the run."""
    table = pq.read_table(path)
    described = json.loads(table.schema.metadata[b"loadprint"])
    change(described)
    pq.write_table(table.replace_schema_metadata({"loadprint": json.dumps(described)}), path)
    return agreed(path)


def agreed(path: Path) -> Path:
    """Make the manifest, if there is one, agree with a changed file; returns the run, or the directory."""
    run = next((parent for parent in path.parents if (parent / "run.json").is_file()), path.parent)
    if (run / "manifest.json").exists():
        write_manifest(run)
    return run


def write_table(path: Path, rows: Rows, described: Mapping[str, Any]) -> None:
    """Write rows as one Parquet table; a column without any value is text.

    Its `loadprint` metadata are these, and the units that its probe declares.
    """
    table = pa.Table.from_pylist(rows)
    for place, column in enumerate(table.columns):
        if pa.types.is_null(column.type):
            table = table.set_column(place, table.column_names[place], column.cast(pa.string()))
    meta = {"format_version": 1, "interval_ns": SECOND, "boot_id": BOOT, **described}
    for probe in (probe for probe in declared() if probe.name == path.stem):
        key = "metrics" if probe.shape == "metrics" else "columns"
        given = meta.get(key) or {}
        units = {name: {"unit": unit, **given.get(name, {})} for name, unit in probe.units.items()}
        meta[key] = given | units
    pq.write_table(table.replace_schema_metadata({"loadprint": json.dumps(meta)}), path, compression="zstd")


def read_at(tick: int) -> int:
    """Monotonic stamp at which a tick was read."""
    return FIRST + tick * SECOND


def counters(
    ticks: range, rates: Mapping[str, int], names: Iterable[str] = (), *, start: int = 1000, **entity: Any
) -> Rows:
    """Rows of one entity, whose counters grow by `rates` from tick to tick; the other `names` stand still."""
    return [
        {"tick": t, **entity, **{name: start + rates.get(name, 0) * t for name in (*names, *rates)}}
        for t in ticks
    ]


def metrics(ticks: range, values: Mapping[str, int | Callable[[int], int]]) -> tuple[Rows, dict[str, Any]]:
    """A table of metrics: each grows from 0 by a number from tick to tick, or has a function of the tick."""
    rows: Rows = [
        {"metric": name, "tick": t, "value": value(t) if callable(value) else value * t}
        for name, value in values.items()
        for t in ticks
    ]
    return rows, {"shape": "metrics"}


def of_mysql(values: Mapping[str, int | Callable[[int], int]]) -> Callable[[range], Tables]:
    """The table of the MySQL probe for `Host.more`; values as of `metrics`."""
    return lambda ticks: {"mysql": metrics(ticks, values)}


def histogram(ticks: range, buckets: Iterable[int], sum_ns: float, *, born: int = 0, **entity: str) -> Rows:
    """Rows of one entity, whose cumulative buckets grow by these counts from tick to tick, from `born` on."""
    return [
        {"tick": t, **entity, "sum_ns": round(sum_ns * t), "buckets": [count * t for count in buckets]}
        for t in ticks
        if t >= born
    ]


def histograms(rows: Iterable[Rows], bounds: Sequence[int | None] = BOUNDS) -> tuple[Rows, dict[str, Any]]:
    """A table of histograms with these bounds of their buckets."""
    described = {"shape": "histogram", "columns": {"buckets": {"bounds": list(bounds)}}}
    return sorted(itertools.chain.from_iterable(rows), key=lambda row: row["tick"]), described


def _probes(host: Host, ticks: range) -> Tables:
    pressure = (("cpu", "some"), ("io", "full"), ("io", "some"))
    tables = {
        "cpu": _cpu(host, ticks),
        "interrupts": _interrupts(ticks, "line", 300),
        "softirqs": _interrupts(ticks, "kind", 150),
        "disk": [row for d, r in host.disks.items() for row in counters(ticks, r, DISK, device=d)],
        "nic": [row for n, r in host.nics.items() for row in counters(ticks, r, NIC, interface=n)],
        "pressure": [
            row
            for r, s in pressure
            for row in counters(ticks, {"total_us": 50_000}, start=0, resource=r, severity=s)
        ],
        "process": _processes(host, ticks),
        "threads": _threads(host, ticks),
    }
    tcp = metrics(ticks, dict.fromkeys(("Tcp.OutSegs", "Tcp.RetransSegs"), 5))
    return {name: (rows, {"shape": "table"}) for name, rows in tables.items()} | {"tcp": tcp}


def _cpu(host: Host, ticks: range) -> Rows:
    total = {name: sum(rates.get(name, 0) for rates in host.cpus.values()) for name in CPU}
    rates = dict.fromkeys(OF_HOST, 0) | {"ctxt": 4000, "intr": 900, "softirqs": 400}
    rows = [
        row | dict.fromkeys(rates)
        for cpu, own in host.cpus.items()
        for row in counters(ticks, own, CPU, cpu=cpu)
    ]
    whole = zip(counters(ticks, total, cpu="all", start=2000), counters(ticks, rates), strict=True)
    return rows + [own | others for own, others in whole]


def _interrupts(ticks: range, key: str, rate: int) -> Rows:
    sets = {"all": 3, "0": 1, "1": 2, "server": 1}
    return [
        row
        for cpus, n in sets.items()
        for row in counters(ticks, {"count": rate * n}, start=0, cpus=cpus, description=None, **{key: "all"})
    ]


def _processes(host: Host, ticks: range) -> Rows:
    roles = {
        "server": (900, host.server_ticks),
        "load": (901, host.load_ticks),
        "recorder": (902, {"stime": 1}),
    }
    names = ("utime", "stime", "read_bytes", "write_bytes", "minflt", "majflt")
    fixed = {"starttime": 5, "threads": 4, "rss": 2048}
    return [
        row
        for role, (pid, rates) in roles.items()
        for row in counters(ticks, rates, names, role=role, pid=pid, comm=role, **fixed)
    ]


def _threads(host: Host, ticks: range) -> Rows:
    load = {"voluntary_ctxt_switches": 700, "on_cpu_ns": SECOND // 3, "run_delay_ns": 1_000_000}
    server = {"voluntary_ctxt_switches": host.switches, "on_cpu_ns": SECOND // 8}
    return [
        row
        for role, pid, rates in (("load", 901, load), ("server", 900, server))
        for row in counters(ticks, rates, THREAD, role=role, pid=pid, tid=pid, comm=role)
    ]


def _ticks(path: Path, ticks: range, probes: list[str]) -> None:
    rows = [
        {
            "tick": t,
            "probe": probe,
            "intended_ns": read_at(t),
            "start_ns": read_at(t),
            "end_ns": read_at(t) + 100_000,
            "realtime_ns": REALTIME + t * SECOND,
            "status": "ok",
            "missed": 0,
            "reason": None,
        }
        for t in ticks
        for probe in probes
    ]
    listed = [{"name": name, "status": "running", "reason": None} for name in probes]
    listed.append({"name": "energy", "status": "unavailable", "reason": "no powercap here"})
    described = {
        "probe": "ticks",
        "role": "server",
        "shape": "table",
        "probes": listed,
        "ticks": len(ticks),
        "missed": 0,
        "torn_bytes": 0,
        "ended": "signal",
    }
    rows.sort(key=lambda row: (row["tick"], row["probe"]))
    write_table(path / "server" / "ticks.parquet", rows, described)


def _fingerprint(path: Path, host: Host) -> None:
    write_json(
        path / "server" / "fingerprint.json",
        {
            "host": host.host,
            "boot_id": BOOT,
            "kernel": "6.1.0",
            "user_hz": 100,
            "cpusets": {"server": [0], "load": [1]},
            "cpus": {
                "model": "Test CPU",
                "list": [{"cpu": 0, "package": 0, "core": 0}, {"cpu": 1, "package": 0, "core": 1}],
            },
            "block_devices": [{"name": name} for name in host.disks],
            "storage": [
                {"role": "data", "path": "/srv", "disks": ["vda"]},
                {"role": "redo", "path": "/srv", "disks": ["vda"]},
            ],
        },
    )


def _load(path: Path, host: Host) -> None:
    seconds = host.seconds + 1
    write_phases(path, ("measure", 0, seconds))
    latency = {
        name: host.latency_ms * n
        for name, n in (
            ("min", 0.5),
            ("mean", 1),
            ("p50", 0.9),
            ("p95", 2),
            ("p99", 3),
            ("p999", 4),
            ("max", 9),
        )
    }
    write_json(
        path / "load" / "result.json",
        {
            "format_version": 1,
            "workload": host.workload,
            "operation": host.operation,
            "options": dict(host.options),
            "threads": 4,
            "seed": 7,
            "events": host.events * seconds,
            "queries": host.statements * seconds,
            "commits": host.commits * seconds,
            "errors": 0,
            "reconnects": 0,
            "seconds": seconds,
            "latency_ms": latency,
            **host.result,
        },
    )
    write_json(
        path / "load" / "server.json",
        {
            "version": "9.7.4",
            "version_comment": "MySQL",
            "variables": dict(host.variables),
            **(
                {
                    "status_begin": dict.fromkeys(host.grown, "1000"),
                    "status_end": {name: str(1000 + by) for name, by in host.grown.items()},
                }
                if host.grown
                else {}
            ),
        },
    )
    series = host.series or (lambda second: host.events + second % 3)
    rows = [
        {"second": second, "type": "event", "events": series(second), "queries": host.statements}
        for second in range(seconds)
    ]
    write_table(path / "load" / "throughput.parquet", rows, {"probe": "throughput", "shape": "table"})


def make_matrix(
    path: Path,
    rates: Mapping[tuple[str, int], Sequence[int]],
    column: str,
    campaign: str,
    *,
    of: str = "oltp",
    base: Host | None = None,
    changed: Mapping[str, Host] | None = None,
    seconds: int = 4,
) -> Path:
    """Write an execution whose sides are values of `column` by connections.

    The rates are operations a second of each repeat.
    """
    sides, plans = {}, {}
    for (value, threads), own in rates.items():
        side = f"{value}-t{threads}"
        host = (changed or {}).get(side, base or Host())
        sides[side] = [replace(host, seconds=seconds, events=rate) for rate in own]
        cell = {column: value, "threads": threads}
        plans[side] = {"of": of, "threads": threads, "workload": host.workload, "cell": cell}
    return make_execution(path, sides, next(iter(sides)), plans, {"name": campaign})


def make_execution(
    path: Path,
    sides: Mapping[str, Sequence[Host]],
    reference: str,
    plans: Mapping[str, Mapping[str, Any]] | None = None,
    campaign: Mapping[str, Any] | None = None,
) -> Path:
    """Write an execution: repeat k of every side in block k.

    `plans` are further keys of sides in execution.json, `campaign` of its campaign.
    """
    path.mkdir(parents=True)
    runs = []
    for name, hosts in sides.items():
        for k, host in enumerate(hosts, start=1):
            run = f"b{k}-{name}-r{k}"
            runs.append({"id": run, "block": k, "side": name, "repeat": k})
            meta = {"drive": host.drive} if host.drive else {}
            make_run(path / run, host, side=name, block=k, repeat=k, **meta)
    write_json(
        path / "execution.json",
        {
            "format_version": 1,
            "campaign": {"name": "test", "title": "a campaign of the tests", **(campaign or {})},
            "hash": "0" * 64,
            "seed": 42,
            "reference": reference,
            "sides": {name: {"label": name.upper(), **(plans or {}).get(name, {})} for name in sides},
            "runs": runs,
            "warm_promise": "none: the hosts of this test are always warm",
            "status": "complete",
            "notes": [],
        },
    )
    return path
