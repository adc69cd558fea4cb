"""Reads a ceilings file, and renders it as text, Markdown, CSV or JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from loadprint import numbers
from loadprint.rendering.printout import Block, Printout, as_json, renderers
from loadprint.tables.ceilings import FILE, Ceiling, read

MISSING = "\u2013"
HEADS = ("", "unit", "max", "spread %", "p50 ms", "p99 ms", "claimed", "of claim %")
DISPLAY_UNITS = {"B/s": ("MB/s", 1e-6), "1/s": ("/s", 1.0)}  # base unit → unit of the table, factor
LABEL_WIDTH = 32
FIGURES = ("value", "unit", "repeats", "spread", "p50_s", "p99_s", "claimed", "of_claimed", "depth")
COLUMNS = ("label", *FIGURES, "quantity", "tool", "command", "date", "host")
Line = dict[str, Any]


class CeilingSummary(NamedTuple):
    """The content of a file; `missing` contains (measurement without a result, reason).

    A line has the fields of a Ceiling, and: `spread`, (max - min) / max of the repeats, None for a single
    one; `p50_s`, `p99_s`: latency in seconds; `of_claimed`: value / claimed.
    """

    source: str
    lines: list[Line]
    missing: list[tuple[str, str]]


def summarise(path: Path) -> CeilingSummary:
    """Read a file, or the file in a directory. Raises InputError if it is unusable."""
    place = path / FILE if path.is_dir() else path
    document = read(place)
    missing = [(ceiling.label, ceiling.reason) for ceiling in document.missing]
    return CeilingSummary(str(place), [_line(ceiling) for ceiling in document.ceilings], missing)


def _line(ceiling: Ceiling) -> Line:
    latency, claimed = dict(ceiling.latency_s), ceiling.claimed
    highest = max(ceiling.values, default=0.0)
    several = len(ceiling.values) > 1 and highest > 0
    computed = {
        "label": ceiling.label or ceiling.quantity,
        "repeats": len(ceiling.values),
        "spread": (highest - min(ceiling.values)) / highest if several else None,
        "p50_s": latency.get("p50"),
        "p99_s": latency.get("p99"),
        "of_claimed": None if claimed is None else ceiling.value / claimed,
    }
    return {name: computed[name] if name in computed else getattr(ceiling, name) for name in COLUMNS}


def _printout(summary: CeilingSummary) -> Printout:
    missing = tuple(f"not measured: {name}: {reason}" for name, reason in summary.missing)
    table = Block("", HEADS, tuple(map(_cells, summary.lines)), missing, left=2)
    return Printout("", (), (), [table], _method(summary))


def _lines(summary: CeilingSummary) -> Iterator[Iterable[Any]]:
    """A line per ceiling, in base units."""
    yield *COLUMNS, "reason"
    for line in summary.lines:
        yield *line.values(), ""
    for name, reason in summary.missing:
        yield name, *[""] * (len(COLUMNS) - 1), reason


def _as_json(summary: CeilingSummary) -> str:
    missing = [{"label": name, "reason": reason} for name, reason in summary.missing]
    document = {"source": summary.source, "ceilings": summary.lines, "missing": missing}
    return as_json(document, format_version=1)


RENDERERS = renderers(_printout, _lines, _as_json)


def _cells(line: Line) -> tuple[str, ...]:
    unit, factor = DISPLAY_UNITS.get(line["unit"], (line["unit"], 1.0))
    depth = "" if line["depth"] is None else f", depth {line['depth']}"
    return (
        textwrap.shorten(line["label"] + depth, LABEL_WIDTH, placeholder="…"),
        unit,
        _number(line["value"], factor),
        MISSING if line["spread"] is None else numbers.percent(line["spread"]),
        _number(line["p50_s"], 1e3),
        _number(line["p99_s"], 1e3),
        _number(line["claimed"], factor),
        MISSING if line["of_claimed"] is None else numbers.percent(line["of_claimed"]),
    )


def _number(value: float | None, factor: float) -> str:
    return MISSING if value is None else numbers.single(value * factor)


def _method(summary: CeilingSummary) -> list[str]:
    counts = sorted({line["repeats"] for line in summary.lines if line["repeats"]})
    dates = sorted({line["date"] for line in summary.lines})
    hosts = sorted({line["host"] for line in summary.lines if line["host"]})
    tools = dict.fromkeys(line["tool"] for line in summary.lines)
    on_hosts = f" on {', '.join(hosts)}" if hosts else ""
    sentences = [f"measured {', '.join(dates)}{on_hosts} with {', '.join(tools)}"] if summary.lines else []
    if counts:
        sentences.append(
            f"max: the best of {' or '.join(map(str, counts))} repeats; "
            "spread: (max \u2212 min) / max of the repeats; latency: of the best repeat"
        )
    if any(line["unit"] == "B/s" for line in summary.lines):
        sentences.append("MB: 10\u2076 B, as vendors count; the kB of `loadprint compare` are 1,024 B")
    return [*sentences, f"exact commands and all repeats: {summary.source}"]
