"""Checks that the work of a side that alternates stayed in its turns: how it was frozen, what it left."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from loadprint.metrics.quantities import NEAR, Quantities
from loadprint.metrics.rates import Source
from loadprint.reading.counters import Floats, edges
from loadprint.series.intervals import Intervals
from loadprint.statistics import stats

LEFT = 0.01  # of the written bytes, at least
LEFT_BEHIND = "of what it wrote was left to the kernel at the ends of its turns"
SPANS = "operations of the load had not ended when it was frozen"
# `turns.<name>`: by how much statements/s then differ from those of its other turns, or seconds, as a log;
# with its `.variance`, by the spread of the turns of a start, whose order is drawn, and that one's `.freedom`
CONTRASTS = {
    "position": "in the first turn of a round",
    "predecessor": "after a turn of its own",
    "thaw": "in the first second of a turn",
}
GATED = {"ebpf_exchanges", "ebpf_sched", "ebpf_states", "ebpf_switches"}
PROBED = "probed"  # the same of turns in which the gate of the scheduler's programs was open


def turns(source: Source) -> None:
    """Warn of a side whose work did not stay in its slices; nothing for a run that had all of the time.

    What is written into the page cache becomes dirty pages, and the kernel writes them when it likes, also
    while the side is frozen; their mean growth in a slice is compared with the bytes that the server wrote.
    It has an interval, because other programs write too; with fewer than three slices there is none.
    """
    run = source.run
    if not run.turns:
        return
    own = [turn for turn in (*run.slices, *run.load_slices) if turn.side == run.meta.side]
    if unended := sum(turn.in_event or 0 for turn in own):
        source.out.warnings.append(f"{unended} {SPANS}")
    _by_order(source)
    written = source.out.get("process.server.write_bytes")
    waiting = "metric IN ('Dirty', 'Writeback') GROUP BY tick"
    rows = source.rows("memory", f"SELECT tick, sum(value)::DOUBLE AS waiting FROM t WHERE {waiting}")
    if rows is None or written is None or not written.count:
        return
    first, last = edges(source.segments("memory", rows["tick"]))
    growth = (rows["waiting"][last] - rows["waiting"][first]) * source.unit("memory.Dirty")
    left = stats.t_interval(growth * len(growth) / written.count)
    if left.low is not None and left.low > LEFT:
        source.out.warnings.append(f"{100 * left.centre:.0f} % {LEFT_BEHIND}")


def _by_order(source: Source) -> None:
    """Add `turns.position`, `.predecessor` and `.probed`, of the statements that the server counted."""
    run, rates = source.run, source.out.by_segment.get("mysql.Questions", np.empty(0))
    own = [place for place, turn in enumerate(run.slices) if turn.side == run.meta.side]
    if len(rates) != len(own):
        return
    first = min(turn.position for turn in run.slices)
    _contrast(source.out, "position", rates, [run.slices[place].position == first for place in own])
    same = [place > 0 and run.slices[place - 1].side == run.meta.side for place in own]
    _contrast(source.out, "predecessor", rates, same)
    if not GATED.isdisjoint(source.window.read):
        _contrast(source.out, PROBED, rates, [run.slices[place].probed for place in own])


def since_thaw(reported: Intervals, out: Quantities) -> None:
    """Add `turns.thaw`, of the generator's intervals inside the slices, each of which has several.

    Of statements: no operation has ended in the first part of a turn, however much work it is.
    """
    begins = np.flatnonzero(np.append(True, reported.begins[1:] > reported.ends[:-1] + NEAR))
    rates = reported.rates("queries")
    slices = [of_turn for of_turn in np.split(rates, begins[1:]) if len(of_turn) > 1 and (of_turn > 0).all()]
    apart = np.array([math.log(turn[0]) - np.log(turn[1:]).mean() for turn in slices])
    if len(apart) > 1:
        _put(out, "thaw", float(apart.mean()), *_of_mean(apart))


def _contrast(out: Quantities, name: str, rates: Floats, chosen: Sequence[bool]) -> None:
    """Add the difference of the mean logs of the chosen rates and the others; nothing without two of both."""
    is_chosen = np.array(chosen, dtype=bool)
    these, others = (np.log(rates[places & (rates > 0)]) for places in (is_chosen, ~is_chosen))
    if min(len(these), len(others)) > 1:
        error, freedom = stats.welch(_of_mean(these), _of_mean(others))
        _put(out, name, float(these.mean() - others.mean()), error**2, freedom)


def _of_mean(values: Floats) -> tuple[float, float]:
    """The variance of a mean, and the degrees of freedom of it."""
    return float(values.var(ddof=1)) / len(values), len(values) - 1.0


def _put(out: Quantities, name: str, effect: float, variance: float, freedom: float) -> None:
    out.put(f"turns.{name}", effect)
    out.put(f"turns.{name}.variance", variance)
    out.put(f"turns.{name}.freedom", freedom)
