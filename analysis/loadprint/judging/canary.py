"""Compares the canary, fixed work before and after each run, to detect that the machine changed.

The time of a part is the lower quartile of its slices (fsync: their median), summed over CPUs: outliers in a
quarter of the slices have no effect, while a busy neighbour, a lower clock or a slow disk affects all slices.
A shift over 3 % marks a repeat as disturbed. For a part whose time varies more than that at rest the limit is
its repeatability: three times the median shift between consecutive canaries without a run between them, which
is about two standard deviations. Sides that alternate have a piece of fixed work before each slice: it is
compared with those of the same round, and the limit of 3 % applies to the mean of all rounds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median

from loadprint.judging.findings import Shift
from loadprint.reading.documents import Integer, JsonObject, Listed, Natural, read_lines
from loadprint.reading.recording import Run

LIMIT = 0.03
PARTS = ("cpu", "memory", "syscall", "fsync")
STEADY = ("cpu", "syscall")  # repeat within the limit: they use no memory bus and no device
LEAST_AT_REST = 5  # pairs needed to determine the repeatability of a part
AT_REST_S = 120  # the machine may have changed between canaries further apart
MEDIANS = 3.0
MAX_DECIMALS = 5  # of a factor close to its limit


class CanaryLane(JsonObject):
    """The slices of fixed work on one CPU."""

    slices_ns: Listed[Natural]


class CanaryPart(JsonObject):
    """One kind of fixed work."""

    name: str
    lanes: Listed[CanaryLane]


class CanaryLine(JsonObject):
    """A line of canary.jsonl."""

    label: str
    boot_id: str | None = None
    begin_realtime_ns: Integer
    begin_monotonic_ns: Integer
    end_monotonic_ns: Integer
    parts: Listed[CanaryPart]

    @property
    def end_realtime_ns(self) -> int:
        """When it ended, by a clock that did not step."""
        return self.begin_realtime_ns + self.end_monotonic_ns - self.begin_monotonic_ns

    @cached_property
    def times(self) -> dict[str, float]:
        """`slice_time` of each part that was run."""
        return {part.name: taken for part in self.parts if (taken := slice_time(part))}


def by_run(runs: Sequence[Run]) -> dict[Path, list[Shift]]:
    """Shifts of every run that had canaries, by its directory, as runs of two executions may share an id."""
    limits = repeatability(runs)
    by_path = {run.path.resolve(): _shifts(run, limits) for run in runs}
    return {path: measured for path, measured in by_path.items() if measured}


def _shifts(run: Run, limits: Mapping[str, float]) -> list[Shift]:
    """Shift of every part of a run that had a canary before and after it, or before its slices."""
    if (in_turns := _in_turns(run)) is not None:
        return [in_turns]
    pair = _around(_read(run.path))
    if pair is None:
        return []
    before, after = pair
    measured = []
    for part in PARTS:
        if part in before.times and part in after.times:
            change = after.times[part] / before.times[part] - 1
            limit = limits.get(part)
            beyond = limit is not None and abs(math.log1p(change)) > math.log1p(limit)
            measured.append(Shift(run.id, part, change, limit, beyond))
    return measured


def _in_turns(run: Run) -> Shift | None:
    """Shift of the fixed work before a run's own slices; None for a run that did not alternate."""
    rounds: dict[int, dict[str, float]] = {}
    for turn in run.slices:
        if turn.fixed_work_ns:
            rounds.setdefault(turn.round, {})[turn.side] = math.log(turn.fixed_work_ns)
    own = run.meta.side or ""
    apart = [
        taken[own] - fmean(time for side, time in taken.items() if side != own)
        for taken in rounds.values()
        if own in taken and len(taken) > 1
    ]
    if not apart:
        return None
    change = fmean(apart)
    return Shift(run.id, "cpu", math.expm1(change), LIMIT, abs(change) > math.log1p(LIMIT), in_turns=True)


def repeatability(runs: Iterable[Run]) -> dict[str, float]:
    """Limit of every part that can be checked: 3 %, or its repeatability on these machines at rest.

    It uses all runs of the executions of `runs`, of all sides.
    """
    paths = {path for run in runs for path in (run.path.resolve(), *_runs_of_execution(run))}
    # those of one boot next to each other: hosts that work at the same time take turns otherwise
    canaries = sorted(
        (canary for path in paths for canary in _read(path)),
        key=lambda canary: (canary.boot_id or "", canary.begin_realtime_ns),
    )
    at_rest = [
        (one, other)
        for one, other in pairwise(canaries)
        if (one.label, other.label) == ("after", "before")
        and one.boot_id == other.boot_id
        and other.begin_realtime_ns - one.end_realtime_ns < AT_REST_S * 1e9
    ]
    limits = dict.fromkeys(STEADY, LIMIT)
    for part in PARTS:
        moved = [
            abs(math.log(other.times[part] / one.times[part]))
            for one, other in at_rest
            if part in one.times and part in other.times
        ]
        if len(moved) >= LEAST_AT_REST:
            limits[part] = max(LIMIT, math.expm1(MEDIANS * median(moved)))
    return limits


