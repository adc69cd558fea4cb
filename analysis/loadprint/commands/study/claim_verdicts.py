"""Defines the verdicts of a claim: one on the direction of an effect, one on its size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

Answer = Literal["holds", "equivalent", "differs", "inconclusive", "not comparable"]
HOLDS: Answer = "holds"
EQUIVALENT: Answer = "equivalent"
DIFFERS: Answer = "differs"
INCONCLUSIVE: Answer = "inconclusive"
NOT_COMPARABLE: Answer = "not comparable"
ANSWERS = (HOLDS, EQUIVALENT, DIFFERS, INCONCLUSIVE, NOT_COMPARABLE)
FEW = "fewer than three repeats"
MOST_REPEATS = 30  # more are not a plan
LEAST_EFFECT = 0.01  # a smaller difference is not worth repeats


@dataclass(frozen=True)
class Verdict:
    """`figure` is what only this verdict is about, with its interval; `reason` why it is not another one.

    `more`: repeats per side that would decide an inconclusive one.
    """

    answer: Answer
    reason: str = ""
    figure: str = ""
    more: int | None = None


@dataclass(frozen=True)
class Judged:
    """`measured` is the figure with its interval; None: the claim is not about direction, or not about size.

    `needs` is the command that would measure the claim.
    """

    measured: str
    direction: Verdict | None = None
    size: Verdict | None = None
    repeats: int = 0
    needs: str = ""

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The verdicts that the claim has, direction first."""
        return tuple(each for each in (self.direction, self.size) if each is not None)

    @property
    def answer(self) -> Answer:
        """The answer on the direction, or on the size if the claim is about nothing else."""
        return self.verdicts[0].answer

    def void(self, reason: str) -> Judged:
        """The same figures without a verdict."""
        return replace(self, direction=_void(self.direction, reason), size=_void(self.size, reason))

    def measured_otherwise(self, reason: str) -> Judged:
        """The same verdicts with a reason for a difference in size; without a size it is one of the other."""
        if self.size is not None:
            return replace(self, size=_because(self.size, reason))
        return self if self.direction is None else replace(self, direction=_because(self.direction, reason))


def not_comparable(reason: str, needs: str = "") -> Judged:
    """A claim that was not measured."""
    return Judged("", Verdict(NOT_COMPARABLE, reason), needs=needs)


def _void(verdict: Verdict | None, reason: str) -> Verdict | None:
    if verdict is None or verdict.answer == NOT_COMPARABLE:
        return verdict
    return replace(_because(verdict, reason), answer=INCONCLUSIVE, more=None)


def _because(verdict: Verdict, reason: str) -> Verdict:
    return replace(verdict, reason="; ".join(each for each in (verdict.reason, reason) if each))


def worst(answers: Sequence[Answer]) -> Answer:
    """The answer of a claim whose parts must all hold: one that differs decides."""
    return next((each for each in (DIFFERS, INCONCLUSIVE, EQUIVALENT) if each in answers), HOLDS)
