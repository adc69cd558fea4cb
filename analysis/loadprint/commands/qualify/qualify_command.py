"""Defines the command `qualify`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from loadprint import options
from loadprint.errors import InputError

EXAMPLES = """BASELINE and CANDIDATE are executions, EXECUTION:side, run directories, a directory of
executions, or a quoted glob. For several hosts per side, use --baseline and --candidate; with
three or more instances per side, the type of instance is judged.

exit status: 0 pass, 1 fail, 2 undecided or unusable input. The last line has the verdict and
its reason.

examples:
  loadprint qualify runs/quick/latest new-host/runs/quick/latest
  loadprint qualify old/latest:oltp new/latest:oltp --spec spec.yml --junit qualify.xml
  loadprint qualify --baseline db1/latest db2/latest db3/latest --candidate 'new*/latest'
  loadprint qualify --print-spec > spec.yml
"""


def add(subparsers: Any) -> None:
    """Register `qualify`."""
    parser = options.command(
        subparsers,
        "qualify",
        "test whether a new instance is as good as the old one: pass, fail or undecided",
        EXAMPLES,
    )
    parser.add_argument("words", nargs="*", metavar="BASELINE CANDIDATE", help="the two sides to compare")
    parser.add_argument("--baseline", nargs="+", default=[], metavar="E", help="executions of the baseline")
    parser.add_argument("--candidate", nargs="+", default=[], metavar="E", help="executions of the candidate")
    parser.add_argument(
        "--spec",
        type=Path,
        metavar="FILE",
        help="rows, tolerances, price (default: see --print-spec)",
    )
    parser.add_argument("--print-spec", action="store_true", help="print the built-in specification")
    parser.add_argument(
        "--junit", type=Path, metavar="FILE", help="also write JUnit XML, with a case for each row"
    )
    options.add_output(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print a qualification. Returns the exit status of its verdict."""
    from loadprint.commands.qualify import spec as specification

    if arguments.print_spec:
        options.write(specification.default_text(), arguments.output)
        return 0
    spec = specification.load(arguments.spec)
    baseline, candidate = _parties(arguments, spec)

    from loadprint.commands.qualify import junit, qualify_text
    from loadprint.commands.qualify.qualification import qualify

    report = qualify(baseline, candidate, spec)
    if arguments.junit:
        options.write(junit.render(report), arguments.junit)
    options.write(qualify_text.RENDERERS[arguments.format](report), arguments.output)
    return report.status


def _parties(arguments: argparse.Namespace, spec: Any) -> tuple[list[str], list[str]]:
    """Return both parties' operands: positional arguments, else options, else the specification."""
    words = arguments.words
    if words and (arguments.baseline or arguments.candidate or len(words) != 2):
        raise InputError(
            " ".join(words),
            f"{len(words)} argument{'s' if len(words) > 1 else ''} given, BASELINE and CANDIDATE needed",
            "give BASELINE CANDIDATE, or --baseline E… --candidate E…",
        )
    if words:
        return words[:1], words[1:]
    baseline, candidate = arguments.baseline or spec.baseline, arguments.candidate or spec.candidate
    if not baseline or not candidate:
        missing = "baseline" if not baseline else "candidate"
        raise InputError("loadprint qualify", f"no {missing} given", "give BASELINE CANDIDATE")
    return list(baseline), list(candidate)
