"""Defines the commands `export` and `fleet`."""

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
  loadprint export runs/quick/latest --to s3://bucket/fleet
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
        subparsers,
        "export",
        "write rows of recordings to one Parquet table, for `fleet`",
        EXPORT_EXAMPLES,
    )
    parser.add_argument(
        "paths", nargs="+", type=Path, metavar="EXECUTION|RUN", help="execution or run directory"
    )
    parser.add_argument(
        "--to", required=True, metavar="DATASET", help="directory, or URL that fsspec supports"
    )
    parser.set_defaults(run=run_export)


def add_fleet(subparsers: Any) -> None:
    """Register `fleet`."""
    parser = options.command(
        subparsers, "fleet", "compare groups of instances from a data set", FLEET_EXAMPLES
    )
    parser.add_argument("dataset", metavar="DATASET", help="directory or URL that `loadprint export` wrote")
    parser.add_argument(
        "--by", metavar="COLUMN,…", help="columns to group by (default: instance_type,workload,side)"
    )
    parser.add_argument(
        "--where",
        action="append",
        default=[],
        metavar="COLUMN=VALUE",
        help="use only runs with this value; may be repeated",
    )
    parser.add_argument("--metrics", metavar="KEY,…", help="rows to print (default: seven headline rows)")
    parser.add_argument(
        "--reference",
        metavar="VALUE",
        help="value of the first --by column that every ratio is relative to (default: the most frequent)",
    )
    parser.add_argument(
        "--everything", action="store_true", help="include runs that drift or are client-bound"
    )
    options.add_output(parser)
    parser.set_defaults(run=run_fleet)


def run_export(arguments: argparse.Namespace) -> int:
    """Write a data set, and report excluded runs."""
    from loadprint.commands.fleet.export import export

    done = export(arguments.paths, arguments.to)
    for run, reason in done.left_out:
        print(printable(f"loadprint: excluded {run}: {reason}"), file=sys.stderr)
    place = printable(str(arguments.to))
    print(f"{done.runs} runs in {done.files} files, {done.bytes / 1e6:.1f} MB, in {place}")
    return 0


def run_fleet(arguments: argparse.Namespace) -> int:
    """Print the table of a fleet."""
    from loadprint.commands.fleet import dataset, fleet_pivots, fleet_table
    from loadprint.rendering.pivot import RENDERERS

    query = fleet_table.Query(
        by=tuple(arguments.by.split(",")) if arguments.by else fleet_table.DEFAULT_BY,
        metrics=tuple(arguments.metrics.split(",")) if arguments.metrics else fleet_table.DEFAULT_METRICS,
        where=tuple(_condition(text) for text in arguments.where),
        reference=arguments.reference,
        everything=arguments.everything,
    )
    lines = dataset.on_duckdb(dataset.open_dataset(arguments.dataset))
    report = fleet_pivots.report(fleet_table.fleet(lines, query), arguments.dataset)
    options.write(RENDERERS[arguments.format](report), arguments.output)
    return 0


def _condition(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise InputError(f"--where {text}", "not COLUMN=VALUE", "write --where workload=oltp_read_write")
    return name, value
