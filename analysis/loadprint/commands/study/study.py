"""Judges the claims of a study by executions of its campaigns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadprint.commands.ab import show
from loadprint.commands.study import study_file
from loadprint.commands.study.campaign_claims import OfCampaign, RatioClaim
from loadprint.commands.study.claim_verdicts import Judged, not_comparable
from loadprint.commands.study.experiments import StudyExperiment
from loadprint.commands.study.observations import Absent, Observations
from loadprint.commands.study.study_file import CHECK, Claim, Study
from loadprint.errors import InputError
from loadprint.judging import void


@dataclass(frozen=True)
class JudgedClaim:
    """A claim with its verdicts. `ledger` has the largest parts of the latency, if the claim asks for it."""

    claim: Claim
    judged: Judged
    ledger: str = ""

    @property
    def explanation(self) -> str:
        """The study's text for these verdicts; empty if it has none."""
        answer, size = self.judged.answer, self.judged.size
        texts = [self.claim.explain.get(answer, "")]
        if size is not None and size.answer == "differs":
            texts.append(self.claim.explain.get("size differs", ""))
        texts.append("" if answer == "holds" else self.ledger)
        return "; ".join(text.rstrip(".") for text in texts if text)


@dataclass(frozen=True)
class StudyReport:
    """All claims of a study; `sources` are its executions and experiments by name."""

    name: str
    study: Study
    sources: Mapping[str, Observations | StudyExperiment]
    findings: tuple[JudgedClaim, ...]

    @property
    def voids(self) -> tuple[str, ...]:
        """Why sides support no verdict, a line for each."""
        executions = [seen for seen in self.sources.values() if isinstance(seen, Observations)]
        lines = (line for seen in executions for of in seen.voids.values() for _, line in of)
        return tuple(line.removesuffix(": no verdict") for line in lines)


def judge(name: str, paths: Sequence[Path], *, accept_disturbed: bool = False) -> StudyReport:
    """Judge all claims. Raises InputError for an execution of a campaign that the study does not use.

    A side that is client-bound, never settled or was disturbed supports no verdict, as in `qualify`;
    `accept_disturbed` accepts disturbed runs.
    """
    study = study_file.read(name)
    sources: dict[str, Observations | StudyExperiment] = {}
    for path in paths:
        seen = StudyExperiment(path) if show.is_experiment(path) else Observations(path)
        if seen.name not in study.sources:
            raise InputError(
                path, f"is an execution of {seen.name}", f"{name} uses {', '.join(study.sources)}"
            )
        if seen.name in sources:
            raise InputError(path, f"is a second execution of {seen.name}", "give one of each")
        sources[seen.name] = seen
    findings = tuple(_finding(claim, sources, accept_disturbed) for claim in study.claims)
    return StudyReport(Path(name).stem, study, sources, findings)


def _finding(
    claim: Claim, sources: dict[str, Observations | StudyExperiment], accept_disturbed: bool
) -> JudgedClaim:
    missing = next((name for name in claim.sources if name not in sources), None)
    if missing:
        by_campaign = f"./characterize -e campaign={claim.campaign}"
        needs = by_campaign if claim.campaign else f"an A/B experiment with the name {missing}"
        return JudgedClaim(claim, not_comparable(f"needs {needs}", needs))
    seen: list[Any] = [sources[name] for name in claim.sources]
    rule = claim.judge
    if isinstance(rule, OfCampaign):
        if _replaced(claim, rule, seen[0]):
            claim = claim.model_copy(update={"basis": CHECK})
        accepted = {*claim.despite, *([void.DISTURBED] if accept_disturbed else [])}
        judged = _measured(claim, rule, seen[0], accepted)
    else:
        judged = rule.judged(*seen)
    ledger = seen[0].ledger(claim.ledger) if claim.ledger else ""
    return JudgedClaim(claim, judged.as_possible() if claim.possible else judged, ledger)


def _measured(claim: Claim, rule: OfCampaign, seen: Observations, accepted: AbstractSet[str]) -> Judged:
    if wrong := _wrong_servers(claim, seen):
        return not_comparable(wrong)
    sides = seen.sides_of(rule.model_dump())
    different = [f"the server has no {part}" for part in claim.hardware if part not in seen.hardware]
    if claim.scales and not set(claim.scales) & set(seen.scales):
        different.append(f"needs the scale {' or '.join(claim.scales)}")
    if different and not isinstance(rule, RatioClaim):
        return not_comparable("; ".join(different))
    if _replaced(claim, rule, seen):
        different.append(f"native workloads in place of {' and '.join(claim.generators)}")
    try:
        judged = rule.judged(seen)
    except Absent as absent:
        return not_comparable(str(absent))
    if different:
        judged = judged.measured_otherwise(f"not measured as published: {'; '.join(different)}")
    sides_by_word: dict[str, list[str]] = {}
    for side in sides:
        for word, _ in seen.voids.get(side, ()):
            if word not in accepted:
                sides_by_word.setdefault(word, []).append(side)
    reasons = "; ".join(f"{word}: {', '.join(sides)}" for word, sides in sides_by_word.items())
    return judged.void(reasons) if reasons else judged


def _replaced(claim: Claim, rule: OfCampaign, seen: Observations) -> bool:
    """Whether native workloads ran in place of the publication's tools: they are not the product."""
    generators = {seen.execution.side(side).generator for side in seen.sides_of(rule.model_dump())}
    return bool(claim.generators) and not generators <= set(claim.generators)


def _wrong_servers(claim: Claim, seen: Observations) -> str:
    """The servers that were measured, if the claim is about others; else empty."""
    measured = {side: seen.version(side) for side in claim.servers}
    if all(measured[side].startswith(version) for side, version in claim.servers.items()):
        return ""
    asked = " and ".join(dict.fromkeys(claim.servers.values()))
    return f"about {asked}, measured on {' and '.join(dict.fromkeys(measured.values()))}"
