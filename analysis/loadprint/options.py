"""What the commands have in common: how one is registered, its usual options, and how its text is written."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from loadprint.errors import InputError

FORMATS = ("text", "markdown", "csv", "json")


def command(
    subparsers: Any, name: str, told: str, examples: str, description: str | None = None
) -> argparse.ArgumentParser:
    """Parser of a command: `told` is its line in the list of commands; `examples` end its help unwrapped."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        name,
        help=told,
        description=description,
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return parser


def add_output(parser: argparse.ArgumentParser, formats: Sequence[str] = FORMATS) -> None:
    """Add `--format`, the first one being the default, and `-o FILE`."""
    parser.add_argument("--format", choices=formats, default=formats[0])
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="write to a file instead of the terminal"
    )


def add_sides(parser: argparse.ArgumentParser, metavar: str) -> None:
    """Add the sides that are compared, and `--reference`."""
    parser.add_argument("sides", nargs="+", metavar=metavar)
    parser.add_argument(
        "--reference",
        metavar="NAME",
        help="the side ratios are taken to (default: the campaign's, else the first)",
    )


def write(text: str, output: Path | None) -> None:
    """Print, or write to a file. Raises InputError where it cannot be written.

    A path that is no UTF-8 is shown with `?` for each byte that is none.
    """
    text = text.encode("utf-8", "replace").decode("utf-8")
    if output is None:
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(
            output, error.strerror or "cannot be written", "name another file after -o"
        ) from error
