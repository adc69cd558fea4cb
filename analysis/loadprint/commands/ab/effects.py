"""Computes effects: the difference of mean logs per block, its mean and interval over blocks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from loadprint.commands.ab.inference import sign_flip
from loadprint.commands.ab.result import HEADLINE, AbWindow, Effect
from loadprint.reading.names import BASELINE, TREATMENT
from loadprint.statistics import stats

Take = Callable[[AbWindow], float | None]


@dataclass(frozen=True)
class WindowQuantity:
    """A quantity of a window: its value, name and unit."""

    key: str
    label: str
    unit: str
    better: str
    take: Take
    factor: float = 1.0


QUANTITIES = (
    WindowQuantity("queries", "queries", "/s", "higher", lambda w: w.queries),
    WindowQuantity("cpu", "CPU of the server", "%", "lower", lambda w: w.cpu, 100.0),
    WindowQuantity(HEADLINE, "queries per CPU-second", "/s", "higher", lambda w: w.efficiency),
    WindowQuantity("cpu_per_query", "CPU per query", "µs", "lower", lambda w: w.cost, 1e6),
    WindowQuantity("commits", "commits", "/s", "higher", lambda w: w.commits),
    WindowQuantity("rows", "rows read and written", "/s", "neither", lambda w: w.rows),
    WindowQuantity("host_busy", "host CPUs busy", "%", "neither", lambda w: w.host_busy, 100.0),
)


def effects(windows: Sequence[AbWindow]) -> tuple[Effect, ...]:
    """Return the effects of all quantities over the used windows."""
    return tuple(effect(quantity, windows) for quantity in QUANTITIES)


def block_logs(take: Take, windows: Sequence[AbWindow]) -> list[tuple[float, float]]:
    """Return the mean ln of treatment and of baseline windows, for each block without a gap."""
    pairs = []
    for block in sorted({window.block for window in windows}):
        sides: dict[str, list[float | None]] = {TREATMENT: [], BASELINE: []}
        for window in windows:
            if window.block == block:
                sides[window.variant].append(take(window))
        logs = [[math.log(value) for value in values if value] for values in sides.values()]
        complete = all(
            values and len(kept) == len(values) for values, kept in zip(sides.values(), logs, strict=True)
        )
        if complete:
            pairs.append((sum(logs[0]) / len(logs[0]), sum(logs[1]) / len(logs[1])))
    return pairs


def effect(quantity: WindowQuantity, windows: Sequence[AbWindow]) -> Effect:
    """Return the effect of a quantity; without a complete block its values are None, with a note."""
    pairs = block_logs(quantity.take, windows)
    name = (quantity.key, quantity.label, quantity.unit, quantity.better)
    if not pairs:
        missing = any(quantity.take(window) is None for window in windows)
        note = "missing in a window" if missing else "0 in a window"
        return Effect(*name, None, None, None, note=note if windows else "no usable block")
    treated, base = [math.exp(pair[0]) for pair in pairs], [math.exp(pair[1]) for pair in pairs]
    estimate = stats.ratio(treated, base, paired=True)
    return Effect(
        *name,
        treatment=quantity.factor * _geometric_mean([pair[0] for pair in pairs]),
        baseline=quantity.factor * _geometric_mean([pair[1] for pair in pairs]),
        ratio=estimate.centre,
        low=estimate.low,
        high=estimate.high,
        p_sign=sign_flip([t - b for t, b in pairs]),
        blocks=len(pairs),
    )


def _geometric_mean(logs: Sequence[float]) -> float:
    return math.exp(sum(logs) / len(logs))
