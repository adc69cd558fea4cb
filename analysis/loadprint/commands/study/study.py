"""Judges the claims of a study by executions of its campaigns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from loadprint.commands.study import computed, study_file
from loadprint.commands.study.judgements import KINDS, NOT_COMPARABLE, Judged
from loadprint.commands.study.observations import Absent, Observations
from loadprint.commands.study.study_file import Claim, Computed, NotMeasured, Ratio, Study
from loadprint.errors import InputError


@dataclass(frozen=True)
class Finding:
    """A claim with its verdict."""

    claim: Claim
    judged: Judged

    @property
    def explanation(self) -> str:
        """The study's text for this verdict; empty if it has none."""
        return self.claim.explain.get(self.judged.answer, "")


@dataclass(frozen=True)
class Report:
    """All claims of a study; `facts` are (label, text) lines about the executions."""

    name: str
    study: Study
    facts: tuple[tuple[str, str], ...]
    findings: tuple[Finding, ...]

    def count(self, answer: str) -> int:
        """Number of claims with a verdict."""
        return sum(each.judged.answer == answer for each in self.findings)


def judge(name: str, paths: Sequence[Path]) -> Report:
    """Judge all claims. Raises InputError for an execution of a campaign that the study does not use."""
    study = study_file.read(name)
    by_campaign: dict[str, Observations] = {}
    for path in paths:
        seen = Observations(path)
        if seen.name not in study.campaigns:
            used = ", ".join(study.campaigns)
            raise InputError(path, f"is an execution of {seen.name}", f"{name} uses the campaigns {used}")
        if seen.name in by_campaign:
            raise InputError(path, f"is a second execution of {seen.name}", "give one of each campaign")
        by_campaign[seen.name] = seen
    findings = tuple(Finding(claim, _judged(claim, by_campaign)) for claim in study.claims)
    facts = tuple(_fact(seen) for seen in by_campaign.values())
    return Report(Path(name).stem, study, facts, findings)


def _fact(seen: Observations) -> tuple[str, str]:
    scale = f"scale {', '.join(seen.scales)}" if seen.scales else "default scale"
    repeats = f"{seen.repeats} repeat{'s' if seen.repeats > 1 else ''}"
    return seen.name, f"{seen.path}, {scale}, {repeats} per side"


def _judged(claim: Claim, by_campaign: dict[str, Observations]) -> Judged:
    rule = claim.judge
    if isinstance(rule, Computed):
        return computed.CHECKS[rule.check]()
    if isinstance(rule, NotMeasured):
        return Judged(NOT_COMPARABLE, "", reason=rule.reason)
    seen = by_campaign.get(str(claim.campaign))
    if seen is None:
        needs = f"./characterize -e campaign={claim.campaign}"
        return Judged(NOT_COMPARABLE, "", reason=f"needs {needs}", needs=needs)
    lacking = _lacking(claim, seen)
    # the direction of a ratio is judged everywhere, its size only where it can be the published one
    if lacking and not isinstance(rule, Ratio):
        return Judged(NOT_COMPARABLE, "", reason=lacking)
    try:
        judged = KINDS[type(rule)](rule, seen)
    except Absent as absent:
        return Judged(NOT_COMPARABLE, "", reason=str(absent))
    if judged.size and lacking:
        judged = replace(judged, size=f"{judged.size.partition(',')[0]} (not judged: {lacking})")
    return judged


def _lacking(claim: Claim, seen: Observations) -> str:
    """Why sizes are not comparable with the publication's; empty if they are."""
    reasons = [f"this host has no {each}" for each in claim.hardware if each not in seen.hardware]
    if claim.scales and not set(claim.scales) & set(seen.scales):
        reasons.append(f"needs the scale {' or '.join(claim.scales)}")
    return "; ".join(reasons)
