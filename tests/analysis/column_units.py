"""Lists the columns of a run's tables whose unit is not the recorder's."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
from loadprint.reading.units import unit_flaw


def other_units(run: Path) -> list[str]:
    """The first such column of every table."""
    described = {
        path.stem: json.loads(pq.read_schema(path).metadata[b"loadprint"]) for path in run.rglob("*.parquet")
    }
    return [flaw for table, metadata in described.items() if (flaw := unit_flaw(table, metadata))]
