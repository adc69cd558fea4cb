"""Defines the command `import` and lists the formats that it reads."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path
from typing import Any

from loadprint import options
from loadprint.commands.imports import import_table_command
from loadprint.printable import printable

EXAMPLES = """examples:
  loadprint import prometheus node.json mysqld.json --out runs/production
  loadprint import prometheus snapshots/*.prom --out runs/snapshots
  loadprint import sar /var/log/sysstat/sa21 --out runs/yesterday
  loadprint compare runs/production runs/snapshots
  loadprint import table sar-of-a-blog.csv
"""

# kind → its help. Module loadprint.importing.KIND: `add_arguments(parser)`, `read(arguments) -> Imported`.
KINDS: dict[str, str] = {
    "sar": "an sa file of sysstat, or the output of `sadf -j FILE -- -A`",
    "prometheus": "range queries saved as JSON, or snapshots of /metrics",
}
TABLE = "check a table of a publication (CSV): compute its ratios again and compare them"


def add_import(subparsers: Any) -> None:
    """Register `import`."""
    parser = options.command(
        subparsers, "import", "import another tool's recording as a run directory", EXAMPLES
    )
    kinds = parser.add_subparsers(required=True, metavar="KIND")
    for kind, summary in KINDS.items():
        examples = [line for line in EXAMPLES.splitlines() if f" import {kind} " in line]
        imported = options.command(
            kinds, kind, summary, "\n".join(["examples:", *examples]), f"Import {summary}."
        )
        imported.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="file to import")
        imported.add_argument(
            "--out", required=True, type=Path, metavar="RUN", help="run directory to create"
        )
        module = importlib.import_module(f"loadprint.importing.{kind}")
        module.add_arguments(imported)
        imported.set_defaults(run=run_import, kind=kind)
    table = options.command(kinds, "table", TABLE, import_table_command.EXAMPLES)
    import_table_command.add_arguments(table)
    table.set_defaults(run=import_table_command.run)


def run_import(arguments: argparse.Namespace) -> int:
    """Write the run directory and print a summary of it."""
    from loadprint.importing.writer import write_run

    module = importlib.import_module(f"loadprint.importing.{arguments.kind}")
    imported = module.read(arguments)
    write_run(arguments.out, imported)
    seconds = (imported.realtime_ns[-1] - imported.realtime_ns[0]) / 1e9
    tables = ", ".join(table.name for table in imported.tables)
    for note in imported.notes:
        print(printable(f"loadprint: {arguments.paths[0]}: {note}"), file=sys.stderr)
    place = printable(str(arguments.out))
    print(f"{place}: {len(imported.realtime_ns)} points over {seconds:.1f} s; tables {tables}")
    return 0
