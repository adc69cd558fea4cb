"""Judges claims by A/B experiments on a live server (`loadprint ab`)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from loadprint import numbers
from loadprint.commands.ab import show
from loadprint.commands.ab.result import Result
from loadprint.commands.study import study_file
from loadprint.commands.study.judgements import DIFFERS, HOLDS, INCONCLUSIVE, NOT_COMPARABLE, Answer, Judged
from loadprint.reading.recording import read_object

COMMAND = "apply revert"


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
    def fact(self) -> str:
        """Path, schedule and blocks."""
        return f"{self.path}, {self.result.schedule}, {self.result.blocks_used} blocks used"


def is_experiment(path: Path) -> bool:
    """Whether a path is the recording of an A/B experiment."""
    return (path / "load" / "experiment.json").is_file()


def effect(judge: study_file.Effect, seen: Experiment) -> Judged:
    """Judge the interval of an effect over blocks."""
    measured = seen.result.effect(judge.quantity)
    if measured is None or measured.ratio is None:
        return Judged(NOT_COMPARABLE, "", reason=f"{judge.quantity} was not measured")
    if measured.low is None or measured.high is None:
        text = numbers.ratio(measured.ratio)
        return Judged(INCONCLUSIVE, text, measured.blocks, "fewer than three blocks")
    low, high = measured.low, measured.high
    bounds = (1 / (1 + judge.within), 1 + judge.within)
    answers: dict[str, Answer] = {
        "rises": HOLDS if low > 1 else DIFFERS if high < 1 else INCONCLUSIVE,
        "falls": HOLDS if high < 1 else DIFFERS if low > 1 else INCONCLUSIVE,
        "stays": HOLDS
        if bounds[0] <= low and high <= bounds[1]
        else DIFFERS
        if high < bounds[0] or low > bounds[1]
        else INCONCLUSIVE,
    }
    text = f"{measured.label} {numbers.ratio(measured.ratio)} [{numbers.ratio(low)}, {numbers.ratio(high)}]"
    return Judged(answers[judge.change], text, measured.blocks)


def switching(judge: study_file.Switching, seen: Experiment) -> Judged:
    """Judge the duration of the slowest command that switched."""
    seconds = _durations(seen.path)
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


def _durations(path: Path) -> list[float]:
    """Seconds of every apply and revert (load/switches.jsonl)."""
    seconds, begin = [], 0
    for line in (path / "load" / "switches.jsonl").read_text(encoding="utf-8").splitlines():
        each = json.loads(line)
        if each.get("event") == "begin":
            begin = each["monotonic_ns"]
        elif each.get("what") in COMMAND.split():
            seconds.append((each["monotonic_ns"] - begin) / 1e9)
    return seconds


KINDS: dict[type[Any], Callable[[Any, Experiment], Judged]] = {
    study_file.Effect: effect,
    study_file.Switching: switching,
    study_file.Restored: restored,
}
