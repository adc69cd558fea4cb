"""Escapes text of a recording for Markdown and CSV; the text is printable already."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from io import StringIO

# spreadsheets read a cell with such a first character as a formula (OWASP, "CSV Injection")
FORMULA = ("=", "+", "-", "@", "\t", "\r")
NUMBERS = re.compile(r"[-+]?[0-9.]+(e[-+]?[0-9]+)?( [-+]?[0-9.]+(e[-+]?[0-9]+)?)*", re.IGNORECASE)


def markdown(text: str) -> str:
    """Text that Markdown shows unchanged, in a cell of a table too."""
    return re.sub(r"[\\|*~_<]", r"\\\g<0>", text).replace("](", "]\\(")


class CsvWriter:
    """Writes rows as in RFC 4180; an apostrophe precedes a text that a spreadsheet would compute."""

    def __init__(self, out: StringIO) -> None:
        self._writer = csv.writer(out, lineterminator="\n")

    def writerow(self, cells: Iterable[object]) -> None:
        """Write one row; numbers, also as text, are written unchanged."""
        self._writer.writerow([_inert(cell) if isinstance(cell, str) else cell for cell in cells])


def _inert(text: str) -> str:
    return f"'{text}" if text.startswith(FORMULA) and not NUMBERS.fullmatch(text) else text
