"""Judges the claims of a study by executions of its campaigns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from loadprint.commands.ab import show
from loadprint.commands.study import computed, experiments, study_file
from loadprint.commands.study.experiments import Experiment
from loadprint.commands.study.judgements import KINDS, NOT_COMPARABLE, NOT_JUDGED, Judged
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
    """All claims of a study; `known` are its executions and experiments by name."""

    name: str
    study: Study
    known: Mapping[str, Observations | Experiment]
    findings: tuple[Finding, ...]

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """Name and fact of each execution."""
        return tuple((name, seen.fact) for name, seen in self.known.items())


def judge(name: str, paths: Sequence[Path]) -> Report:
    """Judge all claims. Raises InputError for an execution of a campaign that the study does not use."""
    study = study_file.read(name)
    known: dict[str, Observations | Experiment] = {}
    for path in paths:
        seen = Experiment(path) if show.is_experiment(path) else Observations(path)
        if seen.name not in study.sources:
            raise InputError(
                path, f"is an execution of {seen.name}", f"{name} uses {', '.join(study.sources)}"
            )
        if seen.name in known:
            raise InputError(path, f"is a second execution of {seen.name}", "give one of each")
        known[seen.name] = seen
    findings = tuple(Finding(claim, _judged(claim, known)) for claim in study.claims)
    return Report(Path(name).stem, study, known, findings)


def _judged(claim: Claim, known: dict[str, Observations | Experiment]) -> Judged:
    rule = claim.judge
    if isinstance(rule, Computed):
        return computed.check(rule.check)
    if isinstance(rule, NotMeasured):
        return Judged(NOT_COMPARABLE, "", reason=rule.reason)
    seen = known.get(claim.source)
    if isinstance(seen, Experiment):
        return experiments.KINDS[type(rule)](rule, seen)
    return _missing(claim) if seen is None else _measured(claim, seen)


def _missing(claim: Claim) -> Judged:
    needs = f"./characterize -e campaign={claim.campaign}"
    needs = needs if claim.campaign else f"an A/B experiment with the name {claim.experiment}"
    return Judged(NOT_COMPARABLE, "", reason=f"needs {needs}", needs=needs)


def _measured(claim: Claim, seen: Observations) -> Judged:
    lacking = _lacking(claim, seen)
    # the direction of a ratio is judged everywhere, its size only where it can be the published one
    if lacking and not isinstance(claim.judge, Ratio):
        return Judged(NOT_COMPARABLE, "", reason=lacking)
    try:
        judged = KINDS[type(claim.judge)](claim.judge, seen)
    except Absent as absent:
        return Judged(NOT_COMPARABLE, "", reason=str(absent))
    if judged.size and lacking:
        judged = replace(judged, size_answer=NOT_JUDGED + lacking)
    if bound := seen.client_bound(claim.judge.model_dump()):
        text = f"client-bound, so that the server may be able to do more: {', '.join(bound)}"
        judged = replace(judged, reason="; ".join(each for each in (judged.reason, text) if each))
    return judged


def _lacking(claim: Claim, seen: Observations) -> str:
    """Why sizes are not comparable with the publication's; empty if they are."""
    reasons = [f"this host has no {each}" for each in claim.hardware if each not in seen.hardware]
    if claim.scales and not set(claim.scales) & set(seen.scales):
        reasons.append(f"needs the scale {' or '.join(claim.scales)}")
    return "; ".join(reasons)
