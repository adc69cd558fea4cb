"""The lines a reader looks at first: comparable, client-bound, pinned, observer, disturbed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from loadprint.judging import canary, client, observer, separation
from loadprint.judging.comparability import Comparability
from loadprint.judging.findings import Shift, Verdict
from loadprint.metrics.gather import Measured
from loadprint.reading.sides import Side

THROTTLED = 0.01  # of the periods of the server's quota
Shifts = Mapping[Path, Sequence[Shift]]  # of each run that had canaries, by its directory
Judged = Callable[[Sequence[Measured]], tuple[str, str]]


def verdicts(
    sides: Sequence[Side],
    measured: Sequence[Sequence[Measured]],
    comparable: Comparability,
    shifts: Shifts,
) -> tuple[Verdict, ...]:
    """All five, in the order in which they are printed; of one side all but whether it is comparable."""
    beside = (Verdict("comparable", comparable.answer, comparable.reason),) if len(sides) > 1 else ()
    return (
        *beside,
        _per_side("client-bound", sides, measured, _bound, ("yes", "cannot tell", "no")),
        _per_side("pinned", sides, measured, _pinned, ("not separated", "cannot tell", "yes")),
        _observer(sides, measured),
        _disturbed(sides, measured, shifts),
    )


def _bound(runs: Sequence[Measured]) -> tuple[str, str]:
    found = client.bound(runs)
    return found.answer, found.text


def _pinned(runs: Sequence[Measured]) -> tuple[str, str]:
    found = separation.pinned(runs)
    return found.answer, found.text


def _per_side(
    key: str,
    sides: Sequence[Side],
    measured: Sequence[Sequence[Measured]],
    judged: Judged,
    worst: Sequence[str],
) -> Verdict:
    """One answer for all, the worst of any side; texts by side, once where all say the same."""
    told = [(side.name, *judged(runs)) for side, runs in zip(sides, measured, strict=True)]
    answer = min((each for _, each, _ in told), key=worst.index)
    same = len({(each, text) for _, each, text in told}) == 1
    if same:
        return Verdict(key, answer, told[0][2])
    mixed = len({each for _, each, _ in told}) > 1
    texts = [f"{name} {f'{each}: ' if mixed else ''}{text}" for name, each, text in told]
    return Verdict(key, answer, "; ".join(texts))


def _observer(sides: Sequence[Side], measured: Sequence[Sequence[Measured]]) -> Verdict:
    """What the recorder took on each side, and once where it was."""
    found = [observer.observed(runs) for runs in measured]
    answer = min((each.answer for each in found), key=("matters", "cannot tell", "small").index)
    costs = {each.cost for each in found}
    cost = [
        each.cost if len(costs) == 1 else f"{side.name} {each.cost}"
        for side, each in zip(sides, found, strict=True)
    ]
    told = [*dict.fromkeys(cost)]
    told += dict.fromkeys(each.limit for each in found if each.limit and each.reads)
    told += dict.fromkeys(each.reads for each in found if each.reads)
    told += dict.fromkeys(each.where for each in found if each.where)
    return Verdict("observer", answer, "; ".join(told))


def _disturbed(sides: Sequence[Side], measured: Sequence[Sequence[Measured]], shifts: Shifts) -> Verdict:
    """Runs in which the machine was not the same throughout: canary, stolen time, quotas.

    A run on two sides counts once; of runs with one id, from two executions, their sides are named.
    """
    places: dict[Path, tuple[str, Measured]] = {}
    for side, runs in zip(sides, measured, strict=True):
        for run in runs:
            places.setdefault(run.run.path.resolve(), (side.name, run))
    alike = len({run.run.id for _, run in places.values()}) < len(places)
    told: dict[Path, list[str]] = {}
    for place, (name, run) in places.items():
        texts = [f"{name} {text}" if alike else text for text in canary.beyond(shifts.get(place, ()))]
        texts += [f"{name} {run.run.id} {what}" for what in _held_back(run)]
        if texts:
            told[place] = texts
    if told:
        every = [text for texts in told.values() for text in texts]
        return Verdict("disturbed", f"{len(told)} of {len(places)} runs", "; ".join(every))
    watched = len(shifts)
    if watched:
        of = "" if watched == len(places) else f" of {len(places)}"
        return Verdict(
            "disturbed", "no", f"by the canary around {watched}{of} run{'s' if len(places) > 1 else ''}"
        )
    return Verdict("disturbed", "cannot tell", "no canary ran before and after")


def _held_back(run: Measured) -> list[str]:
    """CPU time that the hypervisor, or a quota, took from the server or the load."""
    found = []
    q = run.quantities
    steal = q.get("cpu.server.steal")
    cores = q.get("cpu.server.cores")
    if steal and cores and cores.rate > 0 and steal.rate / cores.rate > client.STOLEN:
        found.append(f"{100 * steal.rate / cores.rate:.1f} % of its CPU time stolen")
    if (share := client.stolen(run)) is not None and share > client.STOLEN:
        found.append(f"{100 * share:.1f} % of the load's CPU time stolen")
    throttled = q.get("cgroup.server.throttled")
    if throttled and throttled.rate > THROTTLED:
        found.append(f"held back by its quota in {100 * throttled.rate:.0f} % of periods")
    return found
