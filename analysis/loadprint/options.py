"""Registers commands and their common options, and writes their output."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from loadprint.errors import as_input_error
from loadprint.safe_files import write_output

FORMATS = ("text", "markdown", "csv", "json")


def command(
    subparsers: Any, name: str, summary: str, examples: str, description: str | None = None
) -> argparse.ArgumentParser:
    """Add the parser of a command.

    `summary` is its line in the list of commands. Its help starts with `description` (default: the
    summary) and ends with `examples`, both printed as written.
    """
    parser: argparse.ArgumentParser = subparsers.add_parser(
        name,
        help=summary,
        description=description or f"{summary[0].upper()}{summary[1:]}.",
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(parser=parser)
    return parser


def add_format(parser: argparse.ArgumentParser, formats: Sequence[str]) -> None:
    """Add `--format`, whose default is the first format."""
    parser.add_argument(
        "--format", choices=formats, default=formats[0], help="output format (default: %(default)s)"
    )


def add_output(parser: argparse.ArgumentParser, formats: Sequence[str] = FORMATS) -> None:
    """Add `--format` and `-o FILE`."""
    add_format(parser, formats)
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="write to FILE (default: standard output)"
    )


def add_sides(parser: argparse.ArgumentParser, metavar: str) -> None:
    """Add the sides to compare, and `--reference`."""
    parser.add_argument(
        "sides", nargs="+", metavar=metavar, help="run directory, EXECUTION:side, EXECUTION, or sa file"
    )
    parser.add_argument(
        "--reference",
        metavar="NAME",
        help="side that every ratio is relative to (default: the campaign's reference, else the first side)",
    )


def add_collector(parser: argparse.ArgumentParser) -> None:
    """Add the program loadprint-collect."""
    help_text = "the program loadprint-collect (default: this checkout's, else on the PATH)"
    parser.add_argument("--collector", type=Path, metavar="PATH", help=help_text)


def add_rows(parser: argparse.ArgumentParser) -> None:
    """Add the file of a user's own rows."""
    help_text = "own rows, and patterns of scraped metrics (docs/rows.md describes the form)"
    parser.add_argument("--rows", type=Path, metavar="FILE", help=help_text)


def write(text: str, output: Path | None) -> None:
    """Print `text`, or write it to the file `output`. Raises InputError if the write fails.

    A path may contain bytes that are not UTF-8: each of them is printed as `?`.
    """
    text = text.encode("utf-8", "replace").decode("utf-8")
    if output is None:
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        write_bytes(text.encode(), output)


def write_bytes(content: bytes, output: Path | None) -> None:
    """Print bytes, or write them to the file `output`. Raises InputError if the write fails."""
    if output is None:
        sys.stdout.buffer.write(content)
        sys.stdout.flush()
        return
    with as_input_error(output, "name another file"):
        write_output(output, content)
