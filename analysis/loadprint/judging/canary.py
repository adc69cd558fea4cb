"""Was the machine the same before and after a run? The canary's fixed work, done twice, compared.

A part's time is the lower quartile of its slices (fsync: their median), added up over CPUs: a quarter of the
slices may be as unlucky as they like, and a busy neighbour, a lower clock or a slow disk is in all of them.
A shift over 3 % marks a repeat as disturbed. A part that does not repeat itself that well at rest is held to
its own repeatability: three times the median shift between neighbouring canaries with no run between them,
which is about two standard deviations.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from loadprint.judging.findings import Shift
from loadprint.reading import bounds, documents
from loadprint.reading.recording import COPY_AGAIN, Run

LIMIT = 0.03
PARTS = ("cpu", "memory", "syscall", "fsync")
STEADY = ("cpu", "syscall")  # hold the limit by their nature: no memory bus, no device
LEAST_AT_REST = 5  # pairs that tell how well a part repeats itself
AT_REST_S = 120  # neighbours further apart are not the same machine any more
MEDIANS = 3.0
MOST_DECIMALS = 5  # of a factor that lies close to its limit


@dataclass(frozen=True)
class _Canary:
    label: str
    boot_id: str | None
    begin_ns: int
    end_ns: int
    times: dict[str, float]


def by_run(runs: Sequence[Run]) -> dict[Path, list[Shift]]:
    """Shifts of every run that had canaries, by its directory: runs of two executions share their ids."""
    limits = repeatability(runs)
    found = {run.path.resolve(): shifts([run], limits) for run in runs}
    return {place: own for place, own in found.items() if own}


def shifts(runs: Sequence[Run], limits: Mapping[str, float] | None = None) -> list[Shift]:
    """Shift of every part of every run that had a canary before and after it.

    `limits` are those of `repeatability`, where the runs alone do not tell it.
    """
    limits = repeatability(runs) if limits is None else limits
    found = []
    for run in runs:
        pair = _around(_read(run.path))
        if pair is None:
            continue
        before, after = pair
        for part in PARTS:
            if part in before.times and part in after.times:
                change = after.times[part] / before.times[part] - 1
                limit = limits.get(part)
                beyond = limit is not None and abs(math.log1p(change)) > math.log1p(limit)
                found.append(Shift(run.id, part, change, limit, beyond))
    return found


def repeatability(runs: Iterable[Run]) -> dict[str, float]:
    """Limit of every part that can be judged: 3 %, or what the part can hold on these machines at rest.

    All runs of the executions that `runs` are of tell it, whichever of their sides are looked at.
    """
    places = {place for run in runs for place in (run.path.resolve(), *_beside(run))}
    course = sorted((canary for place in places for canary in _read(place)), key=lambda found: found.begin_ns)
    at_rest = [
        (one, other)
        for one, other in pairwise(course)
        if (one.label, other.label) == ("after", "before")
        and one.boot_id == other.boot_id
        and other.begin_ns - one.end_ns < AT_REST_S * 1e9
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
    """One line: the largest shift of each part, its limit, and how many runs it is from."""
    found = [shift for own in by_run.values() for shift in own]
    texts = []
    for part in PARTS:
        own = [shift for shift in found if shift.part == part]
        if not own:
            continue
        largest = max(own, key=lambda shift: abs(math.log1p(shift.change)))
        factor, limit = _beside_its_limit(largest)
        held = f"limit {limit}" if limit else "not judged: too few canaries at rest tell how well it repeats"
        own_limit = ", its own repeatability at rest" if (largest.limit or 0.0) > LIMIT else ""
        texts.append(f"{part} {factor} {_way(largest)} after ({held}{own_limit})")
    runs = f"{len(by_run)} run{'s' if len(by_run) > 1 else ''}"
    return f"largest shifts over {runs}: {'; '.join(texts)}" if texts else ""


def beyond(found: Sequence[Shift]) -> list[str]:
    """Each disturbed run with the parts beyond their limits."""
    parts: dict[str, list[str]] = {}
    for shift in found:
        if shift.disturbed:
            factor, limit = _beside_its_limit(shift)
            said = f"{shift.part} {factor} {_way(shift)} after (limit {limit})"
            parts.setdefault(shift.run, []).append(said)
    return [f"{run} {', '.join(texts)}" for run, texts in parts.items()]


def disturbed(found: Sequence[Shift]) -> list[str]:
    """What is said of each disturbed run."""
    return [f"disturbed: the canary's work around {text}; the run is kept" for text in beyond(found)]


def _way(shift: Shift) -> str:
    return "slower" if shift.change >= 0 else "faster"


def _beside_its_limit(shift: Shift) -> tuple[str, str]:
    """A shift as a factor, and its limit: more decimals where they would look alike, no limit as no text."""
    factor = math.exp(abs(math.log1p(shift.change)))
    for decimals in range(2, MOST_DECIMALS + 1):
        texts = (_factor(factor, decimals), "" if shift.limit is None else _factor(1 + shift.limit, decimals))
        if texts[0] != texts[1]:
            break
    return texts


def _factor(factor: float, decimals: int) -> str:
    """A factor with so many decimals, or none where it is far from 1."""
    return f"{factor:.{decimals}f} ×" if factor < 10 else f"{factor:,.0f} ×"


def _around(course: Sequence[_Canary]) -> tuple[_Canary, _Canary] | None:
    """The last canary before and the last one after a run; an earlier attempt may have left some too."""
    before = [canary for canary in course if canary.label == "before"]
    after = [canary for canary in course if canary.label == "after"]
    if not before or not after or after[-1].begin_ns < before[-1].end_ns:
        return None
    return before[-1], after[-1]


def _beside(run: Run) -> list[Path]:
    """The other runs of a run's execution."""
    execution = run.path.resolve().parent
    if not (execution / "execution.json").is_file():
        return []
    return [place.parent.parent for place in execution.glob("*/server/canary.jsonl")]


def _read(run: Path) -> list[_Canary]:
    """The canaries of a run; a line that a crash cut off, or that is no canary, is left out."""
    path = run / "server" / "canary.jsonl"
    if not path.is_file():
        return []
    found = []
    for line in bounds.read_text(path, bounds.LINES, COPY_AGAIN, errors="replace").splitlines():
        try:
            record = documents.loads(line)
            begin = int(record["begin_realtime_ns"])
            lasted = int(record["end_monotonic_ns"]) - int(record["begin_monotonic_ns"])
            times = {str(part["name"]): taken for part in record["parts"] if (taken := slice_time(part))}
            found.append(_Canary(str(record["label"]), record.get("boot_id"), begin, begin + lasted, times))
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
    return found


def slice_time(part: dict[str, Any]) -> float:
    """Time of one slice, in ns, added up over CPUs; 0 where the part was not done."""
    total = 0.0
    for lane in part["lanes"]:
        slices = sorted(float(ns) for ns in lane["slices_ns"])
        if not slices:
            return 0.0
        total += slices[len(slices) // (2 if part["name"] == "fsync" else 4)]
    return total
