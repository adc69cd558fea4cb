"""Makes text from files safe to print: no terminal escapes, bidirectional overrides or lone surrogates.

Text is cleaned where it is read, and in error messages. Renderers escape only the syntax of their format.
"""

from __future__ import annotations

import re

BLANKS = re.compile("[\t\n\v\f\r\x85\u2028\u2029]")
# C0 and C1 controls (ANSI and OSC sequences start with one), bidirectional controls (Trojan Source,
# CVE-2021-42574), surrogates (not valid in UTF-8), and U+FFFE and U+FFFF (not valid in XML 1.0)
UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def printable(text: str) -> str:
    """Text on one line: tabs and line breaks become blanks, other unsafe characters U+FFFD."""
    if UNSAFE.search(text) is None:
        return text
    return UNSAFE.sub(REPLACEMENT, BLANKS.sub(" ", text))
