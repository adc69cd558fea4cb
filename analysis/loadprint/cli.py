"""The commands `compare` and `inspect`: their arguments, and what they print."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import Any

from loadprint import options

COMPARE_EXAMPLES = """SIDE is a run directory, EXECUTION:side, EXECUTION (all its sides), or a file of
sysstat: an sa file, or what `sadf -j FILE -- -A` printed.

examples:
  loadprint compare runs/quick/latest
  loadprint compare runs/quick/latest:oltp runs/quick/latest:insert --reference insert
  loadprint compare run-a run-b --per-op
  loadprint compare run-a run-b --all --ceilings host-ceilings.json
  loadprint compare /var/log/sysstat/sa20 /var/log/sysstat/sa21
  loadprint compare runs/quick/latest --format csv -o table.csv
  loadprint compare run-a run-b --noise runs/aa/latest
"""
SWEEP_EXAMPLES = """examples:
  loadprint sweep runs/insert-scaling/latest
  loadprint sweep runs/lookup-scaling/latest --base text-t1 --format markdown -o sweep.md
  loadprint sweep runs/versions/EXECUTION runs/versions/latest      one campaign on two servers: a crossover?
"""
SHAPE_EXAMPLES = """examples:
  loadprint shape runs/insert-scaling/latest
"""
INSPECT_EXAMPLES = """examples:
  loadprint inspect runs/quick/latest/b1-oltp-r1
  loadprint inspect RUN --format json
"""


def add_compare(subparsers: Any) -> None:
    """Register `compare`."""
    parser = options.command(
        subparsers, "compare", "lay sides beside a reference, with ratios", COMPARE_EXAMPLES
    )
    options.add_sides(parser, "SIDE")
    parser.add_argument("--per-op", action="store_true", help="only the costs per operation")
    parser.add_argument(
        "--all", action="store_true", help="every row that any side has inputs for, not only the usual ones"
    )
    parser.add_argument(
        "--ceilings",
        type=Path,
        metavar="FILE",
        help="what the hosts can do at most (default: ceilings.json beside the runs)",
    )
    parser.add_argument(
        "--noise",
        type=Path,
        metavar="EXECUTION",
        help="an A/A: ratios no larger than those between its sides are marked ~",
    )
    options.add_output(parser, (*options.FORMATS, "html"))
    parser.set_defaults(run=run_compare)


def add_inspect(subparsers: Any) -> None:
    """Register `inspect`."""
    parser = options.command(
        subparsers, "inspect", "what a run directory holds, missed and cost", INSPECT_EXAMPLES
    )
    parser.add_argument("path", type=Path, metavar="RUN")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.set_defaults(run=run_inspect)


def add_sweep(subparsers: Any) -> None:
    """Register `sweep`."""
    parser = _report_parser(
        subparsers, "sweep", "pivot tables of a campaign with a matrix, or of mode equal-load", SWEEP_EXAMPLES
    )
    parser.add_argument(
        "others", nargs="*", type=Path, metavar="EXECUTION", help="the same campaign on other servers"
    )
    parser.add_argument("--base", metavar="SIDE", help="the cell that throughput is related to")
    parser.set_defaults(run=run_sweep)


def add_shape(subparsers: Any) -> None:
    """Register `shape`."""
    parser = _report_parser(
        subparsers, "shape", "an insert-scaling campaign against the published table", SHAPE_EXAMPLES
    )
    parser.set_defaults(run=run_shape)


def _report_parser(subparsers: Any, name: str, told: str, examples: str) -> argparse.ArgumentParser:
    parser = options.command(subparsers, name, told, examples)
    parser.add_argument("execution", type=Path, metavar="EXECUTION")
    options.add_output(parser)
    return parser


def run_sweep(arguments: argparse.Namespace) -> int:
    """Print an execution as pivot tables."""
    from loadprint.rendering.render_pivot import RENDERERS  # noqa: PLC0415  DuckDB
    from loadprint.sweeping.sweep import sweep  # noqa: PLC0415

    report = sweep(arguments.execution, arguments.base, *arguments.others)
    options.write(RENDERERS[arguments.format](report), arguments.output)
    return 0


def run_shape(arguments: argparse.Namespace) -> int:
    """Print how an execution agrees with the published table; disagreement is no failure."""
    from loadprint.rendering.render_pivot import RENDERERS  # noqa: PLC0415  DuckDB
    from loadprint.sweeping.shape import shape  # noqa: PLC0415

    options.write(RENDERERS[arguments.format](shape(arguments.execution)), arguments.output)
    return 0


def run_compare(arguments: argparse.Namespace) -> int:
    """Print a comparison."""
    from loadprint.reading.sides import resolve  # noqa: PLC0415
    from loadprint.tables import views  # noqa: PLC0415  DuckDB, which `--help` need not load
    from loadprint.tables.ceilings import read  # noqa: PLC0415
    from loadprint.tables.compare import compare  # noqa: PLC0415  --help and other commands need not load DuckDB

    sides, declared = resolve(arguments.sides)
    names = [side.name for side in sides]
    reference = arguments.reference or (declared if declared in names else None)
    table = compare(sides, reference, ceilings=read(arguments.ceilings) if arguments.ceilings else None)
    if arguments.noise is not None:
        from loadprint.tables import floor  # noqa: PLC0415  few ask for it

        table = floor.applied(table, floor.measured(arguments.noise))
    table = views.shown(table, everything=arguments.all, only_costs=arguments.per_op)
    options.write(_rendered(table, arguments), arguments.output)
    return 0


def _rendered(table: Any, arguments: argparse.Namespace) -> str:
    from loadprint.rendering import render_csv, render_json, render_markdown, render_text  # noqa: PLC0415  as in run_compare

    if arguments.format == "text":
        terminal = arguments.output is None and sys.stdout.isatty()
        width = max(render_text.WIDTH, shutil.get_terminal_size().columns) if terminal else render_text.WIDTH
        return render_text.render(table, width, colour=terminal)
    if arguments.format == "html":
        from loadprint.report.page import table_page  # noqa: PLC0415  nobody else needs Jinja

        return table_page(table)
    renderer = {"markdown": render_markdown.render, "csv": render_csv.render, "json": render_json.render}[
        arguments.format
    ]
    return renderer(table)


def run_inspect(arguments: argparse.Namespace) -> int:
    """Print what is in a run directory."""
    from loadprint import inspect  # noqa: PLC0415  DuckDB
    from loadprint.rendering import render_inspect  # noqa: PLC0415  DuckDB

    report = inspect.inspect(arguments.path)
    if arguments.format == "json":
        options.write(json.dumps(inspect.as_object(report), indent=1, ensure_ascii=False) + "\n", None)
    else:
        options.write(render_inspect.render(report), None)
    return 0
