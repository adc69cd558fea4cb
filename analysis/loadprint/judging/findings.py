"""Defines the facts of runs, and the findings on runs and on a comparison: plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

SOUND = {"comparable": "yes", "client-bound": "no", "pinned": "yes", "overhead": "small", "disturbed": "no"}


@dataclass(frozen=True)
class Fact:
    """One fact of a run. `meaning` is what the value means on this server, if it depends on the version.

    `inputs` are the settings that it depends on, `raw` their values, because a campaign varies settings.
    `optional`: a run can lack it although all that it depends on was recorded.
    """

    group: str
    name: str
    value: str
    material: bool = True
    decides: bool = False
    meaning: str = ""
    inputs: tuple[str, ...] = ()
    raw: Mapping[str, str | None] = field(default_factory=dict)
    optional: bool = False

    @property
    def key(self) -> tuple[str, str]:
        """The key by which facts of two runs are paired."""
        return self.group, self.name


@dataclass(frozen=True)
class Shift:
    """A part of the canary took the share `change` more time after a run than before it.

    Of sides that alternate: before the run's own slices than before those of the others. `limit` is None if
    it is unknown.
    """

    run: str
    part: str
    change: float
    limit: float | None
    disturbed: bool
    in_turns: bool = False


class Judgement(NamedTuple):
    """The answer to a question about one side, and the numbers or reasons."""

    answer: str
    text: str


@dataclass(frozen=True)
class Verdict:
    """A question about the trust in a table: its `key`, the `answer` in a word or two, the numbers.

    `short` is the answer for the line of all questions, if another, with its sides or the one number.
    """

    key: str
    answer: str
    text: str
    short: str = ""

    @property
    def is_sound(self) -> bool:
        """Whether the answer is the one that allows to trust the table."""
        return SOUND[self.key] == self.answer

    def summary(self) -> str:
        """Answer and numbers in one text."""
        return f"{self.answer}: {self.text}" if self.text else self.answer
