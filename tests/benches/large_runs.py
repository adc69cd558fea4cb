"""Makes recordings of a large host: many CPUs, 300 interrupt lines, 100 threads, noise in all counters.

Among their tables are those of the eBPF programs and of the MySQL probe with 600 counters. They are written
by the recorder's own writer: `cargo build --release --locked --workspace --example rewrite`.
"""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parent.parent / "analysis"))
import recordings
from loadprint.catalogue.files import catalogue
from processes import RELEASE

REWRITE = RELEASE / "examples/rewrite"
BOUNDS = [
    *range(16),
    *(2**power + step * 2 ** (power - 3) for power in range(4, 37) for step in range(8)),
    2**37,
]
USED = slice(60, 120)  # buckets that anything falls into
STATES = ("run queue", "block I/O", "lock", "network", "sleep", "other")
HISTOGRAMS: dict[str, tuple[dict[str, list[str]], str]] = {
    "ebpf_sched": ({"role": ["load"] * 6 + ["server"] * 6, "state": [*STATES, *STATES]}, "sum_ns"),
    "ebpf_block": (
        {
            "device": ["vda"] * 6,
            "operation": ["flush", "read", "write"] * 2,
            "stage": ["device"] * 3 + ["queue"] * 3,
        },
        "sum_ns",
    ),
    "ebpf_block_size": ({"device": ["vda"] * 2, "operation": ["read", "write"]}, "sum_bytes"),
    "ebpf_irq": ({"kind": ["BLOCK", "NET_RX", "NET_TX", "RCU", "SCHED", "TIMER", "hard"]}, "sum_ns"),
    "ebpf_tcp": ({"port": ["3306"], "side": ["accepted"], "peer": ["remote"]}, "sum_ns"),
}


def make(path: Path, cpus: int, seconds: int, seed: int) -> Path:
    """Run whose tables have the rows of a large host: many CPUs, 300 interrupt lines, 100 threads, noise."""
    if path.exists():
        return path
    recordings.make_run(
        path,
        recordings.Host(seconds=seconds, more=begun),
        roles={"server": {"cpus": f"0-{cpus // 2 - 1}"}, "load": {"cpus": f"{cpus // 2}-{cpus - 1}"}},
    )
    random = np.random.default_rng(seed)
    ticks, server = seconds + 3, path / "server"
    names = ["all", *map(str, range(cpus))]
    columns = {name: counters(random, len(names), ticks, 12) for name in recordings.CPU}
    columns |= {name: counters(random, len(names), ticks, 9000) for name in recordings.OF_HOST}
    save(server / "cpu.parquet", {"cpu": names}, ticks, columns)
    lines = [f"{line}" for line in range(300)]
    for probe, key in (("interrupts", "line"), ("softirqs", "kind")):
        keys = [*lines, *["all"] * (cpus + 2)]
        sets = [*["all"] * len(lines), "all", "server", *map(str, range(cpus))]
        save(
            server / f"{probe}.parquet",
            {key: keys, "cpus": sets},
            ticks,
            {"count": counters(random, len(keys), ticks, 500)},
        )
    roles = ["load"] * 50 + ["server"] * 50
    ids: dict[str, list[Any]] = {"role": roles, "pid": [900] * 100, "tid": list(range(100))}
    threads = {name: counters(random, 100, ticks, 1000) for name in recordings.THREAD}
    save(server / "threads.parquet", ids, ticks, threads)
    histograms(server, random, ticks)
    mysql(server, random, ticks)
    subprocess.run([REWRITE, *sorted(path.glob("*/*.parquet"))], check=True)
    recordings.write_manifest(path)
    return path


def begun(ticks: range) -> dict[str, tuple[recordings.Rows, dict[str, Any]]]:
    """First rows of the probes that are written again below, so that the ticks know them."""
    histogram = {"shape": "histogram", "columns": {"buckets": {"bounds": BOUNDS}}}
    row = {"tick": ticks[0], "buckets": [0]}
    result: dict[str, tuple[recordings.Rows, dict[str, Any]]] = {
        probe: ([row], histogram) for probe in HISTOGRAMS
    }
    result["mysql"] = ([{"metric": "Questions", "tick": ticks[0], "value": 0}], {"shape": "metrics"})
    return result


