"""Times `loadprint fleet` on 1000 runs of 250 machines, start-up included; its bar is 5 s.

The runs are one real recording's tables over and over, each with other counters: raw tables, none summed up.
    .venv/bin/python tests/benches/fleet_speed.py RUN [--runs 1000] [--keep DIR]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from compare_speed import timed
from loadprint.commands.fleet import dataset
from loadprint.commands.fleet.export import export

COMMAND = Path(sys.executable).parent / "loadprint"
BAR_S = 5.0
TIMES = 5
RUNS_A_MACHINE = 4
TABLES = ("cpu", "disk", "nic", "process")
COUNTERS = (
    "user",
    "system",
    "idle",
    "iowait",
    "reads",
    "writes",
    "write_sectors",
    "tx_bytes",
    "utime",
    "stime",
)


def main() -> None:
    """Make the data set and time the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, help="a run directory to make the others from")
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--keep", type=Path, help="make the data set here, or use the one that is here")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        place = given.keep or Path(scratch) / "fleet"
        if not place.exists():
            make(place, given.run, given.runs)
        files = list(place.rglob("*.parquet"))
        size = sum(file.stat().st_size for file in files)
        measured = [timed([str(COMMAND), "fleet", str(place), "--everything"]) for _ in range(TIMES)]
    walls, _, peaks = zip(*measured, strict=True)
    print(f"{given.runs} runs in {len(files)} files, {size / 1e6:.1f} MB")
    print(f"wall   median {statistics.median(walls):.2f} s (min {min(walls):.2f}, max {max(walls):.2f})")
    print(f"bar    {BAR_S} s")
    print(f"memory max {max(peaks):.0f} MB")


def make(place: Path, run: Path, count: int) -> None:
    """A data set of `count` runs: an execution a machine, two types of machine."""
    random = np.random.default_rng(1)
    target = dataset.open_dataset(str(place))
    with tempfile.TemporaryDirectory() as scratch:
        export([run], scratch, TABLES)
        one = dataset.open_dataset(scratch)
        parts = {
            name: pa.parquet.ParquetFile(next(Path(scratch).glob(f"{name}/*/*/*"))).read()
            for name in one.tables()
        }
    dataset.mark_version(target)
    for machine in range(count // RUNS_A_MACHINE):
        for name, part in parts.items():
            runs = [instance_part(part, name, machine, repeat, random) for repeat in range(RUNS_A_MACHINE)]
            dataset.write_part(
                target, target.path(name, "fleet", f"machine-{machine}"), pa.concat_tables(runs)
            )


def instance_part(
    part: pa.Table, name: str, machine: int, repeat: int, random: np.random.Generator
) -> pa.Table:
    """One run's rows under its own name, what it counted scaled by a few per cent."""
    columns = {"run": f"machine-{machine}/{repeat}", "instance": f"machine-{machine}"}
    columns["instance_type"] = "m.small" if machine % 2 else "m.large"
    for column, value in columns.items():
        if column in part.column_names:
            filled = pa.array([value] * len(part), pa.string())
            part = part.set_column(part.column_names.index(column), column, filled)
    if name == "runs":
        scaled = pc.multiply(part["events"], random.lognormal(0.0, 0.03))
        return part.set_column(part.column_names.index("events"), "events", scaled)
    for column in COUNTERS:
        if column in part.column_names:
            place = part.column_names.index(column)
            kind = part.schema.field(place).type
            scaled = pc.floor(pc.multiply(pc.cast(part[column], pa.float64()), random.lognormal(0.0, 0.03)))
            part = part.set_column(place, column, pc.cast(scaled, kind))
    return part


if __name__ == "__main__":
    main()
