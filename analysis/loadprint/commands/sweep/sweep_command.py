"""The command `sweep`: its arguments and its output."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from loadprint import options

SWEEP_EXAMPLES = """examples:
  loadprint sweep runs/insert-scaling/latest
  loadprint sweep runs/lookup-scaling/latest --base text-t1 --format markdown -o sweep.md
  loadprint sweep runs/versions/EXECUTION runs/versions/latest      one campaign on two servers
"""


def add_sweep(subparsers: Any) -> None:
    """Register `sweep`."""
    parser = options.command(
        subparsers, "sweep", "pivot tables of a campaign with a matrix, or of mode equal-load", SWEEP_EXAMPLES
    )
    parser.add_argument("execution", type=Path, metavar="EXECUTION", help="directory of an execution")
    options.add_output(parser)
    parser.add_argument(
        "others", nargs="*", type=Path, metavar="EXECUTION", help="the same campaign on other servers"
    )
    parser.add_argument(
        "--base",
        metavar="SIDE",
        help="the cell that relative throughput refers to (default: the campaign's reference)",
    )
    parser.set_defaults(run=run_sweep)


def run_sweep(arguments: argparse.Namespace) -> int:
    """Print an execution as pivot tables."""
    from loadprint.commands.sweep.sweep_pivots import sweep
    from loadprint.rendering.pivot import RENDERERS

    report = sweep(arguments.execution, arguments.base, *arguments.others)
    options.write(RENDERERS[arguments.format](report), arguments.output)
    return 0
