"""`import table`: a table printed in a publication; it is judged and makes no run directory."""

from __future__ import annotations

import argparse
from pathlib import Path

from loadprint import options

EXAMPLES = """The columns are section (may be left out), metric (or whatever the first column is called), one
for each side, and printed_ratio (may be left out). A number that holds commas stands in quotes.

examples:
  loadprint import table sar-of-a-blog.csv
  loadprint import table versions.csv --reference mysql_8_0_27
  loadprint import table sar-of-a-blog.csv --format markdown -o judged.md
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this kind."""
    parser.add_argument("path", type=Path, metavar="FILE.csv")
    parser.add_argument(
        "--reference",
        metavar="SIDE",
        help="the side that ratios are taken to (default: that of the printed ratios, else the first)",
    )
    options.add_output(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the table; a ratio that does not agree is a finding, no failure."""
    from loadprint.importing.printed_table import read
    from loadprint.importing.printed_text import RENDERERS

    table = read(arguments.path, arguments.reference)
    options.write(RENDERERS[arguments.format](table), arguments.output)
    return 0
