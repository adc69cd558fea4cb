"""The commands `export` and `fleet`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from loadprint import options
from loadprint.errors import InputError
from loadprint.printable import printable

EXPORT_EXAMPLES = """examples:
  loadprint export runs/qualification/* --to fleet
  loadprint export runs/quick/latest --to s3://bucket/fleet --tables cpu,disk,nic,process
"""
FLEET_EXAMPLES = """examples:
  loadprint fleet fleet
  loadprint fleet fleet --by instance_type --where workload=oltp_read_write --where threads=16
  loadprint fleet s3://bucket/fleet --by server --metrics operations,server_cpu_per_operation
  loadprint fleet fleet --format csv -o fleet.csv
"""


def add_export(subparsers: Any) -> None:
    """Register `export`."""
    parser = options.command(
        subparsers, "export", "recordings as one Parquet data set, for a fleet", EXPORT_EXAMPLES
    )
    parser.add_argument("paths", nargs="+", type=Path, metavar="EXECUTION|RUN")
    parser.add_argument(
        "--to", required=True, metavar="DATASET", help="a directory, or a URL that fsspec knows"
    )
    parser.add_argument("--tables", metavar="PROBE,…", help="only these probes' tables (default: all)")
    parser.set_defaults(run=run_export)


def add_fleet(subparsers: Any) -> None:
    """Register `fleet`."""
    parser = options.command(
        subparsers, "fleet", "groups of instances side by side, from a data set", FLEET_EXAMPLES
    )
    parser.add_argument("dataset", metavar="DATASET")
    parser.add_argument(
        "--by", metavar="COLUMN,…", help="what makes a group (default: instance_type,workload,side)"
    )
    parser.add_argument(
        "--where", action="append", default=[], metavar="COLUMN=VALUE", help="only these runs"
    )
    parser.add_argument("--metrics", metavar="KEY,…", help="which rows")
    parser.add_argument(
        "--reference", metavar="VALUE", help="the value of the first column that ratios are to"
    )
    parser.add_argument("--everything", action="store_true", help="count drifting and client-bound runs too")
    options.add_output(parser)
    parser.set_defaults(run=run_fleet)


def run_export(arguments: argparse.Namespace) -> int:
    """Write a data set, and say what was left out."""
    from loadprint.commands.fleet.export import export

    tables = arguments.tables.split(",") if arguments.tables else None
    done = export(arguments.paths, arguments.to, tables)
    for run, reason in done.left_out:
        print(printable(f"loadprint: left out {run}: {reason}"), file=sys.stderr)
    place = printable(str(arguments.to))
    print(f"{done.runs} runs in {done.files} files, {done.bytes / 1e6:.1f} MB, in {place}")
    return 0


def run_fleet(arguments: argparse.Namespace) -> int:
    """Print a fleet's table."""
    from loadprint.commands.fleet import dataset, engines, fleet_pivots, fleet_table
    from loadprint.rendering.render_pivot import RENDERERS

    asked = fleet_table.Question(
        by=tuple(arguments.by.split(",")) if arguments.by else fleet_table.DEFAULT_BY,
        metrics=tuple(arguments.metrics.split(",")) if arguments.metrics else fleet_table.DEFAULT_METRICS,
        where=tuple(_pair(given) for given in arguments.where),
        reference=arguments.reference,
        everything=arguments.everything,
    )
    found = fleet_table.fleet(engines.on_duckdb(dataset.open_dataset(arguments.dataset)), asked)
    options.write(
        RENDERERS[arguments.format](fleet_pivots.report(found, arguments.dataset)), arguments.output
    )
    return 0


def _pair(given: str) -> tuple[str, str]:
    name, equals, value = given.partition("=")
    if not equals:
        raise InputError(f"--where {given}", "is no COLUMN=VALUE", "write --where workload=oltp_read_write")
    return name, value
