"""Defines a study file: the claims of a publication, and how each one is judged."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from loadprint.commands.study.figure_file import Figure
from loadprint.configuration.checkout import CHECKOUT
from loadprint.configuration.field_types import Name, Strict
from loadprint.configuration.model_file import read_model
from loadprint.errors import InputError

STUDIES = CHECKOUT / "ansible" / "campaigns" / "studies"
Hardware = Literal["NVMe", "two sockets", "36 cores", "PMU"]
Sides = Annotated[list[str], Field(min_length=2)]


# In names of sides `{cores}` is the number of physical cores, `{min}` and `{max}` are the thread counts.
class Ratio(Strict):
    """The ratio `side` / `against` of a row is on the same side of 1 as `published`.

    The factor between both is reported: it is judged too where scale and hardware are the publication's.
    """

    kind: Literal["ratio"]
    row: str
    side: str
    against: str
    published: Annotated[float, Field(gt=0)]
    within: Annotated[float, Field(gt=1)] = 2.0


class Between(Strict):
    """Each ratio side / against of a row is between `low` and `high`."""

    kind: Literal["between"]
    row: str
    pairs: Annotated[list[tuple[str, str]], Field(min_length=1)]
    low: float | None = None
    high: float | None = None


class Order(Strict):
    """The values of a row decrease from side to side."""

    kind: Literal["order"]
    row: str
    sides: Sides


class Level(Strict):
    """The value of a row in each side is above or below a limit in the row's base unit."""

    kind: Literal["level"]
    row: str
    sides: Annotated[list[str], Field(min_length=1)]
    above: float | None = None
    below: float | None = None

    @model_validator(mode="after")
    def _one_limit(self) -> Level:
        if (self.above is None) == (self.below is None):
            raise ValueError("give one of `above` and `below`")
        return self


class SignChange(Strict):
    """The ratio of a row is below 1 for the pair `below`, and above 1 for the pair `above`."""

    kind: Literal["sign change"]
    row: str
    below: tuple[str, str]
    above: tuple[str, str]


class Maximum(Strict):
    """The largest value of a row is that of one of the sides `at`."""

    kind: Literal["maximum"]
    row: str
    sides: Annotated[list[str], Field(min_length=3)]
    at: Annotated[list[str], Field(min_length=1)]


class Rank(Strict):
    """The rank correlation of a row with published cells, side → value, is at least `least`."""

    kind: Literal["rank"]
    row: str
    cells: Annotated[dict[str, float], Field(min_length=4)]
    least: float


class Linear(Strict):
    """The time of an operation, 1 / row, grows linearly with a number, side → number: R² ≥ `least`."""

    kind: Literal["linear"]
    row: str
    at: Annotated[dict[str, float], Field(min_length=3)]
    least: float


class Concludes(Strict):
    """The comparison of two sides has a sentence that `side` exercises `about` more than `against`."""

    kind: Literal["sentence"]
    about: list[Literal["engine", "storage", "network", "kernel"]]
    side: str
    against: str


class Effect(Strict):
    """The treatment of an A/B experiment makes a quantity rise, fall, or stay within a share of it."""

    kind: Literal["effect"]
    quantity: Literal["queries", "cpu", "queries_per_cpu_second"]
    change: Literal["rises", "falls", "stays"]
    within: Annotated[float, Field(gt=0)] = 0.03


class Switching(Strict):
    """Every command of an A/B experiment that switches ends within some seconds."""

    kind: Literal["switching"]
    seconds: Annotated[float, Field(gt=0)]


class Restored(Strict):
    """An A/B experiment ended in the variant in which it found the server."""

    kind: Literal["restored"]


class Computed(Strict):
    """A statement on the published figures alone: `check` names a function of computed.py."""

    kind: Literal["computed"]
    check: str


class NotMeasured(Strict):
    """A claim that no campaign measures, with the reason."""

    kind: Literal["not measured"]
    reason: str


Measurable = Ratio | Between | Order | Level | SignChange | Maximum | Rank | Linear | Concludes
OfExperiment = Effect | Switching | Restored
Judge = Annotated[Measurable | OfExperiment | Computed | NotMeasured, Field(discriminator="kind")]


class Claim(Strict):
    """One claim: its text, its place in the publication, the published figure, and how it is judged.

    `campaign` or `experiment` is the name of what measures it. `scales` are those at which the size of a
    figure may be compared with the published one (empty: all), `hardware` is what it needs. `explain` has a
    text for a verdict, where it may surprise.
    """

    id: Name
    text: str
    place: str
    published: str
    campaign: Name | None = None
    experiment: Name | None = None
    judge: Judge
    scales: list[str] = []
    hardware: list[Hardware] = []
    explain: dict[Literal["holds", "differs", "inconclusive", "not comparable"], str] = {}

    @property
    def source(self) -> str:
        """Name of the campaign or experiment; empty if nothing measures the claim."""
        return self.campaign or self.experiment or ""

    @model_validator(mode="after")
    def _measured_by_a_campaign(self) -> Claim:
        if isinstance(self.judge, Measurable) == (self.campaign is None):
            raise ValueError("give `campaign` for a claim on a campaign, and only for such a claim")
        if isinstance(self.judge, OfExperiment) == (self.experiment is None):
            raise ValueError("give `experiment` for a claim on an A/B experiment, and only for such a claim")
        return self


class Study(Strict):
    """A publication, its claims and its figures."""

    title: str
    source: str
    figures: list[Figure] = []
    claims: Annotated[list[Claim], Field(min_length=1)]

    @model_validator(mode="after")
    def _distinct(self) -> Study:
        ids = [claim.id for claim in self.claims]
        twice = next((each for each in ids if ids.count(each) > 1), None)
        if twice:
            raise ValueError(f"claims: the id {twice} occurs twice")
        return self

    @property
    def sources(self) -> tuple[str, ...]:
        """The campaigns and experiments that the claims need, in their order."""
        return tuple(dict.fromkeys(claim.source for claim in self.claims if claim.source))


def read(name: str) -> Study:
    """Read a study by its name, or a study file by its path. Raises InputError."""
    path = Path(name) if name.endswith((".yml", ".yaml")) else STUDIES / f"{name}.yml"
    if path.parent == STUDIES and not path.is_file():
        raise InputError(name, "is not a study", f"give one of {', '.join(names())}, or a study file")
    return read_model(path, Study, "study", "a study has the keys title, source, claims", "correct it")


def names() -> list[str]:
    """Names of the studies of this checkout."""
    return sorted(path.stem for path in STUDIES.glob("*.yml"))
