"""Plans the windows of an experiment: their order, times, and smallest p."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadprint.errors import InputError
from loadprint.reading.names import BASELINE, TREATMENT
from loadprint.statistics.orders import orders

if TYPE_CHECKING:
    from loadprint.commands.ab.experiment import Experiment

MIN_BLOCKS = 4
SIGNIFICANT = 6  # 2 of 2^6 sign patterns: p = 0.031


@dataclass(frozen=True)
class Slot:
    """A planned window; `flip`: apply, revert or empty; times in seconds from the start."""

    number: int
    block: int
    variant: str
    flip: str
    settle_s: float
    begin_s: float
    end_s: float


@dataclass(frozen=True)
class WindowPlan:
    """All windows; `flips` counts every switch, including the last, to the initial variant."""

    slots: tuple[Slot, ...]
    flips: int
    seconds: float
    smallest_p: float
    warnings: tuple[str, ...]


def plan(experiment: Experiment) -> WindowPlan:
    """Plan the windows. Raises InputError if they need more flips than allowed."""
    slots: list[Slot] = []
    state: str
    state, now, flips = experiment.initial, 0.0, 0
    for block, variants in enumerate(_blocks(experiment), start=1):
        for variant in variants:
            flip, settle = "", 0.0
            if variant != state:
                flip = "apply" if variant == TREATMENT else "revert"
                treatment = experiment.treatment
                own = treatment.apply_settle if flip == "apply" else treatment.revert_settle
                settle = experiment.schedule.settle if own is None else own
                flips += 1
            elif not slots:
                settle = experiment.schedule.settle
            begin = now + settle
            now = begin + experiment.schedule.window
            slots.append(Slot(len(slots) + 1, block, variant, flip, settle, begin, now))
            state = variant
    flips += state != experiment.initial
    allowed = experiment.schedule.max_flips
    if allowed is not None and flips > allowed:
        raise InputError(
            "schedule.max_flips",
            f"{experiment.schedule.blocks} blocks in order {experiment.schedule.order} flip {flips} times, "
            f"{allowed} are allowed",
            "use fewer blocks, or order ABBA, which flips twice per four windows",
        )
    blocks = experiment.schedule.blocks
    return WindowPlan(tuple(slots), flips, now, smallest_p(blocks), _warnings(experiment))


def smallest_p(blocks: int) -> float:
    """Return the smallest two-sided p of n blocks: in two of 2^n patterns all signs are equal."""
    return min(1.0, 2.0 ** (1 - blocks))


def deadline(experiment: Experiment, planned: WindowPlan) -> float:
    """Return the seconds after which the change is reverted in any case."""
    if experiment.deadline is not None:
        return experiment.deadline
    return 2 * planned.seconds + planned.flips * experiment.treatment.timeout + 120


def _blocks(experiment: Experiment) -> list[tuple[str, ...]]:
    blocks, order = experiment.schedule.blocks, experiment.schedule.order
    if order == "ABBA":
        return [(BASELINE, TREATMENT, TREATMENT, BASELINE)] * blocks
    if order == "TB":
        return [(TREATMENT, BASELINE)] * blocks
    draw = random.Random(experiment.schedule.seed)
    return [tuple(block) for block in orders((BASELINE, TREATMENT), blocks, draw)]


def _count(blocks: int) -> str:
    return "1 block" if blocks == 1 else f"{blocks} blocks"


def _warnings(experiment: Experiment) -> tuple[str, ...]:
    blocks, warnings = experiment.schedule.blocks, []
    if blocks < MIN_BLOCKS:
        warnings.append(f"{_count(blocks)}: below {MIN_BLOCKS} there is no interval, or a wide one")
    if blocks < SIGNIFICANT:
        warnings.append(
            f"{_count(blocks)}: the sign-flip test cannot go below p = {smallest_p(blocks):g}; "
            f"{SIGNIFICANT} reach {smallest_p(SIGNIFICANT):.3f}"
        )
    if experiment.schedule.order == "TB":
        warnings.append("order TB: drift within a block adds to the effect, and carry-over cannot be tested")
    guards = experiment.guards
    if guards.threads_running is None and guards.error_rate is None and guards.queries_per_second_min is None:
        warnings.append(
            "no guard on threads_running, error_rate or queries_per_second_min: only silence stops it"
        )
    return tuple(warnings)
