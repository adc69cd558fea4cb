"""Told ceilings as text, Markdown, CSV or JSON; lays out, works nothing out."""

from __future__ import annotations

import io
import json
import textwrap
from collections.abc import Callable
from dataclasses import asdict, fields

from loadprint import numbers
from loadprint.commands.ceilings.ceilings_summary import Line, Told
from loadprint.rendering import escape
from loadprint.rendering.grid import grid

WIDTH = 100
NOTHING = "\u2013"
HEADS = ("", "unit", "most", "spread %", "p50 ms", "p99 ms", "claimed", "of it %")
# Unit of the table, and how many of it one of the data's unit is.
SHOWN = {"B/s": ("MB/s", 1e-6), "1/s": ("/s", 1.0)}
LABEL = 32


def text(told: Told) -> str:
    """Return the table for a terminal, in at most 100 columns, and the commands that can be repeated."""
    rows = [HEADS, *(_cells(line) for line in told.lines)]
    lines = [line.rstrip() for line in grid(rows, left=2)]
    for name, reason in told.missing:
        lines += textwrap.wrap(f"not measured: {name}: {reason}", WIDTH, subsequent_indent="  ")
    lines += ["", *(part for said in _method(told) for part in textwrap.wrap(said, WIDTH))]
    return "\n".join(lines) + "\n"


def markdown(told: Told) -> str:
    """Return one Markdown table."""
    lines = [f"| {' | '.join(escape.markdown(head) or ' ' for head in HEADS)} |"]
    lines.append("|:--|:--|" + "--:|" * (len(HEADS) - 2))
    lines += [f"| {' | '.join(map(escape.markdown, _cells(line)))} |" for line in told.lines]
    lines += [
        "",
        *(
            f"- not measured: {escape.markdown(name)}: {escape.markdown(reason)}"
            for name, reason in told.missing
        ),
    ]
    lines += [f"{escape.markdown(said)}  " for said in _method(told)]
    return "\n".join(lines) + "\n"


def as_csv(told: Told) -> str:
    """Return a line per ceiling, in base units; what is absent is empty."""
    out = io.StringIO()
    writer = escape.CsvWriter(out)
    names = [field.name for field in fields(Line)]
    writer.writerow([*names, "reason"])
    for line in told.lines:
        plain = asdict(line)
        writer.writerow(["" if plain[name] is None else plain[name] for name in names] + [""])
    for name, reason in told.missing:
        writer.writerow([name, *[""] * (len(names) - 1), reason])
    return out.getvalue()


def as_json(told: Told) -> str:
    """Return one JSON object."""
    document = {
        "format_version": 1,
        "source": told.source,
        "ceilings": [asdict(line) for line in told.lines],
        "missing": [{"label": name, "reason": reason} for name, reason in told.missing],
    }
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _cells(line: Line) -> tuple[str, ...]:
    unit, factor = SHOWN.get(line.unit, (line.unit, 1.0))
    depth = "" if line.depth is None else f", depth {line.depth}"
    return (
        textwrap.shorten(line.label + depth, LABEL, placeholder="…"),
        unit,
        _number(line.value, factor),
        NOTHING if line.spread is None else numbers.percent(line.spread),
        _number(line.p50_s, 1e3),
        _number(line.p99_s, 1e3),
        _number(line.claimed, factor),
        NOTHING if line.of_claimed is None else numbers.percent(line.of_claimed),
    )


def _number(value: float | None, factor: float) -> str:
    if value is None:
        return NOTHING
    return numbers.number(value * factor, numbers.decimals([value * factor]))


def _method(told: Told) -> list[str]:
    counts = sorted({line.repeats for line in told.lines if line.repeats})
    dates = sorted({line.date for line in told.lines})
    hosts = sorted({line.host for line in told.lines if line.host})
    tools = dict.fromkeys(line.tool for line in told.lines)
    of = f" on {', '.join(hosts)}" if hosts else ""
    said = [f"measured {', '.join(dates)}{of} by {', '.join(tools)}"] if told.lines else []
    if counts:
        said.append(
            f"most: the best of {' or '.join(map(str, counts))} repeats; "
            "spread: (most \u2212 least) / most of them; latency: of the best repeat"
        )
    if any(line.unit == "B/s" for line in told.lines):
        said.append("MB: 10\u2076 B, as vendors count; the kB of `loadprint compare` are 1,024 B")
    return [*said, f"exact commands, and all repeats: {told.source}"]


RENDERERS: dict[str, Callable[[Told], str]] = {
    "text": text,
    "markdown": markdown,
    "csv": as_csv,
    "json": as_json,
}
