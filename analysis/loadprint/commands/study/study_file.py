"""Defines a study file: the claims of a publication, and how each one is judged."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field, model_validator

from loadprint.commands.study.campaign_claims import OfCampaign
from loadprint.commands.study.claim_verdicts import Answer, Judged, not_comparable
from loadprint.commands.study.computed import Computed
from loadprint.commands.study.experiments import OfExperiment
from loadprint.commands.study.figures import Figure
from loadprint.configuration.checkout import CHECKOUT
from loadprint.configuration.field_types import Line, Name, Strict
from loadprint.configuration.model_file import read_model
from loadprint.errors import InputError

STUDIES = CHECKOUT / "ansible" / "campaigns" / "studies"
Hardware = Literal["NVMe", "10 cores"]
Basis = Literal["published", "our reading", "check of the method"]
CHECK: Final = "check of the method"
Void = Literal["client-bound", "never settled", "disturbed"]


class NotMeasured(Strict):
    """A claim that no campaign measures, with the reason."""

    kind: Literal["not measured"]
    reason: Line

    def judged(self) -> Judged:
        """Return the reason."""
        return not_comparable(self.reason)


Judge = Annotated[OfCampaign | OfExperiment | Computed | NotMeasured, Field(discriminator="kind")]


class Claim(Strict):
    """One claim: its text, its place in the publication, the published figure, and how it is judged.

    `basis`: whether the publication states it, we read it into the publication, or it only checks our method.
    `campaign` or `experiment` is the name of what measures it. `scales`, `hardware` and `generators` are
    those of the publication: a size that was measured with others has this reason. `servers` are the
    versions that the claim is about, side → beginning of the version. `despite` are states of runs that do
    not matter to this claim, such as client-bound for one about the client. `possible`: the publication only
    states that it may be so, which a case in which it is not does not refute. `ledger`: the largest rows of
    the time ledger of a side are the reason. `explain` has a text for a verdict, where it may surprise.
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
    possible: bool = False
    ledger: str | None = None
    explain: dict[Answer | Literal["size differs"], Line] = {}

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the campaigns and experiments that measure the claim, the first measures its rule."""
        names = (self.campaign, self.experiment, getattr(self.judge, "other", None))
        return tuple(name for name in names if name)

    @property
    def kind(self) -> str:
        """The kind of claims with which it is counted."""
        if isinstance(self.judge, Computed) and self.basis == "published":
            return self.judge.source
        return self.basis

    @model_validator(mode="after")
    def _measured_by_a_campaign(self) -> Claim:
        if isinstance(self.judge, OfCampaign) == (self.campaign is None):
            raise ValueError("give `campaign` for a claim on a campaign, and only for such a claim")
        if isinstance(self.judge, OfExperiment) == (self.experiment is None):
            raise ValueError("give `experiment` for a claim on an A/B experiment, and only for such a claim")
        return self


class Study(Strict):
    """A publication, its claims and its figures.

    `stand_in` is what ran in place of the product that the publication is about, as a text that is printed
    above everything else: all that is measured then checks the method, and no verdict is on a published
    claim. `notes` are contradictions inside of the publication, and what it does not print.
    """

    title: Line
    source: Line
    stand_in: Line = ""
    notes: list[Line] = []
    figures: list[Figure] = []
    claims: Annotated[list[Claim], Field(min_length=1)]

    @model_validator(mode="after")
    def _distinct(self) -> Study:
        ids = [claim.id for claim in self.claims]
        twice = next((name for name in ids if ids.count(name) > 1), None)
        if twice:
            raise ValueError(f"claims: the id {twice} occurs twice")
        return self

    @model_validator(mode="after")
    def _product_did_not_run(self) -> Study:
        if self.stand_in:
            if any(figure.kind == "ratios" or getattr(figure, "published", None) for figure in self.figures):
                raise ValueError(
                    "figures: with `stand_in` no published figures are drawn next to measured ones"
                )
            for claim in self.claims:
                claim.basis = CHECK if claim.sources else claim.basis
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
