"""Escapes text of a recording for Markdown, CSV and XML; the text is printable already."""

from __future__ import annotations

import re

# spreadsheets read a cell with such a first character as a formula (OWASP, "CSV Injection")
FORMULA = ("=", "+", "-", "@", "\t", "\r")
NUMBERS = re.compile(r"[-+]?[0-9.]+(e[-+]?[0-9]+)?( [-+]?[0-9.]+(e[-+]?[0-9]+)?)*", re.IGNORECASE)
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def markdown(text: str) -> str:
    """Text that Markdown shows unchanged, in a cell of a table too."""
    return re.sub(r"[\\|*~_<]", r"\\\g<0>", text).replace("](", "]\\(")


def inert(text: str) -> str:
    """Text that no spreadsheet computes: an apostrophe precedes it; a number is unchanged."""
    return f"'{text}" if text.startswith(FORMULA) and not NUMBERS.fullmatch(text) else text


def xml(text: str) -> str:
    """Text with U+FFFD in place of the characters that XML 1.0 does not allow."""
    return NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
