"""Defines the command `inspect`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from loadprint import options

INSPECT_EXAMPLES = """examples:
  loadprint inspect runs/quick/latest/b1-oltp-r1
  loadprint inspect RUN --format json
"""


def add_inspect(subparsers: Any) -> None:
    """Register `inspect`."""
    parser = options.command(
        subparsers,
        "inspect",
        "report the contents of a run directory, missed ticks, and the recorder's cost",
        INSPECT_EXAMPLES,
    )
    parser.add_argument("path", type=Path, metavar="RUN", help="run directory")
    options.add_format(parser, ("text", "json"))
    parser.set_defaults(run=run_inspect)


def run_inspect(arguments: argparse.Namespace) -> int:
    """Print the report of a run directory."""
    from loadprint.commands.inspect import inspect_run, inspect_text
    from loadprint.rendering.printout import as_json

    report = inspect_run.inspect(arguments.path)
    options.write(as_json(report) if arguments.format == "json" else inspect_text.render(report), None)
    return 0
