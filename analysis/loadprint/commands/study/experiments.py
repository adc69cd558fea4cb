"""Defines the claims on A/B experiments on a live server (`loadprint ab`), and judges them."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from loadprint import numbers
from loadprint.commands.ab import show
from loadprint.commands.ab.effects import QUANTITIES, block_logs
from loadprint.commands.ab.result import Result
from loadprint.commands.study.campaign_claims import Bound, beyond
from loadprint.commands.study.claim_verdicts import Answer, ClaimVerdict, Judged, not_comparable
from loadprint.commands.study.side_ratios import at_most, with_interval
from loadprint.configuration.field_types import Name, Strict
from loadprint.reading.recording import open_run
from loadprint.reading.run_documents import Fingerprint
from loadprint.statistics import stats
from loadprint.statistics.several import equivalence
from loadprint.statistics.stats import Estimate

FOLDER = re.compile(r"/(?:[^\s/'\"]+/)+")  # of a path in a command


class StudyExperiment:
    """The recording of one experiment. Raises InputError if it is not one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.result: Result = show.result(path)
        self.name = self.result.name
        self.command = f"ansible-playbook ab.yml -e ab_experiment={self.name}.yml"

    @property
    def fingerprint(self) -> Fingerprint:
        """The server's host."""
        return open_run(self.path).fingerprint("server")

    @property
    def amount(self) -> str:
        """Load, change, schedule, blocks and wall time."""
        minutes = max([1.0, *(window.end_s / 60 for window in self.result.windows)])
        change = FOLDER.sub("", dict(self.result.facts)["apply"])
        texts = (self.result.title, self.result.schedule, f"{self.result.blocks_used} blocks used")
        return f"{', '.join(texts)}, in {minutes:.0f} min; the change: {change}"

    @property
    def nothing_left(self) -> str:
        """Why no block can be used; empty if one can."""
        if self.result.blocks_used:
            return ""
        if not self.result.blocks:
            return f"{self.name} has no complete window"
        first = next(iter(self.result.excluded.values()), "")
        return f"all {self.result.blocks} blocks of {self.name} are excluded: {first}"

    def factors(self, quantity: str) -> list[float]:
        """Treatment / baseline of a quantity in each used block."""
        take = next(row.take for row in QUANTITIES if row.key == quantity)
        used = [window for window in self.result.windows if window.number not in self.result.excluded]
        return [math.exp(treated - base) for treated, base in block_logs(take, used)]

    def effect(self, quantity: str) -> Estimate | None:
        """The effect on a quantity with its interval; None if it was not measured."""
        effect = self.result.effect(quantity)
        if effect is None or effect.ratio is None:
            return None
        return Estimate(effect.ratio, effect.low, effect.high)


class StudyEffect(Strict):
    """The treatment of an A/B experiment makes a quantity rise or fall, or it stays within `bound`."""

    kind: Literal["effect"]
    quantity: Literal["queries", "cpu", "queries_per_cpu_second"]
    change: Literal["rises", "falls", "stays"]
    bound: Bound | None = None

    @model_validator(mode="after")
    def _bound(self) -> StudyEffect:
        if self.change == "stays" and self.bound is None:
            raise ValueError("give `bound`, the largest change that still counts as none")
        return self

    def judged(self, seen: StudyExperiment) -> Judged:
        """Judge the interval of the effect over blocks."""
        measured, value = seen.result.effect(self.quantity), seen.effect(self.quantity)
        if measured is None or value is None:
            return not_comparable(seen.nothing_left or f"{self.quantity} was not measured")
        stays, equal = self.change == "stays", equivalence(value, self.bound or 0.0)
        if value.low is None:
            verdict = ClaimVerdict("undecided", "fewer than three blocks")
        elif self.bound is not None and equal.equal:
            verdict = ClaimVerdict("holds" if stays else "equivalent", figure=at_most([equal.most or 0.0]))
        elif stays:
            verdict = ClaimVerdict("differs" if equal.unequal else "undecided")
        else:
            verdict = ClaimVerdict(beyond(value, 1.0, 1 if self.change == "rises" else -1))
        text = f"{measured.label} {with_interval(value)}"
        direction, size = (None, verdict) if stays else (verdict, None)
        return Judged(text, direction, size, measured.blocks)


class OneFactor(Strict):
    """A quantity changes by the same factor in an A/B experiment and in `other`, within `bound`.

    Of a rise and a fall no factor is the same.
    """

    kind: Literal["one factor"]
    quantity: Literal["queries", "cpu", "queries_per_cpu_second"]
    other: Name
    bound: Bound

    def judged(self, seen: StudyExperiment, other: StudyExperiment) -> Judged:
        """Judge the ratio of the effects of two experiments; their blocks are independent (Welch)."""
        both = (seen, other)
        factors = [experiment.factors(self.quantity) for experiment in both]
        for experiment, factor in zip(both, factors, strict=True):
            if not factor:
                reason = f"{self.quantity} was not measured in {experiment.name}"
                return not_comparable(experiment.nothing_left or reason)
        effects = [(experiment.name, experiment.effect(self.quantity)) for experiment in both]
        texts = [f"{name} {with_interval(value)}" for name, value in effects if value]
        value = stats.ratio(factors[1], factors[0], paired=False)
        result = equivalence(value, self.bound)
        answer: Answer = "holds" if result.equal else "differs" if result.unequal else "undecided"
        reason = "fewer than three blocks" if value.low is None else ""
        if {beyond(value, 1.0, 1) for _, value in effects if value} == {"holds", "differs"}:
            answer, reason = "differs", "it rises in one and falls in the other"
        text = f"{'; '.join(texts)}; {other.name} / {seen.name} {with_interval(value)}"
        return Judged(text, None, ClaimVerdict(answer, reason), min(map(len, factors)))


class Undone(Strict):
    """Every command of an A/B experiment that reverts ends within some seconds."""

    kind: Literal["undone"]
    seconds: Annotated[float, Field(gt=0)]

    def judged(self, seen: StudyExperiment) -> Judged:
        """Judge the duration of the slowest command that reverted."""
        seconds = [flip.seconds for flip in show.flips(seen.path) if flip.command == "revert"]
        if not seconds:
            return not_comparable("no command that reverts is recorded")
        text = f"slowest of {len(seconds)} reverts {numbers.brief(max(seconds), 3)} s"
        quick = max(seconds) <= self.seconds
        verdict = ClaimVerdict("holds") if quick else ClaimVerdict("differs", f"over {self.seconds:g} s")
        return Judged(text, None, verdict, seen.result.blocks)


class Restored(Strict):
    """An A/B experiment ended in the variant in which it found the server."""

    kind: Literal["restored"]

    def judged(self, seen: StudyExperiment) -> Judged:
        """Judge by what the keeper verified at the end."""
        guards = show.guards(seen.path)
        verdict = ClaimVerdict("holds") if guards.reverted else ClaimVerdict("differs", "not verified")
        return Judged(guards.told, verdict, None, seen.result.blocks)


OfExperiment = StudyEffect | OneFactor | Undone | Restored
