"""Text of a recording inside of Markdown, where some signs have a meaning."""

from __future__ import annotations


def markdown(said: str) -> str:
    """Text that Markdown shows as it is, in a cell of a table too."""
    for sign in ("|", "*", "~", "_"):
        said = said.replace(sign, f"\\{sign}")
    return said
