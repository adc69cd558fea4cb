"""Defines the verdicts of a claim: one on the direction of an effect, one on its size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from loadprint.statistics import answers

Answer = Literal["holds"] | answers.Answer
ANSWERS: tuple[Answer, ...] = ("holds", *get_args(answers.Answer))
FEW = "fewer than three repeats"


@dataclass(frozen=True)
class ClaimVerdict:
    """`figure` is what only this verdict is about, with its interval; `reason` why it is not another one.

    `more`: repeats per side that would decide an undecided one.
    """

    answer: Answer
    reason: str = ""
    figure: str = ""
    more: int | None = None

    def because(self, reason: str) -> ClaimVerdict:
        """The same verdict with a further reason."""
        return replace(self, reason="; ".join(text for text in (self.reason, reason) if text))

    def void(self, reason: str) -> ClaimVerdict:
        """An undecided verdict on the same figure."""
        if self.answer == "not comparable":
            return self
        return replace(self.because(reason), answer="undecided", more=None)

    def as_possible(self) -> ClaimVerdict:
        """The verdict on a claim that this is possible."""
        if self.answer not in ("differs", "equivalent"):
            return self
        return self.void("not so here, which does not show that it is impossible")


@dataclass(frozen=True)
class Judged:
    """`measured` is the figure with its interval; None: the claim is not about direction, or not about size.

    `needs` is the command that would measure the claim.
    """

    measured: str
    direction: ClaimVerdict | None = None
    size: ClaimVerdict | None = None
    repeats: int = 0
    needs: str = ""

    @property
    def verdicts(self) -> tuple[ClaimVerdict, ...]:
        """The verdicts that the claim has, direction first."""
        return tuple(verdict for verdict in (self.direction, self.size) if verdict is not None)

    @property
    def answer(self) -> Answer:
        """The answer on the direction, or on the size if the claim is about nothing else."""
        return self.verdicts[0].answer

    def void(self, reason: str) -> Judged:
        """The same figures without a verdict."""
        direction, size = (verdict and verdict.void(reason) for verdict in (self.direction, self.size))
        return replace(self, direction=direction, size=size)

    def as_possible(self) -> Judged:
        """The same figures for a claim of a possibility, which one counterexample does not refute."""
        direction, size = (verdict and verdict.as_possible() for verdict in (self.direction, self.size))
        return replace(self, direction=direction, size=size)

    def measured_otherwise(self, reason: str) -> Judged:
        """The same verdicts with a reason for a difference in size; without a size it is one of the other."""
        if self.size is not None:
            return replace(self, size=self.size.because(reason))
        return replace(self, direction=self.direction and self.direction.because(reason))


def not_comparable(reason: str, needs: str = "") -> Judged:
    """A claim that was not measured."""
    return Judged("", ClaimVerdict("not comparable", reason), needs=needs)


def worst(answers: Sequence[Answer]) -> Answer:
    """The answer of a claim whose parts must all hold: one that differs decides."""
    decisive: tuple[Answer, ...] = ("differs", "undecided", "equivalent")
    return next((answer for answer in decisive if answer in answers), "holds")
