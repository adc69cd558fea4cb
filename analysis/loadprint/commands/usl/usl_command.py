"""The command `usl`: its arguments, and what it prints and draws."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

from loadprint import options
from loadprint.errors import InputError

EXAMPLES = """FILE is a CSV file with a column of concurrency (threads, connections, clients, users, n, …) and
one or more of throughput; EXECUTION a campaign with a matrix over threads. Repeats are further lines.

examples:
  loadprint usl sweep.csv
  loadprint usl sweep.csv --concurrency sessions --column tps --predict 128,256,1000
  loadprint usl sweep.csv --at 5=4            the row that says 5 was measured at 4
  loadprint usl runs/lookup-scaling/latest --plot scaling_plot.svg
  loadprint usl sweep.csv --format json -o usl.json
"""


def add(subparsers: Any) -> None:
    """Register `usl`."""
    parser = options.command(
        subparsers,
        "usl",
        "how far throughput scales with concurrency: the Universal Scalability Law and its rivals",
        EXAMPLES,
    )
    parser.add_argument("source", type=Path, metavar="FILE|EXECUTION")
    parser.add_argument("--concurrency", metavar="NAME", help="the column that says the concurrency")
    parser.add_argument(
        "--column", action="append", default=[], metavar="NAME", help="only this column (may be repeated)"
    )
    parser.add_argument(
        "--at", action="append", default=[], metavar="N=M", help="what is told as N was measured at M"
    )
    parser.add_argument(
        "--predict", metavar="N,N,…", help="concurrencies to predict at (default: beyond the data, and 1000)"
    )
    parser.add_argument("--unbounded", action="store_true", help="let σ and κ be negative")
    parser.add_argument("--plot", type=Path, metavar="FILE.svg|png", help="draw points, curves and intervals")
    options.add_output(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Fit, print, draw. A law that does not hold is no failure."""
    from loadprint.commands.usl import points, usl_summary, usl_text

    predict = _numbers(arguments.predict)
    at = dict(_pair(said) for said in arguments.at)
    found = points.read(
        arguments.source, concurrency=arguments.concurrency, columns=tuple(arguments.column), at=at
    )
    report = usl_summary.tell(found, predict=predict, bounded=not arguments.unbounded)
    if arguments.plot is not None:
        from loadprint.commands.usl.panels import panels
        from loadprint.plotting import scaling_plot

        scaling_plot.write(panels(report), arguments.plot)
    options.write(usl_text.RENDERERS[arguments.format](report), arguments.output)
    return 0


def _numbers(said: str | None) -> tuple[float, ...]:
    return tuple(sorted({_concurrency("--predict", part) for part in said.split(",")})) if said else ()


def _pair(said: str) -> tuple[float, float]:
    n, _, truly = said.partition("=")
    return _concurrency(f"--at {said}", n), _concurrency(f"--at {said}", truly)


def _concurrency(option: str, said: str) -> float:
    try:
        value = float(said)
    except ValueError:
        value = math.nan
    if not 0 < value < 1e9:
        raise InputError(option, f"{said!r} is no concurrency", "write --predict 128,256,1000 or --at 5=4")
    return value
