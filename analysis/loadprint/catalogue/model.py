"""The form of the catalogue's files; pydantic reports a key that is unknown, missing or of another type."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from loadprint.catalogue.formula import Formula
from loadprint.catalogue.metric import SECTIONS, UNITS, At, Better, Metric, Screens, View
from loadprint.printable import printable

QUANTILES = {"p50": "p50", "p90": "p90", "p99": "p99", "p999": "p99.9"}
Given = TypeVar("Given")
BUCKET = 0.0625  # largest distance of a value to the middle of its bucket


def _one_of(given: str, choices: Iterable[str], what: str) -> str:
    if given not in choices:
        raise ValueError(f"no such {what}; use one of {', '.join(filter(None, choices))}")
    return given


Shown = Annotated[str, AfterValidator(lambda given: _one_of(given, UNITS, "unit"))]
Section = Annotated[str, AfterValidator(lambda given: _one_of(given, SECTIONS, "section"))]
Text = Annotated[str, AfterValidator(printable)]
ByEach = Text | dict[str, Text]  # for all rows of an entry, or for some of its words


class FilePart(BaseModel):
    """A part of a file; an unknown key is a mistake."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class OwnRow(FilePart):
    """A row as a user can write it too: one, or one for each word of `each`.

    `{}` stands for a device, CPU set, role or type; `{each}` and `{name}` for a word of `each` and its text,
    `{Name}` with a capital.
    """

    key: Text
    label: Text
    formula: Text
    source: Text = Field("", alias="from")
    show: Shown = ""
    better: Better | dict[str, Better] = "neither"
    per_operation: bool = False
    footnote: ByEach = ""
    view: View | dict[str, View] = "always"
    chart: tuple[Section, Text] | None = None
    each: dict[Text, Text] = {}

    def metrics(self, notes: dict[str, str], formulas: dict[str, Formula]) -> Iterator[Metric]:
        """Its rows. Raises ValueError if a formula is none."""
        for word, fills in self.words():
            yield self.metric(word, fills, notes, formulas)

    def words(self) -> Iterator[tuple[str, dict[str, str]]]:
        """Each word, with the text of each place."""
        for word, name in (self.each or {"": ""}).items():
            yield word, {"{each}": word, "{name}": name, "{Name}": name[:1].upper() + name[1:]}

    def metric(
        self, word: str, fills: dict[str, str], notes: dict[str, str], formulas: dict[str, Formula]
    ) -> Metric:
        """The row of one word of `each`, with the text of each place."""
        formula, footnote = _filled(self.formula, fills), _of(self.footnote, word, "")
        return Metric(
            _filled(self.key, fills),
            _filled(self.label, fills),
            self.show,
            Formula.parse(formula, _filled(self.source, fills), formulas),
            better=_of(self.better, word, "neither"),
            per_operation=self.per_operation,
            footnote=notes.get(footnote, footnote),
            view=_of(self.view, word, "always"),
            chart=self.chart and (_filled(self.chart[0], fills), _filled(self.chart[1], fills)),
            named=formula if formula in formulas else "",
        )


class CatalogueRow(OwnRow):
    """A row of the catalogue, or with `quantiles` one for each quantile of a histogram.

    `{figure}` and `{quantile}` stand for the function of a quantile and its text. Only p99 of the words in
    `quantiles` is in every view. `tolerance` is that of `loadprint qualify`, in percent.
    """

    headline: bool | dict[str, bool] = False
    between_flavours: ByEach = ""
    rounding: float | None = Field(None, ge=0, lt=1)
    computed: ByEach = ""
    optional: bool = False
    screens: Screens | dict[str, Screens] = Screens()
    quantiles: list[str] | None = None
    tolerance: float | dict[str, float | None] | None = None
    tolerated_at: At | None = None

    def words(self) -> Iterator[tuple[str, dict[str, str]]]:
        """Each word, or each with each quantile, with the text of each place."""
        for word, fills in super().words():
            for figure, quantile in QUANTILES.items() if self.quantiles is not None else (("", ""),):
                yield word, {**fills, "{figure}": figure, "{quantile}": quantile}

    def metric(
        self, word: str, fills: dict[str, str], notes: dict[str, str], formulas: dict[str, Formula]
    ) -> Metric:
        """The row of one word of `each`, with the text of each place."""
        row, figure = super().metric(word, fills, notes, formulas), fills["{figure}"]
        between = _of(self.between_flavours, word, "")
        is_detail = figure and not (figure == "p99" and word in (self.quantiles or ()))
        return replace(
            row,
            headline=_of(self.headline, word, False),
            between_flavours=notes.get(between, between),
            view="all" if is_detail else row.view,
            rounding=(BUCKET if figure else 0.0) if self.rounding is None else self.rounding,
            computed=_filled(_of(self.computed, word, ""), fills),
            optional=self.optional,
            screens=_of(self.screens, word, Screens()),
            tolerance=_of(self.tolerance, word, None),
            tolerated_at=self.tolerated_at,
        )


def _filled(text: str, fills: dict[str, str]) -> str:
    """The text with its places filled."""
    for place, fill in fills.items():
        text = text.replace(place, fill)
    return text


def _of(given: Given | dict[str, Given], word: str, default: Given) -> Given:
    """What is given for all rows of an entry, or for one of its words."""
    return given.get(word, default) if isinstance(given, dict) else given


class CostRow(CatalogueRow):
    """A row of costs: `few` are in the usual view also between different operations.

    `not_per` and `only_per` name a unit of work.
    """

    few: bool = False
    not_per: str = ""
    only_per: str = ""


class GroupEntry(FilePart):
    """Rows under one heading."""

    key: str
    title: str = ""
    rows: list[CatalogueRow] = Field(alias="row")


class WorkEntry(FilePart):
    """A unit of work of the costs: of several ways to count it the first that all runs have; titles."""

    per: str
    formula: list[str]
    title: list[str]


class ScrapedEntry(FilePart):
    """Metrics of scraped endpoints that match a pattern with `*` and `?`, each a row."""

    metrics: str
    show: Shown | None = None
    better: Better = "neither"


class OwnFile(FilePart):
    """A user's file: `names` stand for formulas, `notes` for footnotes."""

    names: dict[Text, Text] = {}
    notes: dict[str, Text] = {}
    rows: list[OwnRow] = Field([], alias="row")
    scraped: list[ScrapedEntry] = []


class File(FilePart):
    """A file of the catalogue, whose names and notes are those of all files."""

    names: dict[str, str] = {}
    notes: dict[str, str] = {}
    groups: list[GroupEntry] = Field([], alias="group")
    costs: list[CostRow] = Field([], alias="cost")
    works: list[WorkEntry] = Field([], alias="work")
