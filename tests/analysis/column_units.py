"""Lists the columns of a run's tables whose unit is not the recorder's (docs/metrics.md)."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
from declarations import declared


def other_units(run: Path) -> list[str]:
    """TABLE.COLUMN with its unit, where it is not that of the probe of this name."""
    known = {(probe.name, name): unit for probe in declared() for name, unit in probe.units.items()}
    found = []
    for path in run.rglob("*.parquet"):
        described = json.loads(pq.read_schema(path).metadata[b"loadprint"])
        for name, meaning in {**described.get("columns", {}), **described.get("metrics", {})}.items():
            unit = meaning.get("unit") or "1"
            if unit != known.get((path.stem, name), unit):
                found.append(f"{path.stem}.{name} {unit}")
    return found
