"""Defines the findings on runs and on a comparison, plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class Shift:
    """A part of the canary took the share `change` more time after a run than before it.

    `limit` is None if it is unknown.
    """

    run: str
    part: str
    change: float
    limit: float | None
    disturbed: bool


class Judgement(NamedTuple):
    """The answer to a question about one side, and the numbers or reasons."""

    answer: str
    text: str


@dataclass(frozen=True)
class Verdict:
    """A line above the table: `key` is the question, `answer` a word or two, `text` the numbers."""

    key: str
    answer: str
    text: str

    def summary(self) -> str:
        """Answer and numbers in one text."""
        return f"{self.answer}: {self.text}" if self.text else self.answer
