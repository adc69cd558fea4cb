"""Defines the command `show`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from loadprint import options

SHOW_EXAMPLES = """A part of the measure phase is given in seconds from its start.

examples:
  loadprint show runs/quick/latest/b1-oltp-r1
  loadprint show RUN --from 10 --to 40
  loadprint show RUN --all --format csv -o run.csv
"""


def add_show(subparsers: Any) -> None:
    """Register `show`."""
    summary = "print one run: means, p95 and maximum over time, and per CPU-second of the server"
    parser = options.command(subparsers, "show", summary, SHOW_EXAMPLES)
    parser.add_argument("path", type=Path, metavar="RUN", help="run directory")
    parser.add_argument("--from", dest="begin", type=float, metavar="S", help="start of a part (default: 0)")
    parser.add_argument(
        "--to", dest="end", type=float, metavar="S", help="its end (default: that of the measure phase)"
    )
    parser.add_argument("--all", action="store_true", help="also print rows that are seldom needed, or 0")
    options.add_rows(parser)
    options.add_output(parser)
    parser.set_defaults(run=run_show)


def run_show(arguments: argparse.Namespace) -> int:
    """Print the table of a run."""
    from loadprint.catalogue.files import with_rows
    from loadprint.commands.show.show_run import report
    from loadprint.rendering.pivot import RENDERERS

    shown = report(
        arguments.path,
        arguments.begin,
        arguments.end,
        everything=arguments.all,
        rows=with_rows(arguments.rows),
    )
    options.write(RENDERERS[arguments.format](shown), arguments.output)
    return 0
