"""Judges an experiment: regime, diagnostics, verdict, and a sentence."""

from __future__ import annotations

import math
from collections.abc import Sequence

from loadprint import numbers
from loadprint.commands.ab.effects import QUANTITIES
from loadprint.commands.ab.inference import Slope, carry_over, drift
from loadprint.commands.ab.result import HEADLINE, AbWindow, Check, Effect
from loadprint.commands.ab.schedule import smallest_p
from loadprint.reading.names import BASELINE, TREATMENT
from loadprint.statistics.answers import EQUIVALENT_WITHIN, answer
from loadprint.statistics.stats import APART, MIN_REPEATS, Estimate, repeats_to_show

SATURATED = 0.9  # of the host's CPUs
NEAR = 0.02  # without an interval, a ratio of queries this close to 1 counts as equal
ENOUGH = 0.5  # of the blocks must be left for a verdict


def by_key(effects: Sequence[Effect], key: str) -> Effect:
    """Return the effect of a quantity that is always present."""
    return next(effect for effect in effects if effect.key == key)


def regime(effects: Sequence[Effect]) -> tuple[str, str]:
    """Return the regime (load-driven, saturation or neither) and a sentence about it."""
    busy, queries = by_key(effects, "host_busy"), by_key(effects, "queries")
    if queries.ratio is None:
        return "unknown", "the regime is not known: queries were not counted"
    if busy.treatment is None or busy.baseline is None:
        return "unknown", "the regime is not known: the host's CPUs were not recorded"
    share = f"host CPUs {busy.treatment:.0f} % busy with treatment, {busy.baseline:.0f} % without"
    if max(busy.treatment, busy.baseline) >= 100 * SATURATED:
        return "saturation", f"saturation ({share}): an effect shows in queries per second too"
    if queries.low is not None and queries.high is not None:
        same = queries.low <= 1 <= queries.high
    else:
        same = abs(queries.ratio - 1) <= NEAR
    if same:
        return "load-driven", f"load-driven ({share}, equal queries): an effect shows only in CPU per query"
    return (
        "neither",
        f"neither saturated nor load-driven ({share}, and queries changed): another resource is the limit",
    )


def diagnostics(windows: Sequence[AbWindow]) -> tuple[Check, ...]:
    """Check drift, noise within blocks and carry-over of the headline quantity."""
    take = next(quantity.take for quantity in QUANTITIES if quantity.key == HEADLINE)
    measured = [(window, value) for window in windows if (value := take(window))]
    logs = [math.log(value) for _, value in measured]
    treated = [window.variant == TREATMENT for window, _ in measured]
    slope = drift(logs, treated, [window.number for window, _ in measured])
    checks = [Check("drift", "untested", "too few windows to separate drift from the effect")]
    if slope is not None:
        text = f"queries per CPU-second changed per window by {_changed(slope, 2)}"
        checks = [Check("drift", "failed" if slope.p < 0.05 else "passed", text)]
    noise = _baseline_noise([(window, math.log(value)) for window, value in measured])
    if noise:
        text = f"the two baseline windows of a block differ by {100 * noise:.2f} % (root mean square)"
        checks.append(Check("noise", "passed", text))
    checks.append(_carry_over_check(measured, logs, treated))
    return tuple(checks)


def _changed(slope: Slope, places: int) -> str:
    """Format a coefficient of logs as a change in percent, with its interval."""
    return numbers.change_within(*map(math.expm1, (slope.value, slope.low, slope.high)), places=places)


def _carry_over_check(
    measured: Sequence[tuple[AbWindow, float]], logs: Sequence[float], treated: Sequence[bool]
) -> Check:
    after = [window.previous == TREATMENT for window, _ in measured]
    shift = carry_over(logs, treated, after, [window.block for window, _ in measured])
    if shift is None:
        text = "cannot be tested: the schedule or the number of windows does not separate it from the effect"
        return Check("carry-over", "untested", text)
    text = (
        f"windows after a treatment window differ by {_changed(shift, 1)} from those after a baseline "
        "window, without drift"
    )
    return Check("carry-over", "failed" if shift.p < 0.05 else "passed", text)


