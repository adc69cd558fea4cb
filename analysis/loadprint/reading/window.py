"""Selects the ticks that are entirely within the measure phase."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loadprint.errors import InputError
from loadprint.reading.clocks import align
from loadprint.reading.queries import Store, grouped
from loadprint.reading.recording import LOAD, Run
from loadprint.reading.time_series import Grid, grids

# columns of ticks.parquet with the time of a read, in ns
STAMPS = 'tick::DOUBLE AS tick, start_ns::DOUBLE AS start, end_ns::DOUBLE AS "end"'


@dataclass(frozen=True)
class Window:
    """The ticks of one role inside a phase.

    `failures` and `partial` have the reason by probe: of reads that failed, and of those that could not read
    everything. `grids[probe]` has all its reads, also outside of the phase.
    `middle_ns[probe]` maps a tick to the middle of that probe's read, CLOCK_MONOTONIC ns of the recorder.
    """

    role: str
    first: int
    last: int
    seconds: float
    middle_ns: dict[str, dict[int, float]]
    missed: int
    failures: dict[str, str]
    unavailable: dict[str, str]
    interval_ns: int
    partial: dict[str, str] = field(default_factory=dict)
    grids: dict[str, Grid] = field(default_factory=dict)

    @property
    def ticks(self) -> int:
        """Number of ticks of the probe that was read most often."""
        return max((len(stamps) for stamps in self.middle_ns.values()), default=0)

    def ends(self, probe: str) -> tuple[int, int]:
        """First and last tick at which a probe was read entirely inside the window.

        A background read can start before the window, or end after it, although the tick's other reads are
        inside. Raises KeyError if the probe was not read inside.
        """
        stamps = self.middle_ns[probe]
        return min(stamps), max(stamps)

    def why_missing(self, probe: str) -> str:
        """Reason why the window has no data of a probe."""
        reason = self.unavailable.get(probe) or self.failures.get(probe)
        return f"probe {probe}: {reason}" if reason else f"probe {probe} was not recorded"


def measure_window(run: Run, role: str, store: Store, part: tuple[float, float] | None = None) -> Window:
    """Window of one role's ticks over phase `measure`, or over a part of it, in seconds from its start.

    Raises InputError if phase or ticks are missing.
    """
    zero, end = _span(run, role, store)
    begin = zero
    if part is not None:
        begin, end = zero + part[0] * 1e9, zero + part[1] * 1e9
    path = run.path / role / "ticks.parquet"
    described = store.metadata(path)
    rows = store.fetch(path, f"SELECT probe, status, reason, {STAMPS}, missed::DOUBLE AS missed FROM t")
    inside = (rows["start"] >= begin) & (rows["end"] <= end)
    taken = inside & (rows["status"] == "ok")
    if len(set(rows["tick"][taken])) < 2:
        what = f"fewer than two ticks are inside {'this part of ' if part else ''}phase `measure`"
        raise InputError(path, what, "record a longer phase, or at a shorter interval")
    return Window(
        role=role,
        first=int(rows["tick"][taken].min()),
        last=int(rows["tick"][taken].max()),
        seconds=(end - begin) / 1e9,
        middle_ns=_stamps(rows, taken),
        missed=int(np.nansum(rows["missed"][inside])),
        failures=_reasons(rows, inside & (rows["status"] == "failed"), "reads failed"),
        unavailable=_unavailable(described),
        interval_ns=int(described.get("interval_ns", 0)),
        partial=_reasons(rows, taken & (rows["reason"] != None), "reads were incomplete"),  # noqa: E711
        grids=grids(rows, zero),
    )


def whole(run: Run, role: str, store: Store) -> tuple[float, float]:
    """Start and end of a recording without a load generator, in ns."""
    path = run.path / role / "ticks.parquet"
    query = "SELECT min(start_ns)::DOUBLE AS begin, max(end_ns)::DOUBLE AS ended FROM t"
    rows = store.fetch(path, query)
    return float(rows["begin"][0]), float(rows["ended"][0])


def _span(run: Run, role: str, store: Store) -> tuple[float, float]:
    """Start and end of phase `measure` on the clock of a role's recorder, in ns. Raises InputError."""
    if not run.phases and not run.result:
        return whole(run, role, store)
    phase = run.phase("measure")
    if phase is None or phase.end_ns is None:
        what = f"phase `measure` {'is missing' if phase is None else 'has no end'}"
        raise InputError(run.path / LOAD / "phases.jsonl", what, "record the run again")
    clock = align(run, role, store)
    return clock.there(phase.begin_ns), clock.there(phase.end_ns)


def _stamps(rows: dict[str, NDArray[Any]], taken: NDArray[np.bool_]) -> dict[str, dict[int, float]]:
    stamps: dict[str, dict[int, float]] = {}
    middle = (rows["start"] + rows["end"]) / 2
    middle, ticks = middle[taken], rows["tick"][taken].astype(int)
    for probe, places in grouped(rows["probe"][taken]):
        stamps[probe] = dict(zip(ticks[places].tolist(), middle[places].tolist(), strict=True))
    return stamps


def _reasons(rows: dict[str, NDArray[Any]], chosen: NDArray[np.bool_], what: str) -> dict[str, str]:
    """By probe the number of these reads, and the reason of the first."""
    reasons: dict[str, str] = {}
    for probe in sorted(set(rows["probe"][chosen])):
        of_probe = chosen & (rows["probe"] == probe)
        reasons[probe] = f"{int(of_probe.sum())} {what} ({rows['reason'][of_probe][0]})"
    return reasons


def _unavailable(described: Any) -> dict[str, str]:
    return {
        probe["name"]: f"{probe['status']}{': ' + probe['reason'] if probe.get('reason') else ''}"
        for probe in described.get("probes", [])
        if probe.get("status") != "running"
    }
