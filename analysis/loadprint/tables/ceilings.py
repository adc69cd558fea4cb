"""Ceilings: the highest values that were measured on a host, read from `ceilings.json` next to the runs.

docs/recording-format.md describes the file. A ceiling belongs to a quantity (quantities.py), and only a row
that shows this quantity unchanged has a share of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, StrictBool, StrictFloat, StrictInt
from pydantic.dataclasses import dataclass as pydantic_dataclass

from loadprint import numbers
from loadprint.catalogue.metric import Metric
from loadprint.errors import InputError
from loadprint.metrics.gather import Measured
from loadprint.reading.documents import Integer, JsonObject, Listed
from loadprint.reading.documents import read as read_document

FILE = "ceilings.json"
HINT = "docs/recording-format.md describes ceilings.json"


Text = Annotated[str, Field(min_length=1)]
Positive = Annotated[float, Field(gt=0, strict=True, allow_inf_nan=False)]


def _items(given: Any) -> Any:
    """The figures of a mapping, as a value that can be hashed."""
    return tuple(given.items()) if isinstance(given, dict) else given


@pydantic_dataclass(frozen=True)
class Ceiling:
    """The highest measured value of a quantity; `value` and `claimed` (the vendor's limit) in base units.

    `quantity` may contain `*`; `disk.data.…`, `disk.redo.…`, `disk.binlog.…` mean the disk with that role.
    `host` None is any host. `row` False: no row shows the quantity. `loadprint ceilings` wrote the other
    fields: label and unit of the measurement, `values` of all repeats, latency in s.
    """

    quantity: Text
    value: Positive
    tool: Text
    date: Text
    command: str = ""
    claimed: Positive | None = None
    host: str | None = None
    row: StrictBool = True
    label: str = ""
    unit: str = ""
    values: tuple[StrictFloat, ...] = ()
    latency_s: Annotated[tuple[tuple[str, StrictFloat], ...], BeforeValidator(_items)] = ()
    depth: StrictInt | None = None


class MissingCeiling(JsonObject):
    """A measurement without a result."""

    label: str = "?"
    reason: str = "no reason given"


class CeilingsDocument(JsonObject):
    """ceilings.json."""

    format_version: Integer = 1
    ceilings: Listed[Ceiling]
    missing: Listed[MissingCeiling] = ()


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
            ceiling.quantity for of_run in self.by_run.values() for ceiling in of_run if ceiling.row
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
            files[path] = read(path).ceilings if path.is_file() else ()
        host = run.run.fingerprint("server").host
        ceilings = files[path] if given is None else given
        by_run[run.run.path] = tuple(ceiling for ceiling in ceilings if ceiling.host in (None, host))
    return Ceilings(by_run)


def matches(ceiling: Ceiling, quantity: str, run: Measured) -> bool:
    """Whether a ceiling applies to a quantity of a run; `*` excludes the loopback interface."""
    names = [quantity]
    source, _, rest = quantity.partition(".")
    device, _, what = rest.rpartition(".")
    if source == "disk":
        places = run.run.fingerprint("server").storage
        names += [f"disk.{place.role}.{what}" for place in places if device in place.disks]
    if "*" in ceiling.quantity and device == "lo":
        return False
    return any(fnmatchcase(name, ceiling.quantity) for name in names)


def footnote(ceiling: Ceiling, metric: Metric) -> str:
    """The footnote of a ceiling, in the unit that the metric's row shows."""
    unit = f" {metric.shown}" if metric.shown else ""
    text = f"ceiling {numbers.single(ceiling.value * metric.factor, 4)}{unit}"
    text += f", measured {ceiling.date} by {ceiling.tool}"
    text += f" (`{ceiling.command}`)" if ceiling.command else ""
    if ceiling.claimed is not None:
        text += f"; the vendor's limit is {numbers.single(ceiling.claimed * metric.factor, 4)}{unit}"
    return text


def read(path: Path) -> CeilingsDocument:
    """Read a file of ceilings. Raises InputError naming the invalid entry."""
    if not path.is_file():
        raise InputError(path, "no such file", HINT)
    try:
        document = read_document(path, CeilingsDocument)
    except InputError as error:
        raise InputError(path, f"is not a file of ceilings: {error.what}", HINT) from error
    if document.format_version != 1:
        what = f"format version {document.format_version}, this loadprint reads 1"
        raise InputError(path, what, "update it")
    seen = Counter((ceiling.quantity, ceiling.host) for ceiling in document.ceilings)
    if twice := [quantity for (quantity, _), count in seen.items() if count > 1]:
        raise InputError(path, f"`{twice[0]}` occurs twice", HINT)
    return document
