"""Registers commands, adds their common options, and writes their output."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from loadprint.errors import InputError

FORMATS = ("text", "markdown", "csv", "json")


def command(
    subparsers: Any, name: str, summary: str, examples: str, description: str | None = None
) -> argparse.ArgumentParser:
    """Parser of a command: `summary` is its line in the list of commands, `examples` the end of its help."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        name,
        help=summary,
        description=description,
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return parser


def add_output(parser: argparse.ArgumentParser, formats: Sequence[str] = FORMATS) -> None:
    """Add `--format`, by default the first one, and `-o FILE`."""
    parser.add_argument("--format", choices=formats, default=formats[0])
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write to FILE instead of stdout")


def add_sides(parser: argparse.ArgumentParser, metavar: str) -> None:
    """Add the compared sides and `--reference`."""
    parser.add_argument("sides", nargs="+", metavar=metavar)
    parser.add_argument(
        "--reference",
        metavar="NAME",
        help="side that ratios are relative to (default: the campaign's reference, else the first side)",
    )


def write(text: str, output: Path | None) -> None:
    """Print, or write to a file; bytes of a path that are not UTF-8 become `?`. Raises InputError."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    if output is None:
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(
            output, error.strerror or "cannot be written", "give another file with -o"
        ) from error
