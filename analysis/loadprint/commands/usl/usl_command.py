"""The command `usl`: its arguments and its output."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

from loadprint import options
from loadprint.errors import InputError

EXAMPLES = """FILE is a CSV file with a column of concurrency (threads, connections, clients, users, n, …) and
one or more columns of throughput, in any unit. Repeats are further lines with the same concurrency.
EXECUTION is an execution of a campaign with a matrix over threads.

examples:
  loadprint usl sweep.csv
  loadprint usl sweep.csv --concurrency sessions --column tps --predict 128,256,1000
  loadprint usl sweep.csv --at 5=4            the row labelled 5 was measured at 4
  loadprint usl runs/lookup-scaling/latest --plot scaling.svg
  loadprint usl sweep.csv --format json -o usl.json
"""


def add(subparsers: Any) -> None:
    """Register `usl`."""
    parser = options.command(
        subparsers,
        "usl",
        "fit throughput by concurrency: Universal Scalability Law, Amdahl's law, saturation",
        EXAMPLES,
    )
    parser.add_argument("source", type=Path, metavar="FILE|EXECUTION")
    parser.add_argument(
        "--concurrency", metavar="NAME", help="column of the concurrency (default: by its name)"
    )
    parser.add_argument(
        "--column",
        action="append",
        default=[],
        metavar="NAME",
        help="fit only this column (repeatable; default: every throughput)",
    )
    parser.add_argument(
        "--at",
        action="append",
        default=[],
        metavar="N=M",
        help="read concurrency N of the file as M, where a label is wrong (repeatable)",
    )
    parser.add_argument(
        "--predict", metavar="N,N,…", help="predict at these (default: 2, 4, 8 × the largest, and 1000)"
    )
    parser.add_argument("--unbounded", action="store_true", help="allow negative σ and κ")
    parser.add_argument("--plot", type=Path, metavar="FILE.svg|png", help="draw points, curves and intervals")
    options.add_output(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Fit, print, draw. A poor fit is not a failure."""
    from loadprint.commands.usl import points, usl_cells, usl_summary, usl_text

    predict = _numbers(arguments.predict)
    at = dict(_pair(text) for text in arguments.at)
    measured = points.read(
        arguments.source, concurrency=arguments.concurrency, columns=tuple(arguments.column), at=at
    )
    report = usl_summary.summarise(measured, predict=predict, bounded=not arguments.unbounded)
    if arguments.plot is not None:
        from loadprint.plotting import scaling_plot

        fitted = [
            (column.fit, column.name, report.concurrency, column.unit)
            for column in report.columns
            if column.fit
        ]
        scaling_plot.write([usl_cells.panel(*fit) for fit in fitted], arguments.plot)
    options.write(usl_text.RENDERERS[arguments.format](report), arguments.output)
    return 0


def _numbers(text: str | None) -> tuple[float, ...]:
    return tuple(sorted({_concurrency("--predict", part) for part in text.split(",")})) if text else ()


def _pair(text: str) -> tuple[float, float]:
    labelled, _, measured = text.partition("=")
    return _concurrency(f"--at {text}", labelled), _concurrency(f"--at {text}", measured)


def _concurrency(option: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < 1e9:
        raise InputError(option, f"{text!r} is not a concurrency", "write --predict 128,256,1000 or --at 5=4")
    return value
