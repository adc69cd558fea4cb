"""Defines the command `stacks`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from loadprint import options

STACKS_EXAMPLES = """FORMAT:
  folded      a line per stack, for flamegraph.pl, inferno and speedscope
  pprof       gzip of a protocol buffer, for `go tool pprof`
  speedscope  JSON, for https://www.speedscope.app or its offline copy

examples:
  loadprint stacks runs/quick/latest/b1-oltp-r1 | flamegraph.pl > oltp.svg
  loadprint stacks RUN --format pprof -o cpu.pb.gz && go tool pprof -top cpu.pb.gz
  loadprint stacks RUN --format speedscope --role load -o load.speedscope.json
"""


def add_stacks(subparsers: Any) -> None:
    """Register `stacks`."""
    parser = options.command(
        subparsers,
        "stacks",
        "write the sampled stacks of a run's window for other tools",
        STACKS_EXAMPLES,
    )
    parser.add_argument("path", type=Path, metavar="RUN", help="run directory")
    parser.add_argument(
        "--role",
        default="server",
        metavar="NAME",
        help="processes whose stacks are written (default: server)",
    )
    options.add_output(parser, ("folded", "pprof", "speedscope"))
    parser.set_defaults(run=run_stacks)


def run_stacks(arguments: argparse.Namespace) -> int:
    """Write the stacks of one role."""
    from loadprint.commands.stacks import pprof, stack_text
    from loadprint.commands.stacks.role_stacks import read

    stacks = read(arguments.path, arguments.role)
    if arguments.format != "pprof":
        render = stack_text.folded if arguments.format == "folded" else stack_text.speedscope
        options.write(render(stacks), arguments.output)
    elif arguments.output is None and sys.stdout.isatty():
        arguments.parser.error("--format pprof is binary: give a file with -o")
    else:
        options.write_bytes(pprof.encoded(stacks), arguments.output)
    return 0
