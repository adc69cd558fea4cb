"""Defines a study file: the claims of a publication, and how each one is judged."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from loadprint.commands.study.figure_file import Figure
from loadprint.configuration.checkout import CHECKOUT
from loadprint.configuration.field_types import Line, Name, Strict
from loadprint.configuration.model_file import read_model
from loadprint.errors import InputError

STUDIES = CHECKOUT / "ansible" / "campaigns" / "studies"
Hardware = Literal["NVMe", "10 cores"]
Sides = Annotated[list[str], Field(min_length=2)]
Bound = Annotated[float, Field(gt=0, lt=1)]
Pairs = Annotated[list[tuple[str, str]], Field(min_length=1)]


# In names of sides `{cores}` is the number of physical cores, `{min}` and `{max}` are the thread counts; of
# `a|b` it is `a` if the execution has this side. `bound`: a share; a smaller difference counts as none.
class Ratio(Strict):
    """Direction: the ratio `side` / `against` of a row is on the same side of 1 as `published`.

    Size: the factor between both, from 1 / `within` to `within`.
    """

    kind: Literal["ratio"]
    row: str
    side: str
    against: str
    published: Annotated[float, Field(gt=0)]
    within: Annotated[float, Field(gt=1)] = 2.0
    bound: Bound | None = None


class Between(Strict):
    """Each ratio side / against of a row is between `low` and `high`.

    Only a limit of 1 is a claim about direction, other limits are one about size, and about direction too if
    1 is not between them.
    """

    kind: Literal["between"]
    row: str
    pairs: Pairs
    low: Annotated[float, Field(gt=0)] | None = None
    high: Annotated[float, Field(gt=0)] | None = None
    bound: Bound | None = None

    @model_validator(mode="after")
    def _has_a_limit(self) -> Between:
        if self.low is None and self.high is None:
            raise ValueError("give `low`, `high`, or both")
        return self


class Equivalent(Strict):
    """Each ratio side / against of a row is equivalent to 1 within `bound`."""

    kind: Literal["equivalent"]
    row: str
    pairs: Pairs
    bound: Bound


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
    """The ratio of a row is below 1 for the pair `below`, and above 1 for the pair `above`.

    With `either`, it is also true the other way around; that no order changes here does not contradict it.
    """

    kind: Literal["sign change"]
    row: str
    below: tuple[str, str]
    above: tuple[str, str]
    either: bool = False


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
    """A row per operation grows linearly with a number, side → number: R² ≥ `least`."""

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
    """The treatment of an A/B experiment makes a quantity rise or fall, or it stays within `bound`."""

    kind: Literal["effect"]
    quantity: Literal["queries", "cpu", "queries_per_cpu_second"]
    change: Literal["rises", "falls", "stays"]
    bound: Bound | None = None

    @model_validator(mode="after")
    def _bound(self) -> Effect:
        if self.change == "stays" and self.bound is None:
            raise ValueError("give `bound`, the largest change that still counts as none")
        return self


class OneFactor(Strict):
    """A quantity changes by the same factor in an A/B experiment and in `other`, within `bound`."""

    kind: Literal["one factor"]
    quantity: Literal["queries", "cpu", "queries_per_cpu_second"]
    other: Name
    bound: Bound


class Undone(Strict):
    """Every command of an A/B experiment that reverts ends within some seconds."""

    kind: Literal["undone"]
    seconds: Annotated[float, Field(gt=0)]


class Restored(Strict):
    """An A/B experiment ended in the variant in which it found the server."""

    kind: Literal["restored"]


class Computed(Strict):
    """A statement on the published figures alone: `check` names a function of computed.py."""

    kind: Literal["computed"]
    check: Line


class NotMeasured(Strict):
    """A claim that no campaign measures, with the reason."""

    kind: Literal["not measured"]
    reason: Line


Measurable = Ratio | Between | Equivalent | Order | Level | SignChange | Maximum | Rank | Linear | Concludes
OfExperiment = Effect | OneFactor | Undone | Restored
Judge = Annotated[Measurable | OfExperiment | Computed | NotMeasured, Field(discriminator="kind")]
Basis = Literal["published", "our reading", "check of the method"]
COMPUTED = "computed from the published figures"
Void = Literal["client-bound", "never settled", "disturbed"]


class Claim(Strict):
    """One claim: its text, its place in the publication, the published figure, and how it is judged.

    `basis`: whether the publication states it, we read it into the publication, or it only checks our method.
    `campaign` or `experiment` is the name of what measures it. `scales`, `hardware` and `generators` are
    those of the publication: a size that was measured with others has this reason. `servers` are the
    versions that the claim is about, side → beginning of the version. `despite` are states of runs that do
    not matter to this claim, such as client-bound for one about the client. `ledger`: the largest rows
    of the time ledger of a side are the reason. `explain` has a text for a verdict, where it may surprise.
    """

    id: Name
    text: Line
    place: Line
    published: Line
    basis: Basis = "published"
    campaign: Name | None = None
    experiment: Name | None = None
    judge: Judge
    scales: list[str] = []
    hardware: list[Hardware] = []
    generators: list[Literal["sysbench", "hammerdb"]] = []
    servers: dict[str, str] = {}
    despite: list[Void] = []
    ledger: str | None = None
    explain: dict[
        Literal["holds", "equivalent", "differs", "inconclusive", "not comparable", "size differs"], Line
    ] = {}

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the campaigns and experiments that measure the claim, the first measures its rule."""
        names = (self.campaign, self.experiment, getattr(self.judge, "other", None))
        return tuple(name for name in names if name)

    @property
    def kind(self) -> str:
        """The kind of claims with which it is counted."""
        return COMPUTED if isinstance(self.judge, Computed) else self.basis

    @model_validator(mode="after")
    def _measured_by_a_campaign(self) -> Claim:
        if isinstance(self.judge, Measurable) == (self.campaign is None):
            raise ValueError("give `campaign` for a claim on a campaign, and only for such a claim")
        if isinstance(self.judge, OfExperiment) == (self.experiment is None):
            raise ValueError("give `experiment` for a claim on an A/B experiment, and only for such a claim")
        return self


class Study(Strict):
    """A publication, its claims and its figures.

    `first` is printed above everything else. `notes` are contradictions inside of the publication, and what
    it does not print.
    """

    title: Line
    source: Line
    first: Line = ""
    notes: list[Line] = []
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
        return tuple(dict.fromkeys(name for claim in self.claims for name in claim.sources))


def read(name: str) -> Study:
    """Read a study by its name, or a study file by its path. Raises InputError."""
    path = Path(name) if name.endswith((".yml", ".yaml")) else STUDIES / f"{name}.yml"
    if path.parent == STUDIES and not path.is_file():
        raise InputError(name, "is not a study", f"give one of {', '.join(names())}, or a study file")
    return read_model(path, Study, "study", "a study has the keys title, source, claims", "correct it")


def names() -> list[str]:
    """Names of the studies of this checkout."""
    return sorted(path.stem for path in STUDIES.glob("*.yml"))
