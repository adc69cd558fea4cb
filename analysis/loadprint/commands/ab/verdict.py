"""What may be said of an experiment: regime, diagnostics, verdict, and one sentence."""

from __future__ import annotations

import math
from collections.abc import Sequence

from loadprint import numbers
from loadprint.commands.ab.effects import QUANTITIES
from loadprint.commands.ab.inference import Slope, carry_over, drift, smallest_p
from loadprint.commands.ab.result import BASELINE, HEADLINE, TREATMENT, Check, Effect, Window
from loadprint.statistics.stats import MIN_REPEATS

SATURATED = 0.9  # of the host's CPUs
NEAR = 0.02  # without an interval a queries ratio this close to 1 counts as none
ENOUGH = 0.5  # of the blocks must match, or nothing is said


def by_key(effects: Sequence[Effect], key: str) -> Effect:
    """Return the effect of a quantity that is always there."""
    return next(effect for effect in effects if effect.key == key)


def regime(effects: Sequence[Effect]) -> tuple[str, str]:
    """Load-driven, saturated, or neither: in the first an effect shows in CPU per query only."""
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
        return "load-driven", f"load-driven ({share}, as many queries): an effect shows in CPU per query only"
    return (
        "neither",
        f"neither saturated nor load-driven ({share}, and queries changed): look for another limit",
    )


def diagnostics(windows: Sequence[Window]) -> tuple[Check, ...]:
    """Drift, noise within blocks and carry-over of the headline quantity."""
    take = next(quantity.take for quantity in QUANTITIES if quantity.key == HEADLINE)
    known = [(window, value) for window in windows if (value := take(window))]
    logs = [math.log(value) for _, value in known]
    treated = [window.variant == TREATMENT for window, _ in known]
    slope = drift(logs, treated, [window.number for window, _ in known])
    checks = [Check("drift", "untested", "too few windows to tell a drift from the effect")]
    if slope is not None:
        text = f"queries per CPU-second changed a window by {_changed(slope, 2)}"
        checks = [Check("drift", "failed" if slope.p < 0.05 else "passed", text)]
    apart = _apart([(window, math.log(value)) for window, value in known])
    if apart:
        text = f"the two baseline windows of a block differ by {100 * apart:.2f} % (root mean square)"
        checks.append(Check("noise", "passed", text))
    checks.append(_carried(known, logs, treated))
    return tuple(checks)


def _changed(slope: Slope, places: int) -> str:
    """A coefficient of logs as a change in per cent, with its interval."""
    low, high = (numbers.change(math.expm1(bound), places, "") for bound in (slope.low, slope.high))
    return f"{numbers.change(math.expm1(slope.value), places)} [{low}, {high}]"


def _carried(known: Sequence[tuple[Window, float]], logs: Sequence[float], treated: Sequence[bool]) -> Check:
    after = [window.previous == TREATMENT for window, _ in known]
    found = carry_over(logs, treated, after, [window.block for window, _ in known])
    if found is None:
        text = "cannot be tested: this schedule, or so few windows, do not separate it from effect and drift"
        return Check("carry-over", "untested", text)
    text = (
        f"windows after a treatment window differ by {_changed(found, 1)} from those after a baseline "
        "window, drift taken off"
    )
    return Check("carry-over", "failed" if found.p < 0.05 else "passed", text)


def _apart(logs: Sequence[tuple[Window, float]]) -> float | None:
    squares = []
    for block in sorted({window.block for window, _ in logs}):
        base = [value for window, value in logs if window.block == block and window.variant == BASELINE]
        if len(base) == 2:
            squares.append((base[1] - base[0]) ** 2)
    return math.sqrt(sum(squares) / len(squares)) if squares else None


def judge(status: str, blocks: int, used: int, effects: Sequence[Effect]) -> tuple[str, str]:
    """Verdict and its sentence, from the headline's interval over the blocks that count."""
    headline = by_key(effects, HEADLINE)
    left_out = f" {blocks - used} of {blocks} blocks do not match and are left out." if blocks > used else ""
    if status != "complete":
        return (
            "aborted",
            f"The experiment was not finished: values of whole blocks only, no verdict.{left_out}",
        )
    if headline.ratio is None:
        return "inconclusive", f"Inconclusive: no block has both variants' queries and CPU.{left_out}"
    value = f"{headline.ratio:.4g} × the queries per CPU-second"
    if blocks > used and used < max(MIN_REPEATS, ENOUGH * blocks):
        return "inconclusive", f"Inconclusive: too few windows match.{left_out} Those left show {value}."
    if headline.low is None or headline.high is None:
        if headline.blocks == 1:
            why = "one block: no interval, and a single pair cannot tell an effect from drift"
        else:
            why = f"{headline.blocks} blocks: no interval and no verdict below {MIN_REPEATS}"
        return "too few", f"Treatment gave {value}, from {why}.{left_out}"
    interval = f"[{headline.low:.4g}, {headline.high:.4g}]"
    test = f"{headline.blocks} blocks, sign-flip p = {headline.p_sign:.3g}"
    if headline.low > 1 or headline.high < 1:
        word = "better" if headline.low > 1 else "worse"
        return word, f"Treatment is {word}: {value} {interval} ({test}).{left_out}"
    return "no difference", (
        f"No difference found in queries per CPU-second: {value} {interval} ({test}).{left_out}"
    )


def warnings(schedule: str, used: int, headline: Effect) -> tuple[str, ...]:
    """What a reader must know of the design before believing the figures."""
    said = []
    if schedule == "TB":
        said.append("schedule TB: drift over a block is taken for effect, and carry-over cannot be tested")
    if 0 < used < MIN_REPEATS:
        said.append(f"{used} block{'s' if used > 1 else ''}: values only, three or more give an interval")
    elif MIN_REPEATS <= used < 6:
        said.append(
            f"{used} blocks: the sign-flip test cannot go below p = {smallest_p(used):g}, six reach 0.031"
        )
    if headline.p_sign is not None and headline.low is not None and headline.high is not None:
        outside = headline.low > 1 or headline.high < 1
        if outside and headline.p_sign > 0.05 and used >= 6:
            said.append(
                "the t interval excludes 1 and the sign-flip test does not: look at the single blocks"
            )
    return tuple(said)