def _baseline_noise(logs: Sequence[tuple[AbWindow, float]]) -> float | None:
    squares = []
    for block in sorted({window.block for window, _ in logs}):
        base = [value for window, value in logs if window.block == block and window.variant == BASELINE]
        if len(base) == 2:
            squares.append((base[1] - base[0]) ** 2)
    return math.sqrt(sum(squares) / len(squares)) if squares else None


def judge(status: str, blocks: int, used: int, effects: Sequence[Effect]) -> tuple[str, str]:
    """Return the verdict and its sentence, from the interval of the headline over the used blocks."""
    headline = by_key(effects, HEADLINE)
    excluded = f" {blocks - used} of {blocks} blocks are excluded." if blocks > used else ""
    value = f"{numbers.brief(headline.ratio or 0.0, 4)} × the queries per CPU-second"
    if why := _not_measured(status, blocks, used, headline):
        shown = f" The others show {value}." if headline.ratio is not None and status == "complete" else ""
        return "not measured", f"Not measured: {why}.{excluded if used else ''}{shown}"
    if headline.low is None or headline.high is None or headline.p_sign is None:
        if headline.blocks == 1:
            why = "one block: no interval, and an effect cannot be separated from drift"
        else:
            why = f"{headline.blocks} blocks: no interval and no verdict below {MIN_REPEATS}"
        return "undecided", f"Undecided: treatment gave {value}, from {why}.{excluded}"
    figures = f"{value} [{numbers.brief(headline.low, 4)}, {numbers.brief(headline.high, 4)}]"
    figures += f" ({headline.blocks} blocks, sign-flip p = {numbers.brief(headline.p_sign, 3)})"
    judged = answer(Estimate(headline.ratio or 0.0, headline.low, headline.high))
    if judged == "undecided":
        return judged, f"Undecided: {figures}.{_more(headline)}{excluded}"
    if judged == "equivalent":
        within = numbers.brief(100 * EQUIVALENT_WITHIN, 3)
        return judged, f"Treatment is equivalent within {within} %: {figures}.{excluded}"
    word = "better" if headline.low > 1 else "worse"
    return word, f"Treatment is {word}: {figures}.{excluded}"


def _not_measured(status: str, blocks: int, used: int, headline: Effect) -> str:
    """Say why there is no effect to judge; empty if there is one."""
    if status != "complete":
        return "the experiment is incomplete: values of complete blocks only"
    if not blocks:
        return "no window was completed"
    if not used:
        return f"all blocks are excluded ({blocks} of {blocks})"
    if headline.ratio is None:
        return "no block has queries and CPU of both variants"
    few = blocks > used and used < max(MIN_REPEATS, ENOUGH * blocks)
    return "too few blocks are left" if few else ""


def _more(headline: Effect) -> str:
    """How many blocks would decide a difference, if it is a plan."""
    more = repeats_to_show(headline.low or 1.0, headline.high or 1.0, headline.blocks, paired=True)
    if not more:
        return ""
    blocks = f"{more} more block{'s' * (more > 1)}"
    return f" About {blocks} would show a {numbers.brief(100 * APART, 3)} % difference."


def warnings(schedule: str, used: int, headline: Effect) -> tuple[str, ...]:
    """Return warnings about the design of the experiment."""
    texts = []
    if schedule == "TB":
        texts.append("schedule TB: drift within a block adds to the effect, and carry-over cannot be tested")
    if 0 < used < MIN_REPEATS:
        texts.append(f"{used} block{'s' if used > 1 else ''}: values only, three or more give an interval")
    elif MIN_REPEATS <= used < 6:
        texts.append(
            f"{used} blocks: the sign-flip test cannot go below p = {smallest_p(used):g}, six reach 0.031"
        )
    if headline.p_sign is not None and headline.low is not None and headline.high is not None:
        outside = headline.low > 1 or headline.high < 1
        if outside and headline.p_sign > 0.05 and used >= 6:
            texts.append(
                "the t interval excludes 1, the sign-flip test is not significant: compare the blocks"
            )
    return tuple(texts)
