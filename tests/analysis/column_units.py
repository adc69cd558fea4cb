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
        footer = json.loads(pq.read_schema(path).metadata[b"loadprint"])
        described = footer.get("columns") or footer.get("metrics") or {}
        table = pq.read_table(path)
        names = set(
            map(str, table["metric"].to_pylist() if "metric" in table.column_names else table.column_names)
        )
        for name in sorted(names):
            unit = described.get(name, {}).get("unit")
            if (path.stem, name) in known and unit != known[path.stem, name]:
                found.append(f"{path.stem}.{name} {unit}")
    return found
