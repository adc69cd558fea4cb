"""What commands print, as plain values, with one renderer for each format."""

from __future__ import annotations

import csv
import io
import json
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from rich.cells import cell_len

from loadprint.rendering import escape

WIDTH = 100
LABEL = 10  # characters of a label, with the blanks that follow it
Printed = TypeVar("Printed")
Facts = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Block:
    """A table of texts: the first `left` columns are text, the others numbers; notes are printed below it.

    Without heads, the rows are facts, (label, text) each, and the notes are points.
    """

    title: str = ""
    heads: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    notes: tuple[str, ...] = ()
    left: int = 1


@dataclass(frozen=True)
class Printout:
    """All that a command prints for people, in this order."""

    title: str
    facts: Facts
    warnings: Sequence[str]
    blocks: Sequence[Block]
    sentences: Sequence[str] = ()

    @property
    def labelled(self) -> Facts:
        """Facts and warnings."""
        return [*self.facts, *(("warning", text) for text in self.warnings)]


def text(printout: Printout) -> str:
    """For a terminal, in at most 100 columns if the tables allow it."""
    parts = [[printout.title] if printout.title else [], labelled(printout.labelled)]
    parts += map(lines_of, printout.blocks)
    parts.append([line for sentence in printout.sentences for line in wrapped(sentence)])
    return "\n\n".join("\n".join(map(str.rstrip, part)) for part in parts if part) + "\n"


def lines_of(block: Block) -> list[str]:
    """The block as text."""
    if not block.heads:
        title = [block.title, "=" * len(block.title)] if block.title else []
        return [*title, *labelled(block.rows), *(line for note in block.notes for line in wrapped(note))]
    indent = "  " if block.title else ""
    lines = [block.title] if block.title else []
    lines += (indent + line for line in grid((block.heads, *block.rows), block.left))
    return [*lines, *(line for note in block.notes for line in wrapped(note, "  ", "    "))]


def labelled(facts: Iterable[Sequence[str]], least: int = LABEL) -> list[str]:
    """A line for each fact, or several, with its text to the right of its label."""
    rows = list(facts)
    longest = max((len(label) for label, _ in rows), default=0)
    width = least if longest < least else longest + 2
    wanted = ((f"{label:<{width}}", text) for label, text in rows)
    return [line for label, text in wanted for line in wrapped(text, label, " " * width) or [label]]


def wrapped(text: str, first: str = "", rest: str = "  ") -> list[str]:
    """Lines of at most 100 columns, broken between words, but not between a number and its `%`."""
    wrapper = textwrap.TextWrapper(WIDTH, first, rest, break_long_words=False, break_on_hyphens=False)
    lines = wrapper.wrap(text.replace(" %", "\N{NO-BREAK SPACE}%"))
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines]


def reasons(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Lines of (name, reason) pairs: the names that have a reason, and the reason."""
    names: dict[str, list[str]] = {}
    for name, reason in pairs:
        names.setdefault(reason, []).append(name)
    texts = (f"{', '.join(of_reason)}: {reason}" for reason, of_reason in names.items())
    return [line for text in texts for line in wrapped(text, "  ", "    ")]


def grid(rows: Sequence[Sequence[str]], left: int, gap: str = "  ") -> list[str]:
    """Columns as wide as their widest cell, the first `left` of them left-aligned."""
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        blanks = [" " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True)]
        cells = enumerate(zip(row, blanks, strict=True))
        lines.append(
            gap.join(cell + blank if place < left else blank + cell for place, (cell, blank) in cells)
        )
    return lines


def markdown(printout: Printout) -> str:
    """As Markdown; tables are a level deeper if the first block is none."""
    parts = [[f"# {escape.markdown(printout.title)}"] if printout.title else []]
    parts.append(list(_points(printout.labelled)))
    tables = "###" if printout.blocks and not printout.blocks[0].heads else "##"
    for block in printout.blocks:
        level = tables if block.heads else "##"
        parts.append([f"{level} {escape.markdown(block.title)}"] if block.title else [])
        if block.heads:
            parts += [pipes(block.heads, block.rows, block.left), _paragraphs(block.notes)]
        else:
            parts.append([*_points(block.rows), *(f"- {escape.markdown(note)}" for note in block.notes)])
    parts.append(_paragraphs(printout.sentences))
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def _points(facts: Iterable[Sequence[str]]) -> Iterator[str]:
    for label, text in facts:
        bold = f"- **{escape.markdown(' '.join(label.split()))}**" if label else " "
        yield f"{bold} {escape.markdown(text)}"


def _paragraphs(texts: Iterable[str]) -> list[str]:
    return [f"{escape.markdown(text)}  " if text else "" for text in texts]


def pipes(heads: Sequence[str], rows: Iterable[Sequence[str]], left: int) -> list[str]:
    """A Markdown table whose first `left` columns are left-aligned."""
    rule = "|" + ":--|" * left + "--:|" * (len(heads) - left)
    first, *others = (f"| {' | '.join(map(escape.markdown, row))} |" for row in (heads, *rows))
    return [first, rule, *others]


def as_csv(lines: Iterable[Iterable[object]]) -> str:
    """Lines as in RFC 4180; an absent value is empty, and no text is a formula."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerows(
        [escape.inert(cell) if isinstance(cell, str) else cell for cell in line] for line in lines
    )
    return out.getvalue()


def as_json(value: Any, **more: Any) -> str:
    """One JSON object: `more` and the fields of a value."""
    return json.dumps(more | finite(value), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def finite(value: Any) -> Any:
    """A value as JSON has it, with null in place of each number that is infinite or not a number."""
    from pydantic_core import to_jsonable_python  # noqa: PLC0415  --help and `ab run` do without

    return to_jsonable_python(value, inf_nan_mode="null")


def renderers(
    printout: Callable[[Printed], Printout],
    lines: Callable[[Printed], Iterable[Iterable[object]]],
    value: Callable[[Printed], str],
) -> dict[str, Callable[[Printed], str]]:
    """A renderer for each format, of what is printed for people, of the lines of CSV, and of JSON."""
    return {
        "text": lambda output: text(printout(output)),
        "markdown": lambda output: markdown(printout(output)),
        "csv": lambda output: as_csv(lines(output)),
        "json": value,
    }
