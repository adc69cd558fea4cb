"""Defines the command `compare`."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from typing import Any

from loadprint import options
from loadprint.errors import InputError

COMPARE_EXAMPLES = """SIDE is a run directory, EXECUTION:side, EXECUTION (all its sides), RUN:side of a run in
which sides took turns (RUN:baseline and RUN:treatment of an A/B experiment), or a file of sysstat: an sa
file, or the output of `sadf -j FILE -- -A`.

examples:
  loadprint compare runs/quick/latest
  loadprint compare runs/quick/latest:oltp runs/quick/latest:insert --reference insert
  loadprint compare run-a run-b --per-op
  loadprint compare runs/ab/dirty-1:baseline runs/ab/dirty-1:treatment
  loadprint compare runs/quick/latest --verbose
  loadprint compare runs/hammerdb-vs-sysbench/latest --view sar
  loadprint compare run-a run-b --all --ceilings host-ceilings.json
  loadprint compare /var/log/sysstat/sa20 /var/log/sysstat/sa21
  loadprint compare runs/quick/latest --format csv -o table.csv
  loadprint compare run-a run-b --noise runs/aa/latest --equivalent 1
  loadprint compare run-a run-b --all --rows mine.toml
"""


def add_compare(subparsers: Any) -> None:
    """Register `compare`."""
    parser = options.command(
        subparsers, "compare", "compare sides with a reference, in one table of ratios", COMPARE_EXAMPLES
    )
    options.add_sides(parser, "SIDE")
    parser.add_argument(
        "--per-op",
        action="store_true",
        help="print only the costs: per operation, statement, commit, row and CPU-second",
    )
    parser.add_argument(
        "--view",
        choices=("sar", "usual"),
        help="sar: the 13 rows of the HammerDB blog's SAR table, in its order and with its definitions; "
        "usual: the rows of the report (default of other formats than text)",
    )
    parser.add_argument(
        "--all",
        action="store_true",
        help="print every row, also of sources that were not recorded (default: a selection), with --verbose",
    )
    parser.add_argument(
        "--verbose",
        action="store_true",
        help="print the reasons for trust, the facts, the warnings and the method of the intervals",
    )
    parser.add_argument(
        "--ceilings",
        type=Path,
        metavar="FILE",
        help="measured limits of the hosts (default: ceilings.json in the directory of the runs)",
    )
    parser.add_argument(
        "--noise",
        type=Path,
        metavar="EXECUTION",
        help="A/A execution: also mark a ratio with ~ if the sides of the A/A differ by as much",
    )
    parser.add_argument(
        "--equivalent",
        type=float,
        default=2.0,
        metavar="PERCENT",
        help="mark a ratio with = if its interval is within this of 1 (default: 2)",
    )
    options.add_rows(parser)
    options.add_output(parser, (*options.FORMATS, "html"))
    parser.set_defaults(run=run_compare)


def run_compare(arguments: argparse.Namespace) -> int:
    """Print a comparison."""
    from loadprint.catalogue.files import with_rows
    from loadprint.commands.operands import resolve
    from loadprint.comparison import noise_floor
    from loadprint.comparison.compare_sides import compare
    from loadprint.tables import views
    from loadprint.tables.ceilings import read

    if not 0 < arguments.equivalent < 100:
        raise InputError("--equivalent", "is not between 0 and 100", "use a percentage such as 1")
    sides, declared = resolve(arguments.sides)
    table = compare(
        sides,
        arguments.reference or declared,
        given_ceilings=read(arguments.ceilings).ceilings if arguments.ceilings else None,
        noise=noise_floor.measured(arguments.noise) if arguments.noise else None,
        equivalent=arguments.equivalent / 100,
        rows=with_rows(arguments.rows),
    )
    chosen = arguments.all or arguments.per_op or arguments.view or arguments.ceilings
    if arguments.format == "text" and not chosen:
        table = views.first(table, None if arguments.verbose else views.MAX_NOTES)
    else:
        table = views.shown(
            table, everything=arguments.all, only_costs=arguments.per_op, as_sar=arguments.view == "sar"
        )
    options.write(_rendered(table, arguments), arguments.output)
    return 0


def _rendered(table: Any, arguments: argparse.Namespace) -> str:
    from loadprint.rendering import render_csv, render_json, render_markdown, render_text

    if arguments.format == "text":
        terminal = arguments.output is None and sys.stdout.isatty()
        width = max(render_text.WIDTH, shutil.get_terminal_size().columns) if terminal else render_text.WIDTH
        reasons = arguments.verbose or arguments.all
        return render_text.render(table, width, colour=terminal, reasons=reasons)
    if arguments.format == "html":
        from loadprint.commands.report.page import table_page

        return table_page(table)
    renderer = {"markdown": render_markdown.render, "csv": render_csv.render, "json": render_json.render}[
        arguments.format
    ]
    return renderer(table)
