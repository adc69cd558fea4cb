"""What a host can do at most, as somebody measured it: `ceilings.json` beside the runs of an execution.

The file is described in docs/recording-format.md. A ceiling belongs to a quantity (quantities.py), and only a
row that shows this quantity as it is has a share of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadprint import numbers
from loadprint.errors import InputError
from loadprint.metrics.derived import Metric, as_is
from loadprint.metrics.gather import Measured
from loadprint.reading.documents import Each, Kind, ListOf, Shape, shape_error
from loadprint.reading.recording import read_object
from loadprint.tables.table import Row

if TYPE_CHECKING:
    from loadprint.tables.rows import RowBuilder

FILE = "ceilings.json"
MORE: dict[str, Shape] = {
    "label": Kind.TEXT,
    "unit": Kind.TEXT,
    "values": ListOf(Kind.NATURAL),
    "latency_s": Each(Kind.NATURAL),
    "depth": Kind.NATURAL,
}
AGAIN = "write it as docs/recording-format.md describes ceilings.json"


@dataclass(frozen=True)
class Ceiling:
    """The most of a quantity that was reached; `value` and `claimed` (the vendor's limit) in base units.

    `quantity` may hold `*`; `disk.data.…`, `disk.redo.…`, `disk.binlog.…` stand for whatever disk that is.
    `host` None is any host. `row` False: measured for its own sake, no row shows it. What follows is as
    `loadprint ceilings` wrote it: name, words and unit of the measure, `values` of all repeats, latency in s.
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


@dataclass
class Ceilings:
    """The ceilings of a comparison: those of each execution, or one list for all."""

    given: tuple[Ceiling, ...] | None = None
    read: dict[Path, tuple[Ceiling, ...]] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    def of(self, run: Measured) -> tuple[Ceiling, ...]:
        """Ceilings that hold for a run. Raises InputError where its execution's file is spoiled."""
        if self.given is not None:
            found = self.given
        else:
            place = run.run.path.resolve().parent / FILE
            if place not in self.read:
                self.read[place] = read(place) if place.is_file() else ()
            found = self.read[place]
        host = run.run.fingerprint("server").get("host")
        return tuple(each for each in found if each.host in (None, host))

    def beside(self, row: Row, per_side: Sequence[Metric | None], builder: RowBuilder) -> Row:
        """Add to a row's cells their shares of the ceilings, and a footnote that tells these."""
        cells, notes = list(row.cells), list(row.notes)
        for place, (metric, column) in enumerate(zip(per_side, builder.columns, strict=True)):
            found = self._ceiling(metric, column.runs) if metric else None
            value = cells[place].value
            if found is None or value is None:
                continue
            self.used.add(found.quantity)
            claimed = None if found.claimed is None else value / found.claimed
            cells[place] = replace(cells[place], of_ceiling=value / found.value, of_claimed=claimed)
            notes.append(builder.footnotes.add(told(found, row)))
        return replace(row, cells=tuple(cells), notes=tuple(dict.fromkeys(notes)))

    def _ceiling(self, metric: Metric, runs: Sequence[Measured]) -> Ceiling | None:
        """The one ceiling of what a metric shows, over all runs of a side."""
        if metric.compute is not as_is:
            return None
        found = {each for run in runs for each in self.of(run) if matches(each, metric.needs[0], run)}
        return next(iter(found)) if len(found) == 1 else None

    def unused(self, runs: Sequence[Measured]) -> list[str]:
        """Quantities of which a row was expected and none was found."""
        known = dict.fromkeys(each.quantity for run in runs for each in self.of(run) if each.row)
        return [quantity for quantity in known if quantity not in self.used]


def matches(ceiling: Ceiling, quantity: str, run: Measured) -> bool:
    """Whether a ceiling is one of a run's quantity; `*` does not mean the loopback interface."""
    names = [quantity]
    source, _, rest = quantity.partition(".")
    device, _, what = rest.partition(".")
    if source == "disk":
        for entry in run.run.fingerprint("server").get("storage") or []:
            if device in (entry.get("disks") or []):
                names.append(f"disk.{entry.get('role')}.{what}")
    if "*" in ceiling.quantity and device == "lo":
        return False
    return any(fnmatchcase(name, ceiling.quantity) for name in names)


def told(ceiling: Ceiling, row: Row) -> str:
    """What a footnote says of a ceiling, in the row's own unit."""
    unit = f" {row.shown}" if row.shown else ""
    most = f"ceiling {_figure(ceiling.value * row.factor)}{unit}, measured {ceiling.date} by {ceiling.tool}"
    most += f" (`{ceiling.command}`)" if ceiling.command else ""
    claimed = ceiling.claimed
    return most if claimed is None else f"{most}; the vendor's limit is {_figure(claimed * row.factor)}{unit}"


def _figure(value: float) -> str:
    return numbers.number(value, numbers.decimals([value], 4))


def read(path: Path) -> tuple[Ceiling, ...]:
    """Read a file of ceilings. Raises InputError naming the entry that cannot be used."""
    if not path.is_file():
        raise InputError(path, "no such file", AGAIN)
    document = read_object(path)
    version = document.get("format_version", 1)
    if version != 1:
        raise InputError(path, f"format version {version}, this loadprint reads 1", "update it")
    listed = document.get("ceilings")
    if not isinstance(listed, list):
        raise InputError(path, "has no list `ceilings`", AGAIN)
    found = tuple(_entries(path, listed))
    seen: set[tuple[str, str | None]] = set()
    for number, each in enumerate(found, start=1):
        if (each.quantity, each.host) in seen:
            raise InputError(f"{path} ceiling {number}", f"`{each.quantity}` is there twice", AGAIN)
        seen.add((each.quantity, each.host))
    return found


def _entries(path: Path, listed: list[Any]) -> Iterator[Ceiling]:
    for number, entry in enumerate(listed, start=1):
        place = f"{path} ceiling {number}"
        if not isinstance(entry, dict):
            raise InputError(place, "is no object", AGAIN)
        texts: dict[str, str] = {}
        for name in ("quantity", "tool", "command", "date"):
            text = entry.get(name, "" if name == "command" else None)
            if not isinstance(text, str) or (not text and name != "command"):
                raise InputError(place, f"`{name}` is missing or no text", AGAIN)
            texts[name] = text
        host = entry.get("host")
        if host is not None and not isinstance(host, str):
            raise InputError(place, "`host` is no text", AGAIN)
        value, claimed = _positive(place, entry, "value"), None
        if entry.get("claimed") is not None:
            claimed = _positive(place, entry, "claimed")
        needed = Ceiling(
            texts["quantity"], value, texts["tool"], texts["command"], texts["date"], claimed, host
        )
        yield replace(needed, **_more(place, entry))


def _more(place: str, entry: dict[str, Any]) -> dict[str, Any]:
    """What only the program that measures writes; all of it may be left out."""
    if wrong := shape_error(entry, MORE):
        raise InputError(place, wrong, AGAIN)
    row = entry.get("row", True)
    if not isinstance(row, bool):
        raise InputError(place, "`row` is neither true nor false", AGAIN)
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
        raise InputError(place, f"`{name}` is no positive number", AGAIN)
    return float(value)
