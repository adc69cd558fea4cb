"""Opens a data set with DuckDB. Another engine needs its own `Tables`: docs/fleet.md has ClickHouse's."""

from __future__ import annotations

import ibis
import ibis.expr.types as ir

from loadprint.commands.fleet.dataset import RUNS, SETS, Dataset, require_version
from loadprint.commands.fleet.expressions import PROBES, Tables
from loadprint.errors import InputError


def on_duckdb(dataset: Dataset) -> Tables:
    """Tables of a data set on an embedded DuckDB. Raises InputError where there is none."""
    require_version(dataset)
    there = dataset.tables()
    for needed in (RUNS, SETS, "ticks"):
        if needed not in there:
            raise InputError(dataset.url, f"has no table `{needed}`", "export the runs again")
    backend = ibis.duckdb.connect()
    if "file" not in dataset.filesystem.protocol:
        backend.con.register_filesystem(dataset.filesystem)

    def table(name: str) -> ir.Table:
        # a campaign may be called 2026: its partition is text all the same
        return backend.read_parquet(
            dataset.glob(name),
            table_name=name,
            hive_partitioning=True,
            hive_types_autocast=False,
            union_by_name=True,
        )

    probes = {probe: table(probe) for probe in PROBES if probe in there}
    return Tables(table(RUNS), table(SETS), table("ticks"), probes)
