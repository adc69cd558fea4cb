"""The command `report`: its arguments and its output."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from loadprint import options
from loadprint.printable import printable

EXAMPLES = """SIDE is an EXECUTION (all its sides), EXECUTION:side, a run directory, or a file of sysstat, as
of `compare`. A page of one side has no ratios. The page is one file and needs no network.

examples:
  loadprint report runs/quick/latest -o report.html
  loadprint report runs/quick/latest/b1-oltp-r1 -o run.html
  loadprint report runs/quick/latest:oltp runs/quick/latest:insert --reference insert -o both.html
  loadprint report runs/insert-scaling/latest -o scaling.html
  loadprint report runs/ab/dirty-1 -o ab.html
  loadprint report runs/quick/latest --plots figures
"""


def add_report(subparsers: Any) -> None:
    """Register `report`."""
    parser = options.command(subparsers, "report", "write a comparison or a run as one HTML page", EXAMPLES)
    options.add_sides(parser, "EXECUTION|SIDE")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        default=Path("report.html"),
        help="the page (default: report.html)",
    )
    options.add_rows(parser)
    parser.add_argument("--plots", type=Path, metavar="DIR", help="also write its figures as SVG and PNG")
    parser.set_defaults(run=run_report)


def run_report(arguments: argparse.Namespace) -> int:
    """Write the page and print its path."""
    from loadprint.catalogue.files import with_rows
    from loadprint.commands.operands import resolve
    from loadprint.commands.report.collect import collect
    from loadprint.commands.report.page import page
    from loadprint.commands.report.sweep_and_ab import (
        collect_experiment,
        collect_sweep,
        is_experiment,
        is_sweep,
    )

    rows = with_rows(arguments.rows)
    if is_experiment(arguments.sides):
        report = collect_experiment(Path(arguments.sides[0]), rows)
    elif is_sweep(arguments.sides):
        report = collect_sweep(Path(arguments.sides[0]), rows, arguments.reference)
    else:
        sides, declared = resolve(arguments.sides, minimum=1)
        report = collect(sides, arguments.reference or declared, rows)
    text = page(report)
    options.write(text, arguments.output)
    print(f"{printable(str(arguments.output))}: {len(text.encode()) / 1e6:.2f} MB", file=sys.stderr)
    if arguments.plots is not None:
        from loadprint.plotting.report_plot import write

        print(
            f"{printable(str(arguments.plots))}: {len(write(report, arguments.plots))} files", file=sys.stderr
        )
    return 0
