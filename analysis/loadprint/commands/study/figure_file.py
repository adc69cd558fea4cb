"""Defines the figures of a study file: the drawing of the publication, repeated with our figures."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from loadprint.configuration.field_types import Line, Name, Strict


class Printed(Strict):
    """Figures of the publication: a CSV file in docs/published, its column of the x axis, name → column."""

    file: str
    x: str
    columns: dict[str, str]


class Lines(Strict):
    """A row by number of connections: `series` maps names to sides, where `*` is that number."""

    kind: Literal["lines"]
    title: Line
    campaign: Name
    row: str
    series: Annotated[dict[str, str], Field(min_length=1)]
    published: Printed | None = None


class Ratios(Strict):
    """The measured and the published ratio of every claim of kind `ratio` of a campaign."""

    kind: Literal["ratios"]
    title: Line
    campaign: Name


class Levels(Strict):
    """A row of some sides."""

    kind: Literal["levels"]
    title: Line
    campaign: Name
    row: str
    sides: Annotated[list[str], Field(min_length=1)]


class Windows(Strict):
    """A quantity in every window of an A/B experiment, over time."""

    kind: Literal["windows"]
    title: Line
    experiment: Name
    quantity: Literal["queries", "cpu", "efficiency"]


Figure = Annotated[Lines | Ratios | Levels | Windows, Field(discriminator="kind")]
