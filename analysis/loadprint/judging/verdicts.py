"""Gives the verdicts above a table: comparable, client-bound, pinned, overhead, disturbed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from loadprint import numbers
from loadprint.judging import canary, client, overhead, separation
from loadprint.judging.comparability import Comparability
from loadprint.judging.findings import Judgement, Shift, Verdict
from loadprint.metrics.gather import Measured
from loadprint.reading.sides import Side

SHORT = 60  # characters of a reason in the line of all answers
THROTTLED = 0.01  # of the periods of the server's quota
Shifts = Mapping[Path, Sequence[Shift]]  # of each run that had canaries, by its directory
Judged = Callable[[Sequence[Measured]], Judgement]


def verdicts(
    sides: Sequence[Side],
    measured: Sequence[Sequence[Measured]],
    comparable: Comparability,
    shifts: Shifts,
) -> tuple[Verdict, ...]:
    """All five in the order of printing; one side alone has no `comparable`."""
    return (
        *([_comparable(comparable)] if len(sides) > 1 else []),
        _per_side("client-bound", sides, measured, client.bound, ("yes", "not measured", "no")),
        _per_side("pinned", sides, measured, separation.pinned, ("not separated", "not measured", "yes")),
        _overhead(sides, measured),
        _disturbed(sides, measured, shifts),
    )


def _comparable(comparable: Comparability) -> Verdict:
    """The comparability; what is unknown is named in the line of all answers if it is short."""
    named = comparable.answer == "unknown" and len(comparable.reason) <= SHORT
    short = f"unknown ({comparable.reason})" if named else ""
    return Verdict("comparable", comparable.answer, comparable.reason, short)


def _per_side(
    key: str,
    sides: Sequence[Side],
    measured: Sequence[Sequence[Measured]],
    judged: Judged,
    worst: Sequence[str],
) -> Verdict:
    """One answer for all, the worst of any side; the texts by side, or one if they are equal."""
    judgements = [(side.name, *judged(runs)) for side, runs in zip(sides, measured, strict=True)]
    answer = min((judgement for _, judgement, _ in judgements), key=worst.index)
    mixed = len({judgement for _, judgement, _ in judgements}) > 1
    of = ", ".join(name for name, judgement, _ in judgements if judgement == answer)
    short = f"{answer} ({of})" if mixed else ""
    if len({(judgement, text) for _, judgement, text in judgements}) == 1:
        return Verdict(key, answer, judgements[0][2], short)
    texts = [f"{name} {f'{judgement}: ' if mixed else ''}{text}" for name, judgement, text in judgements]
    return Verdict(key, answer, "; ".join(texts), short)


def _overhead(sides: Sequence[Side], measured: Sequence[Sequence[Measured]]) -> Verdict:
    """CPU time of the recorder on each side, then its limit, probes and CPUs."""
    overheads = [overhead.observed(runs) for runs in measured]
    answer = min((overhead.answer for overhead in overheads), key=("matters", "not measured", "small").index)
    costs = {overhead.cost for overhead in overheads}
    cost = [
        overhead.cost if len(costs) == 1 else f"{side.name} {overhead.cost}"
        for side, overhead in zip(sides, overheads, strict=True)
    ]
    texts = [*dict.fromkeys(cost)]
    effects = [
        (overhead.share or 0.0, f"effect on statements of {side.name} {_percent(*overhead.effect)}")
        for side, overhead in zip(sides, overheads, strict=True)
        if overhead.effect
    ]
    texts += [text for _, text in effects]
    texts += dict.fromkeys(overhead.limit for overhead in overheads if overhead.limit and overhead.reads)
    texts += dict.fromkeys(overhead.reads for overhead in overheads if overhead.reads)
    texts += dict.fromkeys(overhead.where for overhead in overheads if overhead.where)
    shares = [overhead.share for overhead in overheads if overhead.share is not None]
    size = f"{100 * max(shares):.2f} %" if shares else ""
    doubt = "" if answer == "small" else answer
    short = f"{size} ({doubt})" if size and doubt else size or doubt
    # of the side with that overhead: the largest of several effects would not be in its interval often enough
    costliest = [max(effects)[1]] if effects else []
    return Verdict("overhead", answer, "; ".join(texts), " · ".join([short or answer, *costliest]))


def _percent(effect: float, half: float) -> str:
    """A difference of logs and its interval in percent."""
    return numbers.change_within(*map(math.expm1, (effect, effect - half, effect + half)), places=1)


def _disturbed(sides: Sequence[Side], measured: Sequence[Sequence[Measured]], shifts: Shifts) -> Verdict:
    """Runs in which the machine changed or lost CPU time: canary, steal, quotas.

    `no` only if the canary checked every run in every part. A run on two sides counts once. If runs of two
    executions share an id, the text names their sides.
    """
    places: dict[Path, tuple[str, Measured]] = {}
    for side, runs in zip(sides, measured, strict=True):
        for run in runs:
            places.setdefault(run.run.path.resolve(), (side.name, run))
    shared_ids = len({run.run.id for _, run in places.values()}) < len(places)
    reasons: dict[Path, list[str]] = {}
    for place, (name, run) in places.items():
        texts = canary.beyond(shifts.get(place, ()))
        texts += [f"{run.run.id} {text}" for text in _denied_cpu(run)]
        texts = [f"{name} {text}" if shared_ids else text for text in texts]
        if texts:
            reasons[place] = texts
    short, unchecked = canary.unchecked([shifts.get(place, ()) for place in places])
    if reasons:
        every = [text for texts in reasons.values() for text in texts] + [unchecked] * bool(unchecked)
        count = f"{len(reasons)} of {len(places)}"
        return Verdict("disturbed", f"{count} runs", "; ".join(every), count)
    if unchecked:
        return Verdict("disturbed", "not measured", unchecked, short)
    plural = "s" if len(places) > 1 else ""
    turns = any(shift.in_turns for place in places for shift in shifts.get(place, ()))
    when = "before the slices of" if turns else "before and after"
    text = f"by the fixed work {when} {len(places)} run{plural}"
    return Verdict("disturbed", "no", text)


def _denied_cpu(run: Measured) -> list[str]:
    """CPU time that steal or a quota took from the server or the load."""
    texts = []
    q = run.quantities
    steal, cores = q.rate("cpu.server.steal"), q.rate("cpu.server.cores")
    if steal and cores and steal / cores > client.STOLEN:
        texts.append(f"{100 * steal / cores:.1f} % of the server's CPU time stolen")
    if (stolen := client.stolen(run)) is not None and stolen > client.STOLEN:
        texts.append(f"{100 * stolen:.1f} % of the load's CPU time stolen")
    throttled = q.get("cgroup.server.throttled")
    if throttled and throttled.rate > THROTTLED:
        texts.append(f"throttled by its quota in {100 * throttled.rate:.0f} % of periods")
    return texts