def histograms(server: Path, random: np.random.Generator, ticks: int) -> None:
    """Tables of the eBPF programs: cumulative buckets of every entity at every tick."""
    buckets = len(BOUNDS) - 1
    for probe, (keys, total) in HISTOGRAMS.items():
        entities = len(next(iter(keys.values())))
        risen = np.zeros((entities, ticks, buckets), dtype=np.uint64)
        risen[:, :, USED] = random.poisson(2, (entities, ticks, USED.stop - USED.start))
        counts = np.cumsum(risen, axis=1, dtype=np.uint64)
        offsets = np.arange(0, entities * ticks * buckets + 1, buckets, dtype=np.int32)
        made: Any = pa.ListArray  # its published types know no offsets from numpy
        lists = made.from_arrays(pa.array(offsets), pa.array(counts.ravel()))
        data = {"tick": pa.array(np.tile(np.arange(ticks, dtype=np.uint32), entities))}
        data |= {name: pa.array(np.repeat(np.array(values), ticks)) for name, values in keys.items()}
        sums = {total: counters(random, entities, ticks, 100_000)}
        if probe == "ebpf_tcp":
            sums |= {name: counters(random, entities, ticks, 1) for name in ("retransmits", "opened")}
        data |= {name: pa.array(values.astype(np.uint64)) for name, values in sums.items()}
        path = server / f"{probe}.parquet"
        old = pq.read_schema(path).metadata
        table = pa.table({**data, "buckets": lists}).replace_schema_metadata(old)
        pq.write_table(table, path, compression="zstd")


def mysql(server: Path, random: np.random.Generator, ticks: int) -> None:
    """The MySQL probe: 600 metrics at every tick, those of a current server among them."""
    known = catalogue().columns["mysql"]
    names = sorted({*known, *(f"Com_{number}" for number in range(600 - len(known)))})
    path = server / "mysql.parquet"
    save(path, {"metric": names}, ticks, {"value": counters(random, len(names), ticks, 50)})


def counters(random: np.random.Generator, entities: int, ticks: int, rate: int) -> np.ndarray:
    """Cumulative noise, entity after entity."""
    return np.cumsum(random.poisson(rate, (entities, ticks)), axis=1).ravel()


def save(path: Path, keys: dict[str, list[Any]], ticks: int, columns: dict[str, np.ndarray]) -> None:
    """Write a table sorted by (entity, tick)."""
    entities = len(next(iter(keys.values())))
    data = {"tick": pa.array(np.tile(np.arange(ticks, dtype=np.uint32), entities))}
    data |= {name: pa.array(np.repeat(np.array(values), ticks)) for name, values in keys.items()}
    data |= {name: pa.array(values.astype(np.uint64)) for name, values in columns.items()}
    old = pq.read_schema(path).metadata
    encodings = dict.fromkeys(("tick", *columns), "DELTA_BINARY_PACKED")
    dictionary: Any = list(keys)  # the published types know only a flag here
    table = pa.table(data).replace_schema_metadata(old)
    pq.write_table(table, path, compression="zstd", use_dictionary=dictionary, column_encoding=encodings)


def sides(parent: Path, cpus: int, seconds: int, repeats: int) -> Path:
    """Make an execution of two sides with latencies; give its directory."""
    execution = parent / f"x{repeats}"
    if not execution.exists():
        execution.mkdir(parents=True)
        runs = []
        for number in range(2 * repeats):
            side, repeat = ("a", "b")[number % 2], number // 2 + 1
            name = f"b{repeat}-{side}-r{repeat}"
            run = make(execution / name, cpus, seconds, number)
            extend(run, seconds)
            recordings.change_json(run / "run.json", side=side, block=repeat, repeat=repeat)
            runs.append({"id": name, "block": repeat, "side": side, "repeat": repeat})
        known: dict[str, Any] = {
            "format_version": 1,
            "campaign": {"name": "hour"},
            "reference": "a",
            "seed": 1,
        }
        listed = {"sides": {"a": {"label": "A"}, "b": {"label": "B"}}, "runs": runs}
        recordings.write_json(execution / "execution.json", known | listed)
    return execution


def extend(run: Path, seconds: int) -> None:
    """Give a run latencies in some 600 buckets a second: those of a few seconds over and over."""
    few = 20
    values = np.random.default_rng(1).lognormal(math.log(6e6), 0.3, (few, 1000)).astype(int)
    path = recordings.write_latencies(run, "oltp_read_write", values.tolist()) / "load" / "latency.parquet"
    table = pq.read_table(path)
    parts = [table]
    for begin in range(few, seconds, few):
        later = table
        for name, by in (("second", begin), ("monotonic_ns", begin * recordings.SECOND)):
            shifted = pa.array(table[name].to_numpy() + by, table.schema.field(name).type)
            later = later.set_column(table.column_names.index(name), name, shifted)
        parts.append(later)
    pq.write_table(pa.concat_tables(parts), path, compression="zstd")
