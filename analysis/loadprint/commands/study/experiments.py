"""Judges claims by A/B experiments on a live server (`loadprint ab`)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from loadprint import numbers
from loadprint.commands.ab import show
from loadprint.commands.ab.effects import QUANTITIES, block_logs
from loadprint.commands.ab.result import Effect, Result
from loadprint.commands.study import study_file
from loadprint.commands.study.claim_verdicts import (
    DIFFERS,
    EQUIVALENT,
    HOLDS,
    INCONCLUSIVE,
    Judged,
    Verdict,
    not_comparable,
)
from loadprint.commands.study.judgements import beyond
from loadprint.commands.study.side_ratios import at_most, with_interval
from loadprint.judging.facts_host import described
from loadprint.reading.recording import open_run, read_object
from loadprint.statistics import stats
from loadprint.statistics.several import equivalence
from loadprint.statistics.stats import Estimate

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
        take = next(each.take for each in QUANTITIES if each.key == quantity)
        used = [window for window in self.result.windows if window.number not in self.result.excluded]
        return [math.exp(treated - base) for treated, base in block_logs(take, used)]

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
        return not_comparable(seen.nothing_left or f"{judge.quantity} was not measured")
    value = Estimate(measured.ratio, measured.low, measured.high)
    if value.low is None:
        verdict = Verdict(INCONCLUSIVE, "fewer than three blocks")
    elif judge.bound is not None and (equal := equivalence(value, judge.bound)).equal:
        stays = judge.change == "stays"
        verdict = Verdict(HOLDS if stays else EQUIVALENT, figure=at_most([equal.most or 0.0]))
    elif judge.change == "stays":
        beyond_bound = equivalence(value, judge.bound or 0.0).unequal
        verdict = Verdict(DIFFERS if beyond_bound else INCONCLUSIVE)
    else:
        verdict = Verdict(beyond(value, 1.0, 1 if judge.change == "rises" else -1))
    return Judged(f"{measured.label} {with_interval(value)}", verdict, None, measured.blocks)


def one_factor(judge: study_file.OneFactor, seen: Experiment, other: Experiment) -> Judged:
    """Judge the ratio of the effects of two experiments; their blocks are independent (Welch)."""
    effects = [each.result.effect(judge.quantity) for each in (seen, other)]
    texts = [_named(each, found) for each, found in zip((seen, other), effects, strict=True)]
    factors = [each.factors(judge.quantity) for each in (seen, other)]
    if not all(factors):
        lacking = next(each for each, found in zip((seen, other), factors, strict=True) if not found)
        return not_comparable(lacking.nothing_left or f"{judge.quantity} was not measured in {lacking.name}")
    value = stats.ratio(factors[1], factors[0], paired=False)
    result = equivalence(value, judge.bound)
    answer = HOLDS if result.equal else DIFFERS if result.unequal else INCONCLUSIVE
    reason = "fewer than three blocks" if value.low is None else ""
    text = f"{'; '.join(texts)}; {other.name} / {seen.name} {with_interval(value)}"
    return Judged(text, Verdict(answer, reason), None, min(map(len, factors)))


def _named(seen: Experiment, found: Effect | None) -> str:
    if found is None or found.ratio is None:
        return f"{seen.name}: not measured"
    return f"{seen.name} {with_interval(Estimate(found.ratio, found.low, found.high))}"


def undone(judge: study_file.Undone, seen: Experiment) -> Judged:
    """Judge the duration of the slowest command that reverted."""
    seconds = [flip.seconds for flip in show.flips(seen.path) if flip.command == "revert"]
    if not seconds:
        return not_comparable("no command that reverts is recorded")
    text = f"slowest of {len(seconds)} reverts {numbers.brief(max(seconds), 3)} s"
    answer = HOLDS if max(seconds) <= judge.seconds else DIFFERS
    return Judged(text, None, Verdict(answer), seen.result.blocks)


def restored(judge: study_file.Restored, seen: Experiment) -> Judged:
    """Judge by what the keeper verified at the end."""
    del judge
    guards = read_object(seen.path / "load" / "guards.json")
    text = str(guards.get("told") or "")
    return Judged(text, Verdict(HOLDS if guards.get("reverted") else DIFFERS), None, seen.result.blocks)


KINDS: dict[type[Any], Callable[..., Judged]] = {
    study_file.Effect: effect,
    study_file.OneFactor: one_factor,
    study_file.Undone: undone,
    study_file.Restored: restored,
}
