"""The commands `sweep` and `shape`: their arguments and their output."""

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
SHAPE_EXAMPLES = """examples:
  loadprint shape runs/insert-scaling/latest
"""


def add_sweep(subparsers: Any) -> None:
    """Register `sweep`."""
    parser = _report_parser(
        subparsers, "sweep", "pivot tables of a campaign with a matrix, or of mode equal-load", SWEEP_EXAMPLES
    )
    parser.add_argument(
        "others", nargs="*", type=Path, metavar="EXECUTION", help="the same campaign on other servers"
    )
    parser.add_argument(
        "--base",
        metavar="SIDE",
        help="the cell that relative throughput refers to (default: the campaign's reference)",
    )
    parser.set_defaults(run=run_sweep)


def add_shape(subparsers: Any) -> None:
    """Register `shape`."""
    parser = _report_parser(
        subparsers, "shape", "compare an insert-scaling execution with the published table", SHAPE_EXAMPLES
    )
    parser.set_defaults(run=run_shape)


def _report_parser(subparsers: Any, name: str, summary: str, examples: str) -> argparse.ArgumentParser:
    parser = options.command(subparsers, name, summary, examples)
    parser.add_argument("execution", type=Path, metavar="EXECUTION", help="directory of an execution")
    options.add_output(parser)
    return parser


def run_sweep(arguments: argparse.Namespace) -> int:
    """Print an execution as pivot tables."""
    from loadprint.commands.sweep.sweep_pivots import sweep
    from loadprint.rendering.render_pivot import RENDERERS

    report = sweep(arguments.execution, arguments.base, *arguments.others)
    options.write(RENDERERS[arguments.format](report), arguments.output)
    return 0


def run_shape(arguments: argparse.Namespace) -> int:
    """Print how an execution agrees with the published table; disagreement is not a failure."""
    from loadprint.commands.sweep.published_shape import shape
    from loadprint.rendering.render_pivot import RENDERERS

    options.write(RENDERERS[arguments.format](shape(arguments.execution)), arguments.output)
    return 0
