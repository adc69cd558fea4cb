"""Ceilings: the highest values that were measured on a host, read from `ceilings.json` next to the runs.

docs/recording-format.md describes the file. A ceiling belongs to a quantity (quantities.py), and only a row
that shows this quantity unchanged has a share of it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from loadprint import numbers
from loadprint.catalogue.metric import Metric
from loadprint.errors import InputError
from loadprint.metrics.gather import Measured
from loadprint.reading.documents import Each, Kind, ListOf, Shape, shape_error
from loadprint.reading.recording import read_object

FILE = "ceilings.json"
OPTIONAL: dict[str, Shape] = {
    "label": Kind.TEXT,
    "unit": Kind.TEXT,
    "values": ListOf(Kind.NATURAL),
    "latency_s": Each(Kind.NATURAL),
    "depth": Kind.NATURAL,
}
HINT = "docs/recording-format.md describes ceilings.json"


@dataclass(frozen=True)
class Ceiling:
    """The highest measured value of a quantity; `value` and `claimed` (the vendor's limit) in base units.

    `quantity` may contain `*`; `disk.data.…`, `disk.redo.…`, `disk.binlog.…` mean the disk with that role.
    `host` None is any host. `row` False: no row shows the quantity. `loadprint ceilings` wrote the other
    fields: label and unit of the measurement, `values` of all repeats, latency in s.
    """

    quantity: str
    value: float
    tool: str
    command: str
    date: str
    claimed: float | None = None
    host: str | None = None
    row: bool = True
    label: str = ""
    unit: str = ""
    values: tuple[float, ...] = ()
    latency_s: tuple[tuple[str, float], ...] = ()
    depth: int | None = None


@dataclass(frozen=True)
class Ceilings:
    """The ceilings of a comparison: those that apply to each run, by its directory."""

    by_run: Mapping[Path, tuple[Ceiling, ...]] = field(default_factory=dict)

    def of(self, metric: Metric, runs: Sequence[Measured]) -> Ceiling | None:
        """Return the ceiling of the quantity that a metric shows, None unless all runs share one."""
        if metric.quantity is None:
            return None
        matching = {
            ceiling
            for run in runs
            for ceiling in self.by_run.get(run.run.path, ())
            if matches(ceiling, metric.quantity, run)
        }
        return next(iter(matching)) if len(matching) == 1 else None

    def unused(self, used: Collection[Ceiling]) -> list[str]:
        """Quantities for which a row was expected and none shows them."""
        shown = {ceiling.quantity for ceiling in used}
        expected = dict.fromkeys(
            each.quantity for listed in self.by_run.values() for each in listed if each.row
        )
        return [quantity for quantity in expected if quantity not in shown]


def ceilings_of(runs: Sequence[Measured], given: tuple[Ceiling, ...] | None = None) -> Ceilings:
    """Ceilings of runs: those `given`, else those of the file next to each run.

    Raises InputError if a file is damaged.
    """
    files: dict[Path, tuple[Ceiling, ...]] = {}
    by_run = {}
    for run in runs:
        path = run.run.path.resolve().parent / FILE
        if given is None and path not in files:
            files[path] = read(path) if path.is_file() else ()
        host = run.run.fingerprint("server").get("host")
        listed = files[path] if given is None else given
        by_run[run.run.path] = tuple(each for each in listed if each.host in (None, host))
    return Ceilings(by_run)


def matches(ceiling: Ceiling, quantity: str, run: Measured) -> bool:
    """Whether a ceiling applies to a quantity of a run; `*` excludes the loopback interface."""
    names = [quantity]
    source, _, rest = quantity.partition(".")
    device, _, what = rest.rpartition(".")
    if source == "disk":
        for entry in run.run.fingerprint("server").get("storage") or []:
            if device in (entry.get("disks") or []):
                names.append(f"disk.{entry.get('role')}.{what}")
    if "*" in ceiling.quantity and device == "lo":
        return False
    return any(fnmatchcase(name, ceiling.quantity) for name in names)


def footnote(ceiling: Ceiling, metric: Metric) -> str:
    """The footnote of a ceiling, in the unit that the metric's row shows."""
    unit = f" {metric.shown}" if metric.shown else ""
    text = (
        f"ceiling {_figure(ceiling.value * metric.factor)}{unit}, measured {ceiling.date} by {ceiling.tool}"
    )
    text += f" (`{ceiling.command}`)" if ceiling.command else ""
    if ceiling.claimed is not None:
        text += f"; the vendor's limit is {_figure(ceiling.claimed * metric.factor)}{unit}"
    return text


def _figure(value: float) -> str:
    return numbers.number(value, numbers.decimals([value], 4))


def read(path: Path) -> tuple[Ceiling, ...]:
    """Read a file of ceilings. Raises InputError naming the invalid entry."""
    if not path.is_file():
        raise InputError(path, "no such file", HINT)
    try:
        document = read_object(path)
    except InputError as error:
        raise InputError(path, f"is not a file of ceilings: {error.what}", HINT) from error
    version = document.get("format_version", 1)
    if version != 1:
        raise InputError(path, f"format version {version}, this loadprint reads 1", "update it")
    listed = document.get("ceilings")
    if not isinstance(listed, list):
        raise InputError(path, "has no list `ceilings`", HINT)
    entries = tuple(_entries(path, listed))
    seen: set[tuple[str, str | None]] = set()
    for number, each in enumerate(entries, start=1):
        if (each.quantity, each.host) in seen:
            raise InputError(f"{path} ceiling {number}", f"`{each.quantity}` occurs twice", HINT)
        seen.add((each.quantity, each.host))
    return entries


def _entries(path: Path, listed: list[Any]) -> Iterator[Ceiling]:
    for number, entry in enumerate(listed, start=1):
        place = f"{path} ceiling {number}"
        if not isinstance(entry, dict):
            raise InputError(place, "is not an object", HINT)
        texts: dict[str, str] = {}
        for name in ("quantity", "tool", "command", "date"):
            text = entry.get(name, "" if name == "command" else None)
            if not isinstance(text, str) or (not text and name != "command"):
                raise InputError(place, f"`{name}` is missing or not a text", HINT)
            texts[name] = text
        host = entry.get("host")
        if host is not None and not isinstance(host, str):
            raise InputError(place, "`host` is not a text", HINT)
        value, claimed = _positive(place, entry, "value"), None
        if entry.get("claimed") is not None:
            claimed = _positive(place, entry, "claimed")
        needed = Ceiling(
            texts["quantity"], value, texts["tool"], texts["command"], texts["date"], claimed, host
        )
        yield replace(needed, **_optional_fields(place, entry))


def _optional_fields(place: str, entry: dict[str, Any]) -> dict[str, Any]:
    """The optional fields, which only the measuring program writes."""
    if error := shape_error(entry, OPTIONAL):
        raise InputError(place, error, HINT)
    row = entry.get("row", True)
    if not isinstance(row, bool):
        raise InputError(place, "`row` is neither true nor false", HINT)
    latency = {name: value for name, value in (entry.get("latency_s") or {}).items() if value is not None}
    values = [float(value) for value in entry.get("values") or [] if value is not None]
    return {
        "row": row,
        "label": entry.get("label") or "",
        "unit": entry.get("unit") or "",
        "values": tuple(values),
        "latency_s": tuple(latency.items()),
        "depth": None if entry.get("depth") is None else int(entry["depth"]),
    }


def _positive(place: str, entry: dict[str, Any], name: str) -> float:
    value = entry.get(name)
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not math.isfinite(value)
        or value <= 0
    ):
        raise InputError(place, f"`{name}` is not a positive number", HINT)
    return float(value)
