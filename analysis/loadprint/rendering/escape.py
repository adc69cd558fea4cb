"""Text of a recording inside of formats in which some signs have a meaning; it is printable already."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from io import StringIO

# spreadsheets take a cell that begins so for a formula (OWASP, "CSV Injection")
FORMULA = ("=", "+", "-", "@", "\t", "\r")
NUMBERS = re.compile(r"[-+]?[0-9.]+(e[-+]?[0-9]+)?( [-+]?[0-9.]+(e[-+]?[0-9]+)?)*", re.IGNORECASE)


def markdown(said: str) -> str:
    """Text that Markdown shows as it is, in a cell of a table too."""
    for sign in ("\\", "|", "*", "~", "_", "<"):
        said = said.replace(sign, f"\\{sign}")
    return said.replace("](", "]\\(")


class CsvWriter:
    """Writes rows as RFC 4180 has them; a text that a spreadsheet would compute begins with an apostrophe."""

    def __init__(self, out: StringIO) -> None:
        self._writer = csv.writer(out, lineterminator="\n")

    def writerow(self, cells: Iterable[object]) -> None:
        """Write one row; numbers, in text too, stay numbers."""
        self._writer.writerow([_inert(cell) if isinstance(cell, str) else cell for cell in cells])


def _inert(text: str) -> str:
    return f"'{text}" if text.startswith(FORMULA) and not NUMBERS.fullmatch(text) else text
