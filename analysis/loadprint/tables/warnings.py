"""The warnings above a table, each with its remedy: not warm, not settled, damaged records, repeated runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from loadprint.judging import steady, warm
from loadprint.judging.carried import carried
from loadprint.metrics.gather import Measured
from loadprint.metrics.host import ADD_UP, SERVER_RESTARTED
from loadprint.metrics.turns import LEFT_BEHIND, SPANS
from loadprint.reading.sides import Side

COUNT = re.compile(r"(?<![\w.])\d[\d.,]*(?= (?:%|ticks|reads))")
LONGEST = 170  # characters of a warning on the first screen: two lines
COPY_AGAIN = "copy the run again from its host"
FINISH = "run loadprint-collect finish, or copy the run again"
FEWER_READS = "lengthen --interval or record fewer --probes"
LEAVE_OUT = "fix the reason, or leave it out with --probes"
# remedies of the warnings of quantities by their words; the first match applies
REMEDIES = (
    (SERVER_RESTARTED, "find the reason in the server's error log, run again"),
    (" wrapped ", "no action, the wraps are added back"),
    (" was reset ", "run again without a reset or restart in the window"),
    ("went online or offline", "run again with the same CPUs online"),
    (ADD_UP, "compare times, not shares"),
    (LEFT_BEHIND, "write through (O_DIRECT, sync_binlog=1), use longer turns, or a sequential design"),
    (SPANS, "use longer turns and, on two hosts, a longer slices.closing"),
    ("no scraped series", "check the endpoint and the names of the series"),
    ("", "run again"),
)


class Warned(NamedTuple):
    """A warning: the whole `text`, `what` happened in few words, the `remedy`; those of rank 0 come first."""

    rank: int
    text: str
    what: str
    remedy: str

    def full(self) -> str:
        """The whole text with the remedy."""
        return f"{self.text}; {self.remedy}"

    def brief(self) -> str:
        """What happened and the remedy, in two lines of the first screen at most."""
        room = LONGEST - len(self.remedy) - 2
        what = self.what if len(self.what) <= room else f"{self.what[: room - 1]}…"
        return f"{what}: {self.remedy}"


def warnings(
    sides: Sequence[Side],
    measured: Sequence[Sequence[Measured]],
    cold: Sequence[str],
    unsettled: Sequence[str],
) -> Iterator[Warned]:
    """All warnings, side by side; `cold` and `unsettled` are those of warm.py and steady.py."""
    for side, runs, *checks in zip(sides, measured, cold, unsettled, strict=True):
        yield from _unready(side, runs, *checks)
        alike: dict[str, list[tuple[str, str]]] = {}
        for run in runs:
            # two counters of one run that differ in their numbers only are two warnings
            for text, remedy in dict.fromkeys(_irregularities(run)):
                alike.setdefault(COUNT.sub("#", text), []).append(
                    (f"{side.name} {run.run.id}: {text}", remedy)
                )
        for (first, remedy), *others in alike.values():
            more = f"{len(others)} more run{'s' if len(others) > 1 else ''}"
            yield Warned(2, f"{first}; alike in {more}" if others else first, first, remedy)
    if over := carried([side.name for side in sides], measured):
        yield Warned(1, over[0], *over)
    yield from _repeated(sides)


def _unready(side: Side, runs: Sequence[Measured], cold: str, unsettled: str) -> Iterator[Warned]:
    """The side was not warm, never settled, or has a transient at the start of its windows."""
    if cold:
        yield Warned(0, cold, f"{side.name} was not warm", warm.remedy(runs, side.execution.campaign.warm))
    if unsettled:
        remedy = steady.lengthened(runs, steady.settled_after(runs))
        yield Warned(0, unsettled, f"{side.name} never settled", remedy)
    if late := steady.transient(side.name, runs):
        remedy = steady.lengthened(runs, steady.transient_s(runs))
        yield Warned(1, late, f"{side.name} has a transient at the start of the window", remedy)


def _irregularities(run: Measured) -> Iterator[tuple[str, str]]:
    """Counter resets and wraps, missed ticks and failed reads of a run, with their remedies."""
    for text in run.run.problems:
        if not text.startswith("load/") or "cut off" in text:
            yield text, FINISH if "is not finished" in text else COPY_AGAIN
    for text in run.quantities.warnings:
        yield text, next(remedy for words, remedy in REMEDIES if words in text)
    if run.window:
        if run.window.missed:
            yield f"{run.window.missed} ticks missed in the window", FEWER_READS
        for reasons in (run.window.failures, run.window.partial):
            yield from ((f"probe {probe}: {reason}", LEAVE_OUT) for probe, reason in reasons.items())


def _repeated(sides: Sequence[Side]) -> Iterator[Warned]:
    """Runs that are on more than one side: their ratios look certain and mean nothing."""
    places: dict[Any, list[tuple[str, str]]] = {}
    for side in sides:
        for run in side.runs:
            places.setdefault((run.path.resolve(), run.segments), []).append((side.name, run.id))
    runs_by_sides: dict[str, list[str]] = {}
    for uses in places.values():
        if len(uses) > 1:
            names = " and ".join(dict.fromkeys(name for name, _ in uses))
            runs_by_sides.setdefault(names, []).append(uses[0][1])
    for names, ids in runs_by_sides.items():
        what = f"{names} contain the same run{'s' if len(ids) > 1 else ''}"
        text = f"{what} {', '.join(ids)}: a run compared with itself shows nothing"
        yield Warned(1, text, what, "name each run on one side only")
