"""Do windows match? The statement mix between variants of a block, and the load among windows of one variant.

A window that does not match is named, and its block does not count; too many of them and the experiment is
inconclusive. Load is compared within a variant only: between variants it is what the experiment asks for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from loadprint import numbers
from loadprint.commands.ab.result import BASELINE, TREATMENT, Check, Window


@dataclass(frozen=True)
class Limits:
    """What still matches.

    `mix_distance`: share of statements that would have to be of another kind, beyond what chance makes of
    their number. `load_difference`: how far queries/s or connections may lie from the median of the variant's
    windows, as a share of it. `min_cpu`: share of the host's CPUs that must be busy, None: any.
    """

    mix_distance: float = 0.05
    load_difference: float = 0.2
    min_cpu: float | None = None


def mix_distance(one: Mapping[str, float], other: Mapping[str, float]) -> float | None:
    """Total variation distance of two mixes beyond what chance makes of it; None where one is empty.

    Half the sum of |p − q|; its expectation under one common mix with Poisson counts is taken off, for long
    tails of rare statements differ in every pair of windows.
    """
    keys = sorted({*one, *other})
    a = np.array([max(0.0, one.get(key, 0.0)) for key in keys])
    b = np.array([max(0.0, other.get(key, 0.0)) for key in keys])
    if not a.sum() or not b.sum():
        return None
    n, m = float(a.sum()), float(b.sum())
    distance = 0.5 * float(np.abs(a / n - b / m).sum())
    common = (a + b) / (n + m)
    chance = 0.5 * math.sqrt(2 / math.pi) * float(np.sqrt(common * (1 - common) * (1 / n + 1 / m)).sum())
    return max(0.0, distance - chance)


@dataclass(frozen=True)
class Matched:
    """What the gates say: window number → why it does not count, and a line for each gate."""

    excluded: dict[int, str]
    checks: tuple[Check, ...]


def match(windows: Sequence[Window], limits: Limits) -> Matched:
    """Judge all windows; of a window that does not match the whole block is left out."""
    wrong: dict[int, str] = {}
    checks = (_mix(windows, limits, wrong), _load(windows, limits, wrong), _cpu(windows, limits, wrong))
    for window in windows:
        if window.note:
            wrong.setdefault(window.number, window.note)
    named = dict(wrong)
    for window in windows:
        first = next((w for w in windows if w.block == window.block and w.number in named), None)
        if first is not None:
            wrong.setdefault(window.number, f"its block has window {first.name}")
    return Matched(wrong, checks)


def _mix(windows: Sequence[Window], limits: Limits, wrong: dict[int, str]) -> Check:
    by, largest, worst, compared = "kind of statement (Com_*)", 0.0, "", 0
    if windows and all(window.digests for window in windows):
        by = "digest"
    for block in sorted({window.block for window in windows}):
        ours = [window for window in windows if window.block == block]
        for one in (window for window in ours if window.variant == TREATMENT):
            for other in (window for window in ours if window.variant == BASELINE):
                mixes = [window.digests if by == "digest" else window.kinds for window in (one, other)]
                found = mix_distance(mixes[0] or {}, mixes[1] or {})
                if found is None:
                    continue
                compared += 1
                if found >= largest:
                    largest, worst = found, f"{one.name} and {other.name}"
                if found > limits.mix_distance:
                    said = f"{100 * found:.1f} % of the statements differ between {one.name} and {other.name}"
                    wrong.setdefault(one.number, said)
                    wrong.setdefault(other.number, said)
    if not compared:
        return Check("statement mix", "untested", "no statements were counted")
    state = "failed" if largest > limits.mix_distance else "passed"
    text = (
        f"by {by}, at most {100 * largest:.1f} % of the statements differ ({worst}); limit "
        f"{100 * limits.mix_distance:g} %"
    )
    return Check("statement mix", state, text)


def _load(windows: Sequence[Window], limits: Limits, wrong: dict[int, str]) -> Check:
    largest, worst, compared = 0.0, "", 0
    for variant in (TREATMENT, BASELINE):
        ours = [window for window in windows if window.variant == variant]
        for what, values in (
            ("queries/s", [window.queries for window in ours]),
            ("connections", [window.connections for window in ours]),
        ):
            known = [value for value in values if value is not None]
            middle = float(np.median(known)) if len(known) > 1 else 0.0
            if not middle:
                continue
            for window, value in zip(ours, values, strict=True):
                if value is None:
                    continue
                compared += 1
                off = value / middle - 1
                if abs(off) >= abs(largest):
                    largest, worst = off, f"{what} of {window.name}"
                if abs(off) > limits.load_difference:
                    said = f"its {what} are {numbers.change(off, 0)} off the {variant} windows' median"
                    wrong.setdefault(window.number, said)
    if not compared:
        return Check("load", "untested", "one window of each variant: nothing to compare it with")
    state = "failed" if abs(largest) > limits.load_difference else "passed"
    text = (
        f"within a variant, at most {numbers.change(largest, 1)} off its median ({worst}); limit "
        f"{100 * limits.load_difference:g} %"
    )
    return Check("load", state, text)


def _cpu(windows: Sequence[Window], limits: Limits, wrong: dict[int, str]) -> Check:
    known = [(window.host_busy, window) for window in windows if window.host_busy is not None]
    if not known:
        return Check("high CPU", "untested", "the host's CPUs were not recorded")
    least, window = min(known, key=lambda pair: pair[0])
    text = f"the host's CPUs were at least {100 * least:.0f} % busy ({window.name})"
    if limits.min_cpu is None:
        return Check("high CPU", "untested", f"{text}; no limit was set (gates.min_cpu)")
    for busy, each in known:
        if busy < limits.min_cpu:
            wrong.setdefault(each.number, f"the host's CPUs were {100 * busy:.0f} % busy")
    state = "failed" if least < limits.min_cpu else "passed"
    return Check("high CPU", state, f"{text}; limit {100 * limits.min_cpu:g} %")
