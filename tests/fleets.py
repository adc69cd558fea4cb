"""Makes the data set of a large fleet: one real recording's rows over and over, with other values."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from loadprint.commands.fleet import dataset
from loadprint.commands.fleet.export import export
from loadprint.commands.fleet.run_rows import table

RUNS_A_MACHINE = 4
MACHINES_AN_EXECUTION = 25


def make_fleet(place: Path, run: Path, count: int) -> None:
    """Write `count` runs of two types of machine, whose values are a few per cent apart."""
    random = np.random.default_rng(1)
    target = dataset.open_dataset(str(place))
    with tempfile.TemporaryDirectory() as scratch:
        export([run], scratch)
        lines = pq.ParquetFile(next(Path(scratch).glob("*/*/*"))).read().to_pylist()
    dataset.mark_version(target)
    machines = range(count // RUNS_A_MACHINE)
    for first in machines[::MACHINES_AN_EXECUTION]:
        execution = []
        for machine in machines[first : first + MACHINES_AN_EXECUTION]:
            own = {"instance": f"machine-{machine}", "instance_type": "m.small" if machine % 2 else "m.large"}
            for repeat, scale in enumerate(random.lognormal(0.0, 0.03, RUNS_A_MACHINE)):
                named = {**own, "run": f"machine-{machine}/{repeat}"}
                execution += [{**line, **named, "value": line["value"] * scale} for line in lines]
        dataset.write_part(target, target.path("fleet", f"from-{first}"), table(execution))
