"""Defines the figures of a study file, and draws them from its executions."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from loadprint.commands.study.campaign_claims import RatioClaim
from loadprint.commands.study.computed import published
from loadprint.commands.study.experiments import StudyExperiment
from loadprint.commands.study.observations import Absent, Observations, Values
from loadprint.commands.study.side_ratios import ratio_of
from loadprint.configuration.field_types import Line, Name, Strict
from loadprint.errors import InputError
from loadprint.plotting import study_plot
from loadprint.plotting.study_plot import Bar, Dot, StudyCurve
from loadprint.reading.names import TREATMENT
from loadprint.statistics.stats import Estimate, t_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

QUANTITIES = {
    "queries": "queries/s",
    "cpu": "CPU of the server, cores",
    "efficiency": "queries per CPU-second",
}
Rules = Mapping[tuple[str, str], RatioClaim]  # by campaign and id of the claim


class Printed(Strict):
    """Figures of the publication: a CSV file in docs/published, its column of the x axis, name → column."""

    file: str
    x: str
    columns: dict[str, str]

    def curves(self) -> list[StudyCurve]:
        """The lines. Raises InputError if the file does not have these figures."""
        table = published(self.file)
        try:
            return [
                StudyCurve(name, {float(row[self.x]): Estimate(float(row[column])) for row in table})
                for name, column in self.columns.items()
            ]
        except (KeyError, ValueError) as error:
            raise InputError(
                self.file, f"has no such figures ({error})", "correct the study's figure"
            ) from error


class LinesFigure(Strict):
    """A row by number of connections: `series` maps names to sides, where `*` is that number."""

    kind: Literal["lines"]
    title: Line
    campaign: Name
    row: str
    series: Annotated[dict[str, str], Field(min_length=1)]
    published: Printed | None = None

    def draw(self, seen: Observations, _: Rules) -> Drawing:
        """Draw a line for each series, and the published ones next to them."""
        curves = []
        quantity = ""
        for name, pattern in self.series.items():
            points = {}
            for side, described in seen.execution.sides.items():
                # an external generator that was given none has no place on the axis
                threads = described.threads
                if threads and fnmatchcase(side, pattern) and (values := _known(seen, self.row, side)):
                    quantity = values.quantity
                    points[float(threads)] = _scaled(values)
            if points:
                curves.append(StudyCurve(name, points))
        panels = [("measured here", curves)]
        if self.published:
            panels.append(("published", self.published.curves()))
        return study_plot.curves(panels, "connections", quantity)


class Ratios(Strict):
    """The measured and the published ratio of every claim of kind `ratio` of a campaign."""

    kind: Literal["ratios"]
    title: Line
    campaign: Name

    def draw(self, seen: Observations, rules: Rules) -> Drawing:
        """Draw a row of dots for each claim."""
        dots = []
        for (campaign, claim), rule in rules.items():
            if campaign == self.campaign:
                try:
                    value = ratio_of(seen, rule.row, rule.side, rule.against).value
                except Absent:
                    value = None
                dots.append(Dot(claim, value, rule.published))
        return study_plot.dots(self.title, dots, "ratio", ratios=True)


class LevelsFigure(Strict):
    """A row of some sides."""

    kind: Literal["levels"]
    title: Line
    campaign: Name
    row: str
    sides: Annotated[list[str], Field(min_length=1)]

    def draw(self, seen: Observations, _: Rules) -> Drawing:
        """Draw a dot for each side."""
        of_sides = {seen.resolved(side): _known(seen, self.row, side) for side in self.sides}
        quantity = next((values.quantity for values in of_sides.values() if values), "")
        dots = [Dot(side, _scaled(values) if values else None) for side, values in of_sides.items()]
        return study_plot.dots(self.title, dots, quantity, ratios=False)


class Windows(Strict):
    """A quantity in every window of an A/B experiment, over time."""

    kind: Literal["windows"]
    title: Line
    experiment: Name
    quantity: Literal["queries", "cpu", "efficiency"]

    def draw(self, seen: StudyExperiment, _: Rules) -> Drawing:
        """Draw a bar for each window."""
        bars = [
            Bar(window.begin_s, window.end_s, value, window.variant == TREATMENT)
            for window in seen.result.windows
            if (value := getattr(window, self.quantity)) is not None
        ]
        return study_plot.windows(self.title, bars, QUANTITIES[self.quantity])


Figure = Annotated[LinesFigure | Ratios | LevelsFigure | Windows, Field(discriminator="kind")]


def _known(seen: Observations, row: str, side: str) -> Values | None:
    try:
        return seen.values(row, side)
    except Absent:
        return None


def _scaled(values: Values) -> Estimate:
    interval = t_interval([value * values.factor for value in values.repeats])
    return interval.widened(values.widened(len(values.repeats)))