def largest(by_run: Mapping[Path, Sequence[Shift]]) -> str:
    """One line: the largest shift of each part with its limit, and the number of runs."""
    texts = []
    for part in PARTS:
        shifts_of_part = [shift for of_run in by_run.values() for shift in of_run if shift.part == part]
        if not shifts_of_part:
            continue
        shift = max(shifts_of_part, key=lambda shift: abs(math.log1p(shift.change)))
        factor, limit = _factor_and_limit(shift)
        text = f"limit {limit}" if limit else "no limit: too few canaries at rest to determine repeatability"
        text += ", three times its variation at rest" if (shift.limit or 0.0) > LIMIT else ""
        texts.append(f"{part} {factor} {_direction(shift)} ({text})")
    runs = f"{len(by_run)} run{'s' if len(by_run) > 1 else ''}"
    in_turns = any(shift.in_turns for of_run in by_run.values() for shift in of_run)
    what = "differences from the slices of other sides" if in_turns else "changes from before to after a run"
    return f"largest {what}, {runs}: {'; '.join(texts)}" if texts else ""


def unchecked(runs: Sequence[Sequence[Shift]]) -> tuple[str, str]:
    """What the canary did not check, in short and with the reasons; empty if it checked every part of all.

    `runs` has the shifts of every run, none for a run without a canary.
    """
    watched = [shifts for shifts in runs if shifts]
    if not watched:
        return "not checked", "no canary ran"
    if all(shifts and shifts[0].in_turns for shifts in runs):
        return "", ""
    parts: dict[str, list[str]] = {}
    for part in PARTS:
        limits = [shift.limit for shifts in watched for shift in shifts if shift.part == part]
        for reason, count in (
            ("had no limit (too few canaries at rest) in", sum(limit is None for limit in limits)),
            ("did not run before and after", len(watched) - len(limits)),
        ):
            if count:
                parts.setdefault(f"{reason} {count} run{'s' if count > 1 else ''}", []).append(part)
    texts = [f"{', '.join(names)} {reason}" for reason, names in parts.items()]
    without = len(runs) - len(watched)
    if without:
        of = f"{without} of {len(runs)} runs"
        return f"not checked ({of})", "; ".join([f"{of} had no canary", *texts])
    open_parts = ", ".join(part for part in PARTS if any(part in names for names in parts.values()))
    return (f"not checked ({open_parts})" if open_parts else ""), "; ".join(texts)


def beyond(shifts: Sequence[Shift]) -> list[str]:
    """Each disturbed run with the parts beyond their limits."""
    parts: dict[str, list[str]] = {}
    for shift in shifts:
        if shift.disturbed:
            factor, limit = _factor_and_limit(shift)
            when = "in its turns than in those of others" if shift.in_turns else "after the run"
            text = f"{shift.part} {factor} {_direction(shift)} {when} (limit {limit})"
            parts.setdefault(shift.run, []).append(text)
    return [f"{run} {', '.join(texts)}" for run, texts in parts.items()]


def disturbed(shifts: Sequence[Shift]) -> list[str]:
    """The footnote of each disturbed run."""
    return [f"disturbed, and kept: the canary of {text}" for text in beyond(shifts)]


def _direction(shift: Shift) -> str:
    return "slower" if shift.change >= 0 else "faster"


def _factor_and_limit(shift: Shift) -> tuple[str, str]:
    """A shift as a factor, and its limit (empty if none), with as many decimals as make them differ."""
    factor = math.exp(abs(math.log1p(shift.change)))
    for decimals in range(2, MAX_DECIMALS + 1):
        texts = (_factor(factor, decimals), "" if shift.limit is None else _factor(1 + shift.limit, decimals))
        if texts[0] != texts[1]:
            break
    return texts


def _factor(factor: float, decimals: int) -> str:
    """A factor with `decimals` decimals, or none if it is far from 1."""
    return f"{factor:.{decimals}f} ×" if factor < 10 else f"{factor:,.0f} ×"


def _around(canaries: Sequence[CanaryLine]) -> tuple[CanaryLine, CanaryLine] | None:
    """The last canary before and the last one after a run; an earlier attempt may have left more."""
    before = [canary for canary in canaries if canary.label == "before"]
    after = [canary for canary in canaries if canary.label == "after"]
    if not before or not after or after[-1].begin_realtime_ns < before[-1].end_realtime_ns:
        return None
    return before[-1], after[-1]


def _runs_of_execution(run: Run) -> list[Path]:
    """The directories of all runs of a run's execution."""
    execution = run.path.resolve().parent
    if not (execution / "execution.json").is_file():
        return []
    return [path.parent.parent for path in execution.glob("*/server/canary.jsonl")]


def _read(run: Path) -> list[CanaryLine]:
    """The canaries of a run. Raises InputError for a line that is not one, unless a crash cut it off."""
    return [line for _, line in read_lines(run / "server" / "canary.jsonl", CanaryLine, "a canary")]


def slice_time(part: CanaryPart) -> float:
    """Time of one slice, in ns, summed over CPUs; 0 if the part was not run."""
    total = 0.0
    for lane in part.lanes:
        slices = sorted(lane.slices_ns)
        if not slices:
            return 0.0
        total += slices[len(slices) // (2 if part.name == "fsync" else 4)]
    return total
