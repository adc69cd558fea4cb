"""Reads the catalogue: every row, named formula and unit of work, from the TOML files next to this module."""

from __future__ import annotations

import tomllib
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from loadprint.catalogue import dimensions
from loadprint.catalogue.formula import Figure, Formula
from loadprint.catalogue.metric import Metric
from loadprint.catalogue.model import CostRow, File, OwnFile, ScrapedEntry
from loadprint.errors import InputError
from loadprint.reading.bounds import DOCUMENT, read_text

AnyFile = TypeVar("AnyFile", File, OwnFile)
OWN = "own"
FIX = "correct it; docs/rows.md describes the form"


@dataclass(frozen=True)
class Work:
    """A unit of work: `per` is its word in keys, `quantity` counts it, and costs are divided by `formula`."""

    per: str
    quantity: str
    title: str
    formula: Formula

    @property
    def name(self) -> str:
        """Its name in text."""
        return unit_name(self.per)


@dataclass(frozen=True)
class Cost:
    """A row of costs, before it is divided by a unit of work, and its entry."""

    row: CostRow
    metric: Metric


@dataclass(frozen=True)
class Catalogue:
    """The rows of each group by its key, the groups' titles, formulas by name, and costs.

    `scraped` selects metrics of scraped endpoints, none of which has a row by default.
    """

    groups: Mapping[str, tuple[Metric, ...]]
    titles: Mapping[str, str]
    names: Mapping[str, Formula]
    works: Mapping[str, tuple[Work, ...]]
    costs: tuple[Cost, ...]
    scraped: tuple[ScrapedEntry, ...] = ()

    @cached_property
    def formulas(self) -> tuple[Formula, ...]:
        """Every formula."""
        rows = [metric.formula for metrics in self.groups.values() for metric in metrics]
        works = [work.formula for ways in self.works.values() for work in ways]
        return (*rows, *(cost.metric.formula for cost in self.costs), *works, *self.names.values())

    @cached_property
    def figures(self) -> Mapping[str, tuple[Figure, ...]]:
        """Every figure over readings, by its table."""
        by_table: dict[str, dict[Figure, None]] = defaultdict(dict)
        for figure in (figure for formula in self.formulas for figure in formula.figures):
            by_table[Formula(figure.of).columns[0].partition(".")[0]][figure] = None
        return {table: tuple(figures) for table, figures in by_table.items()}

    @cached_property
    def named_rows(self) -> Mapping[str, str]:
        """The keys of throughputs, latencies and costs by their names, such as `server CPU per statement`."""
        rows = {row.label: row.key for row in (*self.groups["throughput"], *self.groups["latency"])}
        for per in self.works:
            unit = per.replace("_", " ")
            rows |= {f"{cost.metric.label} per {unit}": f"{cost.metric.key}_per_{per}" for cost in self.costs}
        return rows

    @cached_property
    def counted(self) -> frozenset[str]:
        """The names of which the increase is needed, and not only readings."""
        return frozenset(name for formula in self.formulas for name in formula.columns)

    @cached_property
    def read(self) -> frozenset[str]:
        """The names of which the readings are needed."""
        every = (figure for figures in self.figures.values() for figure in figures)
        return frozenset(name for figure in every for name in Formula(figure.of).columns)

    @cached_property
    def columns(self) -> Mapping[str, frozenset[str]]:
        """What is read of each table: the names without the table, as ENTITY.COLUMN or METRIC."""
        by_table: dict[str, set[str]] = defaultdict(set)
        for name in self.counted | self.read:
            table, _, rest = name.partition(".")
            by_table[table].add(rest)
        return {table: frozenset(names) for table, names in by_table.items()}


@cache
def catalogue() -> Catalogue:
    """The rows that come with Loadprint."""
    files = [_parsed(path, File) for path in sorted(Path(__file__).parent.glob("*.toml"))]
    notes = {key: text for file in files for key, text in file.notes.items()}
    names: dict[str, Formula] = {}
    for file in files:
        _add_names(names, file)
    groups, titles = {}, {}
    for file in files:
        for group in file.groups:
            groups[group.key] = tuple(metric for row in group.rows for metric in row.metrics(notes, names))
            titles[group.key] = group.title
    costs = [
        Cost(row, metric) for file in files for row in file.costs for metric in row.metrics(notes, names)
    ]
    works = {
        work.per: tuple(
            Work(work.per, quantity, title, Formula.parse(quantity, formulas=names))
            for quantity, title in zip(work.formula, work.title, strict=True)
        )
        for file in files
        for work in file.works
    }
    return Catalogue(groups, titles, names, works, tuple(costs))


def with_rows(path: Path | None) -> Catalogue:
    """The catalogue, with a user's own rows if there is a file of them. Raises InputError."""
    if path is None:
        return catalogue()
    names, file = dict(catalogue().names), _parsed(path, OwnFile)
    try:
        _add_names(names, file)
        own = tuple(metric for row in file.rows for metric in row.metrics(file.notes, names))
    except ValueError as error:
        raise InputError(path, str(error), FIX) from None
    taken = Counter(metric.key for metrics in (*catalogue().groups.values(), own) for metric in metrics)
    if repeated := [metric.key for metric in own if taken[metric.key] > 1]:
        raise InputError(path, f"another row has the key {repeated[0]}", "give each row a key of its own")
    for metric in own:
        if wrong := dimensions.flaw(metric):
            fix = "correct the formula or `show`; docs/rows.md lists the units"
            raise InputError(f"{path}: row `{metric.key}`", wrong, fix)
    groups, titles = {**catalogue().groups, OWN: own}, {**catalogue().titles, OWN: "Own rows"}
    return replace(catalogue(), groups=groups, titles=titles, names=names, scraped=tuple(file.scraped))


def _add_names(names: dict[str, Formula], file: File | OwnFile) -> None:
    """Parse a file's named formulas; later ones can have the earlier. Raises ValueError."""
    for name, text in file.names.items():
        names[name] = Formula.parse(text, formulas=names)


def _parsed(path: Path, model: type[AnyFile]) -> AnyFile:
    text = read_text(path, DOCUMENT, FIX)
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also an integer of too many digits
        raise InputError(path, f"not TOML: {str(error)[:200]}", FIX) from None
    try:
        return model.model_validate(document)
    except ValidationError as error:
        raise _mistake(path, document, error, model) from None


def _mistake(
    path: Path, document: dict[str, Any], error: ValidationError, model: type[AnyFile]
) -> InputError:
    """The first mistake, with the key of its row."""
    from loadprint.configuration.document import Document  # noqa: PLC0415  PyYAML, for mistakes only
    from loadprint.configuration.mistakes import describe  # noqa: PLC0415

    rows = document.get("row")
    places: dict[tuple[str | int, ...], str] = {
        ("row", number): f"{path}: row `{key:.80}`"
        for number, row in enumerate(rows if isinstance(rows, list) else ())
        if isinstance(row, dict) and isinstance(key := row.get("key"), str)
    }
    place, _, what = describe(Document(str(path), document, places), error, model).partition(": ")
    return InputError(place, what, FIX)


def unit_name(per: str) -> str:
    """The unit of work in text, by its word in keys: a statement is counted at the client."""
    return "client statement" if per == "statement" else per
