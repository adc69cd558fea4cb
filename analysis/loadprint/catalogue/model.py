"""The form of the catalogue's files; pydantic reports a key that is unknown, missing or of another type."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from loadprint.catalogue.formula import Formula
from loadprint.catalogue.metric import SECTIONS, UNITS, Better, Metric, View
from loadprint.printable import printable

QUANTILES = {"p50": "p50", "p90": "p90", "p99": "p99", "p999": "p99.9"}
BUCKET = 0.0625  # largest distance of a value to the middle of its bucket


def _one_of(given: str, known: Iterable[str], what: str) -> str:
    if given not in known:
        raise ValueError(f"no such {what}; use one of {', '.join(filter(None, known))}")
    return given


Shown = Annotated[str, AfterValidator(lambda given: _one_of(given, UNITS, "unit"))]
Section = Annotated[str, AfterValidator(lambda given: _one_of(given, SECTIONS, "section"))]
Text = Annotated[str, AfterValidator(printable)]
ByEach = Text | dict[str, Text]  # for all rows of an entry, or for some of its words


class FilePart(BaseModel):
    """A part of a file; an unknown key is a mistake."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class OwnRow(FilePart):
    """One row, or one for each word of `each`, and one for each quantile of a histogram with `quantiles`.

    `{}` stands for a device, CPU set, role or type; `{each}` and `{name}` for a word of `each` and its text,
    `{Name}` with a capital; `{figure}` and `{quantile}` for the function of a quantile and its text. Only p99
    of the words in `quantiles` is in every view.
    """

    key: Text
    label: Text
    formula: Text
    source: Text = Field("", alias="from")
    show: Shown = ""
    better: Better | dict[str, Better] = "neither"
    headline: bool = False
    per_operation: bool = False
    footnote: ByEach = ""
    between_flavours: ByEach = ""
    view: View | dict[str, View] = "always"
    rounding: float | None = Field(None, ge=0, lt=1)
    computed: ByEach = ""
    chart: tuple[Section, Text] | None = None
    optional: bool = False
    each: dict[Text, Text] = {}
    quantiles: list[str] | None = None

    def metrics(self, notes: dict[str, str], known: dict[str, Formula]) -> Iterator[Metric]:
        """Its rows. Raises ValueError if a formula is none."""
        for word, name in (self.each or {"": ""}).items():
            for figure, quantile in QUANTILES.items() if self.quantiles is not None else (("", ""),):
                fills = {
                    "{each}": word,
                    "{name}": name,
                    "{Name}": name[:1].upper() + name[1:],
                    "{figure}": figure,
                    "{quantile}": quantile,
                }
                yield self._metric(word, figure, fills, notes, known)

    def _metric(
        self, word: str, figure: str, fills: dict[str, str], notes: dict[str, str], known: dict[str, Formula]
    ) -> Metric:
        def filled(text: str) -> str:
            for place, fill in fills.items():
                text = text.replace(place, fill)
            return text

        def of(given: ByEach) -> str:
            return given if isinstance(given, str) else given.get(word, "")

        view = self.view if isinstance(self.view, str) else self.view.get(word, "always")
        if figure and not (figure == "p99" and word in (self.quantiles or ())):
            view = "all"
        footnote, between = of(self.footnote), of(self.between_flavours)
        return Metric(
            filled(self.key),
            filled(self.label),
            self.show,
            Formula.parse(filled(self.formula), filled(self.source), known),
            self.better if isinstance(self.better, str) else self.better.get(word, "neither"),
            self.headline,
            self.per_operation,
            notes.get(footnote, footnote),
            notes.get(between, between),
            view,
            (BUCKET if figure else 0.0) if self.rounding is None else self.rounding,
            computed=filled(of(self.computed)),
            chart=self.chart and (filled(self.chart[0]), filled(self.chart[1])),
            optional=self.optional,
            named=formula if (formula := filled(self.formula)) in known else "",
        )


class CostRow(OwnRow):
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
    rows: list[OwnRow] = Field(alias="row")


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
