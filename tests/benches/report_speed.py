"""Times `loadprint report` on pairs of one-hour recordings of a 64-CPU host at 1 Hz, start-up included.

Prints wall seconds, CPU seconds, peak memory and the size of the page, for one and for three repeats a side,
beside the bars (5 s for the pair, 3 MB for three repeats); asserts nothing.
    .venv/bin/python tests/benches/report_speed.py [--cpus 64] [--seconds 3600] [--keep DIR]
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parent.parent / "analysis"))
import compare_speed
import recordings

COMMAND = Path(sys.executable).parent / "loadprint"
BARS = (5.0, 3.0)
RUNS = 3
KEPT = Path(__file__).parent.parent / "recordings" / "v1" / "oltp" / "load" / "latency.hlog"
PAGES, METRICS = 4000, ("Innodb_buffer_pool_pages_flushed", "Innodb_data_fsyncs", "Threads_running")
BOUNDS = [
    *range(16),
    *(2**power + step * 2 ** (power - 3) for power in range(4, 37) for step in range(8)),
    None,
]


def main() -> None:
    """Make the recordings and time the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cpus", type=int, default=64)
    parser.add_argument("--seconds", type=int, default=3600)
    parser.add_argument("--keep", type=Path, help="make the recordings here, or use those that are here")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        parent = given.keep or Path(scratch)
        for repeats in (1, 3):
            words = sides(parent, given.cpus, given.seconds, repeats)
            told(parent / "page.html", words, repeats, given.seconds)


def told(page: Path, words: list[str], repeats: int, seconds: int) -> None:
    """Run the command a few times and print what it took."""
    measured = [compare_speed.timed([str(COMMAND), "report", *words, "-o", str(page)]) for _ in range(RUNS)]
    walls, cpus, peaks = zip(*measured, strict=True)
    print(f"two sides, {repeats} repeat{'s' if repeats > 1 else ''} each, {seconds} s")
    print(
        f"wall   median {statistics.median(walls):.2f} s (min {min(walls):.2f}); bar of the pair {BARS[0]} s"
    )
    print(f"CPU    median {statistics.median(cpus):.2f} s; memory max {max(peaks):.0f} MB")
    print(f"page   {page.stat().st_size / 1e6:.2f} MB; bar {BARS[1]} MB")


def sides(parent: Path, cpus: int, seconds: int, repeats: int) -> list[str]:
    """An execution of two sides; recordings are those of compare_speed with MySQL, eBPF and latencies."""
    execution = parent / f"x{repeats}"
    if not execution.exists():
        execution.mkdir(parents=True)
        runs = []
        for number in range(2 * repeats):
            side, repeat = ("a", "b")[number % 2], number // 2 + 1
            name = f"b{repeat}-{side}-r{repeat}"
            run = compare_speed.make(execution / name, cpus, seconds, number)
            extend(run, seconds, number)
            described = json.loads((run / "run.json").read_text())
            recordings.write_json(
                run / "run.json", described | {"side": side, "block": repeat, "repeat": repeat}
            )
            recordings.write_manifest(run)
            runs.append({"id": name, "block": repeat, "side": side, "repeat": repeat})
        known: dict[str, Any] = {
            "format_version": 1,
            "campaign": {"name": "hour"},
            "reference": "a",
            "seed": 1,
        }
        listed = {"sides": {"a": {"label": "A"}, "b": {"label": "B"}}, "runs": runs}
        recordings.write_json(execution / "execution.json", known | listed)
    return [str(execution)]


def extend(run: Path, seconds: int, seed: int) -> None:
    """Add a MySQL table, run-queue histograms and a latency log of an hour."""
    random, ticks = np.random.default_rng(seed), range(seconds + 3)
    steps = {metric: np.cumsum(random.poisson(PAGES, len(ticks))) for metric in METRICS}
    rows: recordings.Rows = [
        {"metric": metric, "tick": t, "value": float(steps[metric][t]), "text": None}
        for metric in METRICS
        for t in ticks
    ]
    recordings.write_table(run / "server" / "mysql.parquet", rows, {"probe": "mysql", "shape": "metrics"})
    per_second = random.poisson(40, len(BOUNDS) - 1)
    described = {"probe": "ebpf_sched", "shape": "histogram", "columns": {"buckets": {"bounds": BOUNDS}}}
    states: recordings.Rows = [
        {
            "tick": t,
            "role": "server",
            "state": state,
            "sum_ns": 10**8 * t,
            "buckets": (per_second * t).tolist(),
        }
        for state in ("run queue", "lock", "network", "block I/O")
        for t in ticks
    ]
    recordings.write_table(run / "server" / "ebpf_sched.parquet", states, described)
    also_read(run, ("mysql", "ebpf_sched"))
    shutil.copy(KEPT, run / "load" / "latency.hlog")
    lines = KEPT.read_text().splitlines()
    intervals = [line for line in lines if line.startswith("Tag=")]
    longer = [line for line in lines if not line.startswith("Tag=")]
    longer += [intervals[second % len(intervals)] for second in range(seconds)]
    (run / "load" / "latency.hlog").write_text("\n".join(longer) + "\n")


def also_read(run: Path, probes: tuple[str, ...]) -> None:
    """List further probes in the table of ticks, read when `cpu` was."""
    path = run / "server" / "ticks.parquet"
    table = pq.read_table(path)
    own = pa.Table.from_pylist([row for row in table.to_pylist() if row["probe"] == "cpu"], table.schema)
    more = [own.set_column(1, "probe", pa.array([name] * len(own))) for name in probes]
    together = pa.concat_tables([table, *more]).sort_by([("tick", "ascending"), ("probe", "ascending")])
    pq.write_table(together.replace_schema_metadata(table.schema.metadata), path)


if __name__ == "__main__":
    main()
