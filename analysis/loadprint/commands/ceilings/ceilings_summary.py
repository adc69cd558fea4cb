"""Summarises a ceilings file as plain values, for the renderers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from loadprint.errors import InputError
from loadprint.reading.documents import Kind, ListOf, Shape, shape_error
from loadprint.reading.recording import read_object
from loadprint.tables.ceilings import FILE, HINT, Ceiling, read

SAME = ("value", "unit", "claimed", "depth", "quantity", "tool", "command", "date", "host")
MISSING: dict[str, Shape] = {"missing": ListOf({"label": Kind.TEXT, "reason": Kind.TEXT})}


@dataclass(frozen=True)
class Line:
    """One ceiling. `spread` is (max - min) / max of the repeats, None for a single repeat.

    `p50_s`, `p99_s`: latency in seconds; `of_claimed`: value / claimed.
    """

    label: str
    value: float
    unit: str
    repeats: int
    spread: float | None
    p50_s: float | None
    p99_s: float | None
    claimed: float | None
    of_claimed: float | None
    depth: int | None
    quantity: str
    tool: str
    command: str
    date: str
    host: str | None


class Summary(NamedTuple):
    """The content of a file; `missing` contains (measurement without a result, reason)."""

    source: str
    lines: tuple[Line, ...]
    missing: tuple[tuple[str, str], ...]


def summarise(path: Path) -> Summary:
    """Read a file, or the file in a directory. Raises InputError if it is unusable."""
    place = path / FILE if path.is_dir() else path
    ceilings = read(place)
    document = read_object(place)
    if error := shape_error(document, MISSING):
        raise InputError(place, error, HINT)
    missing = tuple(
        (each.get("label") or "?", each.get("reason") or "no reason given")
        for each in document.get("missing") or []
        if each is not None
    )
    return Summary(str(place), tuple(_line(each) for each in ceilings), missing)


def _line(ceiling: Ceiling) -> Line:
    latency, claimed = dict(ceiling.latency_s), ceiling.claimed
    highest = max(ceiling.values, default=0.0)
    several = len(ceiling.values) > 1 and highest > 0
    return Line(
        label=ceiling.label or ceiling.quantity,
        repeats=len(ceiling.values),
        spread=(highest - min(ceiling.values)) / highest if several else None,
        p50_s=latency.get("p50"),
        p99_s=latency.get("p99"),
        of_claimed=None if claimed is None else ceiling.value / claimed,
        **{name: getattr(ceiling, name) for name in SAME},
    )
