"""Checks whether windows match, and excludes those during which the machine's speed was another.

Only fixed work, timed in the gap before each window, excludes a window, with its block: it does not
depend on the load. Statement mix, load and CPU utilisation are compared and reported. They exclude
nothing, because they can follow from the treatment: in a closed loop, queries per second are its effect.
With too many excluded blocks the effect is not measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from loadprint import numbers
from loadprint.commands.ab.effects import Take
from loadprint.commands.ab.experiment import Gates
from loadprint.commands.ab.result import AbWindow, Check
from loadprint.reading.names import BASELINE, TREATMENT


def mix_distance(one: Mapping[str, float], other: Mapping[str, float]) -> float | None:
    """Return the total variation distance of two mixes beyond chance; None if one is empty.

    Half the sum of |p − q|, minus its expectation under one common mix with Poisson counts, because
    long tails of rare statements differ between any two windows.
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


def apply_gates(windows: Sequence[AbWindow], limits: Gates) -> tuple[dict[int, str], tuple[Check, ...]]:
    """Return window number → why it is excluded, and a check for each gate.

    A window with other fixed work, or without counts, excludes its block.
    """
    excluded: dict[int, str] = {}
    checks = (
        _fixed_work(windows, limits, excluded),
        _mix(windows, limits),
        _load(windows, limits),
        _cpu(windows, limits),
    )
    for window in windows:
        if window.note:
            excluded.setdefault(window.number, window.note)
    direct = dict(excluded)
    for window in windows:
        first = next((w for w in windows if w.block == window.block and w.number in direct), None)
        if first is not None:
            excluded.setdefault(window.number, f"its block contains window {first.name}")
    return excluded, checks


def _deviations(windows: Sequence[AbWindow], take: Take) -> Iterator[tuple[float, AbWindow]]:
    """By how much each window is off the median of its variant, as a share: an effect moves the median."""
    for variant in (TREATMENT, BASELINE):
        taken = [(window, take(window)) for window in windows if window.variant == variant]
        measured = [(window, value) for window, value in taken if value is not None]
        middle = float(np.median([value for _, value in measured])) if len(measured) > 1 else 0.0
        for window, value in measured if middle else ():
            yield value / middle - 1, window


def _fixed_work(windows: Sequence[AbWindow], limits: Gates, excluded: dict[int, str]) -> Check:
    """Compare each window with those of its variant: an effect on the machine's speed excludes none."""
    deviations = list(_deviations(windows, lambda window: window.fixed_work_ns or None))
    for off, window in deviations:
        if abs(off) > limits.fixed_work:
            excluded[window.number] = (
                f"the fixed work before it took {numbers.change(off, 0)} CPU time: another speed"
            )
    if not deviations:
        return Check("fixed work", "untested", "not recorded; no block is excluded")
    largest, worst = max(reversed(deviations), key=lambda deviation: abs(deviation[0]))
    text = (
        f"CPU time before each window, at most {numbers.change(largest, 1)} off the variant's median "
        f"({worst.name}); limit {100 * limits.fixed_work:g} %"
    )
    return Check("fixed work", "failed" if abs(largest) > limits.fixed_work else "passed", text)


def _mix(windows: Sequence[AbWindow], limits: Gates) -> Check:
    by, largest, worst, compared = "kind of statement (Com_*)", 0.0, "", 0
    if windows and all(window.digests for window in windows):
        by = "digest"
    for block in sorted({window.block for window in windows}):
        ours = [window for window in windows if window.block == block]
        for one in (window for window in ours if window.variant == TREATMENT):
            for other in (window for window in ours if window.variant == BASELINE):
                mixes = [window.digests if by == "digest" else window.kinds for window in (one, other)]
                distance = mix_distance(mixes[0] or {}, mixes[1] or {})
                if distance is None:
                    continue
                compared += 1
                if distance >= largest:
                    largest, worst = distance, f"{one.name} and {other.name}"
    if not compared:
        return Check("statement mix", "untested", "no statements were counted")
    state = "failed" if largest > limits.mix_distance else "passed"
    text = (
        f"by {by}, at most {100 * largest:.1f} % of the statements differ ({worst}); limit "
        f"{100 * limits.mix_distance:g} %"
    )
    return Check("statement mix", state, text)


def _load(windows: Sequence[AbWindow], limits: Gates) -> Check:
    takes: dict[str, Take] = {"queries/s": lambda w: w.queries, "connections": lambda w: w.connections}
    deviations = [
        (off, f"{what} of {window.name}")
        for what, take in takes.items()
        for off, window in _deviations(windows, take)
    ]
    if not deviations:
        return Check("load", "untested", "no variant has two windows with a load")
    largest, worst = max(reversed(deviations), key=lambda deviation: abs(deviation[0]))
    state = "failed" if abs(largest) > limits.load_difference else "passed"
    text = (
        f"within a variant, at most {numbers.change(largest, 1)} off the median ({worst}); limit "
        f"{100 * limits.load_difference:g} %"
    )
    return Check("load", state, text)


def _cpu(windows: Sequence[AbWindow], limits: Gates) -> Check:
    measured = [(window.host_busy, window) for window in windows if window.host_busy is not None]
    if not measured:
        return Check("high CPU", "untested", "the host's CPUs were not recorded")
    lowest, window = min(measured, key=lambda pair: pair[0])
    text = f"the host's CPUs were at least {100 * lowest:.0f} % busy ({window.name})"
    if limits.min_cpu is None:
        return Check("high CPU", "untested", f"{text}; no limit was set (gates.min_cpu)")
    state = "failed" if lowest < limits.min_cpu else "passed"
    return Check("high CPU", state, f"{text}; limit {100 * limits.min_cpu:g} %")
