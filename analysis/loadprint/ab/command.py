"""The command `loadprint ab`: plan, run, show, revert."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from loadprint.errors import InputError

EXAMPLES = """examples:
  loadprint ab show tests/published/dynimize_sample.csv     quantity,without,with as a script printed them
"""
FORMATS = ("text", "markdown", "csv", "json")


def add(subparsers: Any) -> None:
    """Register `ab` and its verbs."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "ab",
        help="A/B on a live server: flip a change on and off, and say what it did",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    show = verbs.add_parser("show", help="what an experiment found, worked out again from its recording")
    show.add_argument("path", type=Path, metavar="RUN|FILE.csv")
    _output(show)
    show.set_defaults(run=run_show)


def _output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=FORMATS, default="text")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="write to a file instead of the terminal"
    )


def run_show(arguments: argparse.Namespace) -> int:
    """Print an experiment's figures."""
    from loadprint.ab import published, render  # noqa: PLC0415  registering imports nothing heavy

    if arguments.path.is_file():
        result = published.read(arguments.path)
    else:
        raise InputError(arguments.path, "no such table", "give a CSV file")
    write(render.RENDERERS[arguments.format](result), arguments.output)
    return 0


def write(text: str, output: Path | None) -> None:
    """Write to a file, or to the terminal. Raises InputError where the file cannot be written."""
    if output is None:
        sys.stdout.write(text)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(
            output, error.strerror or "cannot be written", "name another file after -o"
        ) from error
