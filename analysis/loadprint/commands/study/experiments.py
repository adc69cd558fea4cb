"""Judges claims by A/B experiments on a live server (`loadprint ab`)."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from loadprint import numbers
from loadprint.commands.ab import show
from loadprint.commands.ab.result import Result
from loadprint.commands.study import study_file
from loadprint.commands.study.judgements import (
    DIFFERS,
    HOLDS,
    INCONCLUSIVE,
    NOT_COMPARABLE,
    Judged,
    beyond,
    within,
)
from loadprint.judging.facts_host import described
from loadprint.reading.recording import open_run, read_object

FOLDER = re.compile(r"/(?:[^\s/'\"]+/)+")  # of a path in a command


class Experiment:
    """The recording of one experiment. Raises InputError if it is not one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.result: Result = show.result(path)

    @property
    def name(self) -> str:
        """Name of the experiment."""
        return self.result.name

    @property
    def command(self) -> str:
        """The command that measures it again."""
        return f"ansible-playbook ab.yml -e ab_experiment={self.name}.yml"

    @property
    def amount(self) -> str:
        """Load, change, schedule, blocks and wall time."""
        minutes = max([1.0, *(window.end_s / 60 for window in self.result.windows)])
        change = FOLDER.sub("", dict(self.result.facts)["apply"])
        texts = (self.result.title, self.result.schedule, f"{self.result.blocks_used} blocks used")
        return f"{', '.join(texts)}, in {minutes:.0f} min; the change: {change}"

    @property
    def fact(self) -> str:
        """Path and amount."""
        return f"{self.path}, {self.amount}"

    @property
    def machine(self) -> str:
        """The server's host."""
        return described(open_run(self.path).fingerprint("server"))


def effect(judge: study_file.Effect, seen: Experiment) -> Judged:
    """Judge the interval of an effect over blocks."""
    measured = seen.result.effect(judge.quantity)
    if measured is None or measured.ratio is None:
        return Judged(NOT_COMPARABLE, "", reason=f"{judge.quantity} was not measured")
    if measured.low is None or measured.high is None:
        return Judged(INCONCLUSIVE, numbers.ratio(measured.ratio), measured.blocks, "fewer than three blocks")
    if judge.change == "stays":
        answer = within(measured, 1 / (1 + judge.within), 1 + judge.within)
    else:
        answer = beyond(measured, 1.0, 1 if judge.change == "rises" else -1)
    bounds = ", ".join(map(numbers.ratio, (measured.low, measured.high)))
    return Judged(answer, f"{measured.label} {numbers.ratio(measured.ratio)} [{bounds}]", measured.blocks)


def switching(judge: study_file.Switching, seen: Experiment) -> Judged:
    """Judge the duration of the slowest command that switched."""
    seconds = [flip.seconds for flip in show.flips(seen.path)]
    if not seconds:
        return Judged(NOT_COMPARABLE, "", reason="no command is recorded")
    text = f"slowest of {len(seconds)} switches {numbers.brief(max(seconds), 3)} s"
    return Judged(HOLDS if max(seconds) <= judge.seconds else DIFFERS, text, seen.result.blocks)


def restored(judge: study_file.Restored, seen: Experiment) -> Judged:
    """Judge by what the keeper verified at the end."""
    del judge
    guards = read_object(seen.path / "load" / "guards.json")
    text = str(guards.get("told") or "")
    return Judged(HOLDS if guards.get("reverted") else DIFFERS, text, seen.result.blocks)


KINDS: dict[type[Any], Callable[[Any, Experiment], Judged]] = {
    study_file.Effect: effect,
    study_file.Switching: switching,
    study_file.Restored: restored,
}
