"""Excludes windows that do not match in statement mix, load or CPU utilisation.

The statement mix is compared between the variants of a block, the load between windows of one
variant: its difference between variants is a result. The block of an excluded window is excluded;
with too many excluded blocks the experiment is inconclusive.
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
    """The limits of the gates.

    `mix_distance`: share of statements of another kind, beyond the expected random difference.
    `load_difference`: difference of queries/s or connections from the median of the variant's
    windows, as a share of it. `min_cpu`: minimum share of the host's CPUs that is busy; None: no
    limit.
    """

    mix_distance: float = 0.05
    load_difference: float = 0.2
    min_cpu: float | None = None


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


@dataclass(frozen=True)
class Gated:
    """The result of the gates: window number → why it is excluded, and a check for each gate."""

    excluded: dict[int, str]
    checks: tuple[Check, ...]


def apply_gates(windows: Sequence[Window], limits: Limits) -> Gated:
    """Apply the gates to all windows; a window beyond a limit excludes its block."""
    excluded: dict[int, str] = {}
    checks = (
        _mix(windows, limits, excluded),
        _load(windows, limits, excluded),
        _cpu(windows, limits, excluded),
    )
    for window in windows:
        if window.note:
            excluded.setdefault(window.number, window.note)
    direct = dict(excluded)
    for window in windows:
        first = next((w for w in windows if w.block == window.block and w.number in direct), None)
        if first is not None:
            excluded.setdefault(window.number, f"its block contains window {first.name}")
    return Gated(excluded, checks)


def _mix(windows: Sequence[Window], limits: Limits, excluded: dict[int, str]) -> Check:
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
                if distance > limits.mix_distance:
                    reason = (
                        f"{100 * distance:.1f} % of the statements differ between {one.name} and {other.name}"
                    )
                    excluded.setdefault(one.number, reason)
                    excluded.setdefault(other.number, reason)
    if not compared:
        return Check("statement mix", "untested", "no statements were counted")
    state = "failed" if largest > limits.mix_distance else "passed"
    text = (
        f"by {by}, at most {100 * largest:.1f} % of the statements differ ({worst}); limit "
        f"{100 * limits.mix_distance:g} %"
    )
    return Check("statement mix", state, text)


def _load(windows: Sequence[Window], limits: Limits, excluded: dict[int, str]) -> Check:
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
                    reason = f"its {what} are {numbers.change(off, 0)} off the {variant} windows' median"
                    excluded.setdefault(window.number, reason)
    if not compared:
        return Check("load", "untested", "each variant has only one window")
    state = "failed" if abs(largest) > limits.load_difference else "passed"
    text = (
        f"within a variant, at most {numbers.change(largest, 1)} off the median ({worst}); limit "
        f"{100 * limits.load_difference:g} %"
    )
    return Check("load", state, text)


def _cpu(windows: Sequence[Window], limits: Limits, excluded: dict[int, str]) -> Check:
    known = [(window.host_busy, window) for window in windows if window.host_busy is not None]
    if not known:
        return Check("high CPU", "untested", "the host's CPUs were not recorded")
    lowest, window = min(known, key=lambda pair: pair[0])
    text = f"the host's CPUs were at least {100 * lowest:.0f} % busy ({window.name})"
    if limits.min_cpu is None:
        return Check("high CPU", "untested", f"{text}; no limit was set (gates.min_cpu)")
    for busy, each in known:
        if busy < limits.min_cpu:
            excluded.setdefault(each.number, f"the host's CPUs were {100 * busy:.0f} % busy")
    state = "failed" if lowest < limits.min_cpu else "passed"
    return Check("high CPU", state, f"{text}; limit {100 * limits.min_cpu:g} %")
