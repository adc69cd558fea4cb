"""Aligns the clocks of a run's hosts: maps a load's CLOCK_MONOTONIC to that of the server's recorder.

The generator reads the server's CLOCK_REALTIME before and after the run (clock.jsonl); the recorder's ticks
relate it to the server's CLOCK_MONOTONIC. The kernel slews both clocks equally. Only a step moves one against
the other, so that a step of either host's clock during a run changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from loadprint.errors import InputError
from loadprint.reading.names import LOAD
from loadprint.reading.queries import Store
from loadprint.reading.recording import Run
from loadprint.reading.stamps import Exchange, Phase

STEP_NS = 100_000_000  # a smaller change is a late read
WIDTH = 5  # ticks of the running median: two late ones in a row are not a step


@dataclass(frozen=True)
class Period:
    """A period without a step: `offset_ns` is CLOCK_REALTIME - CLOCK_MONOTONIC in it."""

    begin_ns: float
    end_ns: float
    offset_ns: float


@dataclass(frozen=True)
class Alignment:
    """A linear map from one host's CLOCK_MONOTONIC to another's; `rate` is seconds there per second here."""

    here_ns: float = 0.0
    there_ns: float = 0.0
    rate: float = 1.0

    def there(self, ns: float) -> float:
        """A stamp of this host on the other's clock."""
        return self.there_ns + (ns - self.here_ns) * self.rate

    def here(self, ns: float) -> float:
        """A stamp of the other host on this one's clock."""
        return self.here_ns + (ns - self.there_ns) / self.rate


def same_boot(run: Run, role: str) -> bool:
    """Whether the load's stamps and a role's recorder have one monotonic clock."""
    boots = {phase.boot_id for phase in run.phases} - {None}
    return bool(boots) and boots == {run.fingerprint(role).boot_id}


def _apart(run: Run, role: str) -> bool:
    """Whether the load ran on another host than a role's recorder: their boots are known and differ."""
    boots = {phase.boot_id for phase in run.phases} - {None}
    boot = run.fingerprint(role).boot_id
    return bool(boots) and boot is not None and boot not in boots


def periods(path: Path, store: Store) -> list[Period]:
    """Periods between the steps of the clock of a recorder's host, from its ticks.parquet.

    A tick's realtime is read with its start. A read in the background that is late has stamps from before its
    tick, so that only reads after the tick was due count.
    """
    rows = store.fetch(
        path,
        "SELECT tick, min(start_ns)::DOUBLE AS start,"
        " (max(realtime_ns - start_ns) FILTER (start_ns >= intended_ns))::DOUBLE AS first,"
        " median(realtime_ns - start_ns)::DOUBLE AS middle FROM t GROUP BY tick ORDER BY tick",
    )
    start, apart = rows["start"], np.where(np.isnan(rows["first"]), rows["middle"], rows["first"])
    if not len(apart):
        return [Period(-np.inf, np.inf, 0.0)]
    steady = _running_median(apart)
    first = [0, *(np.flatnonzero(np.abs(np.diff(steady)) > STEP_NS) + 1).tolist(), len(apart)]
    ends = [-np.inf, *((start[at - 1] + start[at]) / 2 for at in first[1:-1]), np.inf]
    parts = [float(np.median(apart[begin:end])) for begin, end in pairwise(first)]
    return [Period(*span, offset) for span, offset in zip(pairwise(ends), parts, strict=True)]


