"""Opens a data set with DuckDB. docs/fleet.md shows how to open it with another engine."""

from __future__ import annotations

import ibis
import ibis.expr.types as ir

from loadprint.commands.fleet.dataset import RUNS, SETS, Dataset, require_version
from loadprint.commands.fleet.expressions import PROBES, Tables
from loadprint.errors import InputError


def on_duckdb(dataset: Dataset) -> Tables:
    """Open the tables of a data set with an embedded DuckDB. Raises InputError."""
    require_version(dataset)
    existing = dataset.tables()
    for needed in (RUNS, SETS, "ticks"):
        if needed not in existing:
            raise InputError(dataset.url, f"has no table `{needed}`", "export the runs again")
    backend = ibis.duckdb.connect()
    if "file" not in dataset.filesystem.protocol:
        backend.con.register_filesystem(dataset.filesystem)

    def table(name: str) -> ir.Table:
        # partitions are text, even that of a campaign named 2026
        return backend.read_parquet(
            dataset.glob(name),
            table_name=name,
            hive_partitioning=True,
            hive_types_autocast=False,
            union_by_name=True,
        )

    probes = {probe: table(probe) for probe in PROBES if probe in existing}
    return Tables(table(RUNS), table(SETS), table("ticks"), probes)
