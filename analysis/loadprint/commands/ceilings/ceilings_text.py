"""Renders a summary of ceilings as text, Markdown, CSV or JSON."""

from __future__ import annotations

import io
import json
import textwrap
from collections.abc import Callable
from dataclasses import asdict, fields

from loadprint import numbers
from loadprint.commands.ceilings.ceilings_summary import Line, Summary
from loadprint.rendering import escape
from loadprint.rendering.grid import grid

WIDTH = 100
MISSING = "\u2013"
HEADS = ("", "unit", "max", "spread %", "p50 ms", "p99 ms", "claimed", "of claim %")
DISPLAY_UNITS = {"B/s": ("MB/s", 1e-6), "1/s": ("/s", 1.0)}  # base unit → unit of the table, factor
LABEL_WIDTH = 32


def text(summary: Summary) -> str:
    """Return the table for a terminal, in at most 100 columns, and how it was measured."""
    rows = [HEADS, *(_cells(line) for line in summary.lines)]
    lines = [line.rstrip() for line in grid(rows, left=2)]
    for name, reason in summary.missing:
        lines += textwrap.wrap(f"not measured: {name}: {reason}", WIDTH, subsequent_indent="  ")
    lines += ["", *(part for sentence in _method(summary) for part in textwrap.wrap(sentence, WIDTH))]
    return "\n".join(lines) + "\n"


def markdown(summary: Summary) -> str:
    """Return one Markdown table."""
    lines = [f"| {' | '.join(escape.markdown(head) or ' ' for head in HEADS)} |"]
    lines.append("|:--|:--|" + "--:|" * (len(HEADS) - 2))
    lines += [f"| {' | '.join(map(escape.markdown, _cells(line)))} |" for line in summary.lines]
    missing = (map(escape.markdown, each) for each in summary.missing)
    lines += ["", *(f"- not measured: {name}: {reason}" for name, reason in missing)]
    lines += [f"{escape.markdown(sentence)}  " for sentence in _method(summary)]
    return "\n".join(lines) + "\n"


def as_csv(summary: Summary) -> str:
    """Return a line per ceiling, in base units; missing values are empty."""
    out = io.StringIO()
    writer = escape.CsvWriter(out)
    names = [field.name for field in fields(Line)]
    writer.writerow([*names, "reason"])
    for line in summary.lines:
        plain = asdict(line)
        writer.writerow(["" if plain[name] is None else plain[name] for name in names] + [""])
    for name, reason in summary.missing:
        writer.writerow([name, *[""] * (len(names) - 1), reason])
    return out.getvalue()


def as_json(summary: Summary) -> str:
    """Return one JSON object."""
    document = {
        "format_version": 1,
        "source": summary.source,
        "ceilings": [asdict(line) for line in summary.lines],
        "missing": [{"label": name, "reason": reason} for name, reason in summary.missing],
    }
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _cells(line: Line) -> tuple[str, ...]:
    unit, factor = DISPLAY_UNITS.get(line.unit, (line.unit, 1.0))
    depth = "" if line.depth is None else f", depth {line.depth}"
    return (
        textwrap.shorten(line.label + depth, LABEL_WIDTH, placeholder="…"),
        unit,
        _number(line.value, factor),
        MISSING if line.spread is None else numbers.percent(line.spread),
        _number(line.p50_s, 1e3),
        _number(line.p99_s, 1e3),
        _number(line.claimed, factor),
        MISSING if line.of_claimed is None else numbers.percent(line.of_claimed),
    )


def _number(value: float | None, factor: float) -> str:
    if value is None:
        return MISSING
    return numbers.number(value * factor, numbers.decimals([value * factor]))


def _method(summary: Summary) -> list[str]:
    counts = sorted({line.repeats for line in summary.lines if line.repeats})
    dates = sorted({line.date for line in summary.lines})
    hosts = sorted({line.host for line in summary.lines if line.host})
    tools = dict.fromkeys(line.tool for line in summary.lines)
    on_hosts = f" on {', '.join(hosts)}" if hosts else ""
    sentences = [f"measured {', '.join(dates)}{on_hosts} with {', '.join(tools)}"] if summary.lines else []
    if counts:
        sentences.append(
            f"max: the best of {' or '.join(map(str, counts))} repeats; "
            "spread: (max \u2212 min) / max of the repeats; latency: of the best repeat"
        )
    if any(line.unit == "B/s" for line in summary.lines):
        sentences.append("MB: 10\u2076 B, as vendors count; the kB of `loadprint compare` are 1,024 B")
    return [*sentences, f"exact commands and all repeats: {summary.source}"]


RENDERERS: dict[str, Callable[[Summary], str]] = {
    "text": text,
    "markdown": markdown,
    "csv": as_csv,
    "json": as_json,
}