def _running_median(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Median of WIDTH neighbours; at the ends that of the nearest WIDTH."""
    if len(values) < 3:
        return np.full(len(values), np.median(values))
    width = WIDTH if len(values) >= WIDTH else 3
    medians = np.median(np.lib.stride_tricks.sliding_window_view(values, width), axis=1)
    return np.pad(medians, width // 2, mode="edge")


def steps(parts: Sequence[Period]) -> list[float]:
    """Seconds by which a clock was set, in order."""
    return [(after.offset_ns - before.offset_ns) / 1e9 for before, after in pairwise(parts)]


@dataclass(frozen=True)
class Offset:
    """The load host's clock against the server's.

    `measured` is False if no reading relates them. `offset_ns` is the load's CLOCK_REALTIME - the server's
    before the run, `bound_ns` its largest error. `drift` is how much faster the load's CLOCK_MONOTONIC ran
    (1e-6: a microsecond per second), None without a second reading, or if it is below `drift_bound`.
    """

    load: str
    server: str
    measured: bool
    offset_ns: int = 0
    bound_ns: int = 0
    drift: float | None = None
    drift_bound: float | None = None


@dataclass(frozen=True)
class Clocks:
    """Offset of a load host that is not the server's, and (host, seconds) of each step of a clock."""

    offset: Offset | None = None
    steps: tuple[tuple[str, float], ...] = ()


SAME_CLOCK = Clocks()


def clocks(run: Run, store: Store) -> Clocks:
    """The clocks of a run's hosts. Raises InputError if the recorder's ticks cannot be read."""
    if not run.roles:
        return Clocks()
    role = run.roles[0]
    server = run.host(role)
    stepped = [(server, step) for step in steps(periods(run.path / role / "ticks.parquet", store))]
    if not _apart(run, role):
        return Clocks(None, tuple(stepped))
    stepped += [(run.host(LOAD), step) for step in _steps_of_load(run)]
    return Clocks(_offset(run, role, store), tuple(stepped))


def _offset(run: Run, role: str, store: Store) -> Offset:
    names = run.host(LOAD), run.host(role)
    if not run.exchanges:
        return Offset(*names, measured=False)
    first, last = run.exchanges[0], run.exchanges[-1]
    bound = max(first.bound_ns, last.bound_ns)
    elapsed = last.monotonic_ns - first.monotonic_ns
    offset = first.realtime_ns - first.server_realtime_ns
    if elapsed <= 0:
        return Offset(*names, True, offset, bound)
    drift_bound = (first.bound_ns + last.bound_ns) / elapsed
    drift = 1 / align(run, role, store).rate - 1
    return Offset(*names, True, offset, bound, drift if abs(drift) > drift_bound else None, drift_bound)


def _steps_of_load(run: Run) -> list[float]:
    """Seconds by which the load's clock was set, from the stamps of its phases and exchanges."""
    stamps = [(exchange.monotonic_ns, exchange.realtime_ns) for exchange in run.exchanges]
    for phase in run.phases:
        stamps.append((phase.begin_ns, phase.begin_realtime_ns))
        if phase.end_ns is not None and phase.end_realtime_ns is not None:
            stamps.append((phase.end_ns, phase.end_realtime_ns))
    apart = [realtime - monotonic for monotonic, realtime in sorted(stamps)]
    jumps = [(after - before) / 1e9 for before, after in pairwise(apart)]
    return [jump for jump in jumps if abs(jump) * 1e9 > STEP_NS]


def align(run: Run, role: str, store: Store) -> Alignment:
    """Map stamps of the load to the clock of a role's recorder. Raises InputError if that is not possible.

    Without clock.jsonl the hosts' CLOCK_REALTIME are taken as equal.
    """
    if same_boot(run, role):
        return Alignment()
    path = run.path / role / "ticks.parquet"
    parts = periods(path, store)
    if run.exchanges:
        return _by_exchanges(run.exchanges, parts)
    measure = run.phase("measure")
    if measure is None:
        return Alignment()
    return _by_realtime(measure, path, parts)


def _by_realtime(phase: Phase, path: Path, parts: Sequence[Period]) -> Alignment:
    if stepped := steps(parts):
        what = (
            f"the clock was set by {round(max(map(abs, stepped)), 1):g} s during the recording, so the "
            "phases of another host cannot be aligned"
        )
        raise InputError(path, what, "record the run again: loadprint-load now measures the clocks' offset")
    return Alignment(phase.begin_ns, phase.begin_realtime_ns - parts[0].offset_ns)


def _by_exchanges(exchanges: Sequence[Exchange], parts: Sequence[Period]) -> Alignment:
    """The map through two readings of the server's clock; through one of them its rate is 1.

    After a step back one reading fits two periods: the pair that is as far apart as on the load's clock is
    used.
    """
    first, last = exchanges[0], exchanges[-1]
    choices = [_on_monotonic(exchange, parts) for exchange in (first, last)]
    elapsed = last.monotonic_ns - first.monotonic_ns
    begin, end = min(product(*choices), key=lambda pair: abs(pair[1] - pair[0] - elapsed))
    rate = (end - begin) / elapsed if elapsed > 0 and end > begin else 1.0
    # beyond any crystal: the recorder saw a step too late or not at all
    return Alignment(first.monotonic_ns, begin, rate if abs(rate - 1) < 1e-3 else 1.0)


def _on_monotonic(exchange: Exchange, parts: Sequence[Period]) -> list[float]:
    """The server's CLOCK_MONOTONIC at a reading of its CLOCK_REALTIME, in each period that has it."""
    times = [(part, exchange.server_realtime_ns - part.offset_ns) for part in parts]
    inside = [at for part, at in times if part.begin_ns <= at <= part.end_ns]
    # a step forward skips times; a reading just before it is of the nearest period
    return inside or [min(times, key=lambda pair: _distance(*pair))[1]]


def _distance(part: Period, at: float) -> float:
    return max(part.begin_ns - at, at - part.end_ns, 0.0)
