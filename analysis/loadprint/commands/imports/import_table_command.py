"""Defines `import table`, which checks the ratios of a printed table."""

from __future__ import annotations

import argparse
from pathlib import Path

from loadprint import options

EXAMPLES = """Columns of the CSV file: section (optional), metric (any name), one column for each side, and
printed_ratio (optional). Quote numbers that contain commas.

examples:
  loadprint import table sar-of-a-blog.csv
  loadprint import table versions.csv --reference mysql_8_0_27
  loadprint import table sar-of-a-blog.csv --format markdown -o judged.md
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `import table`."""
    parser.add_argument("path", type=Path, metavar="FILE.csv", help="the table")
    parser.add_argument(
        "--reference",
        metavar="SIDE",
        help="side that every ratio is relative to (default: that of the printed ratios, else the first)",
    )
    options.add_output(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the table and return 0, even if a printed ratio does not agree: that is a finding."""
    from loadprint.importing.printed_table import read
    from loadprint.importing.printed_text import RENDERERS

    table = read(arguments.path, arguments.reference)
    options.write(RENDERERS[arguments.format](table), arguments.output)
    return 0
