"""Findings on runs and on a comparison as plain values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Shift:
    """The canary: a part of its work took `change` more time after a run than before it.

    `limit` is None where nobody can judge.
    """

    run: str
    part: str
    change: float
    limit: float | None
    disturbed: bool


@dataclass(frozen=True)
class Verdict:
    """What a reader looks at first: `key` is the question, `answer` a word or two, `text` the numbers."""

    key: str
    answer: str
    text: str

    def summary(self) -> str:
        """Answer and numbers as one text."""
        return f"{self.answer}: {self.text}" if self.text else self.answer
