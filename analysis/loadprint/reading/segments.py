"""Reads the segments of a run's measured time: slices of sides that take turns, windows of an A/B experiment.

A run whose side had all of the measure phase has no such file, and one segment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from loadprint.reading.names import BASELINE, LOAD, TREATMENT
from loadprint.reading.recording import Run
from loadprint.reading.stamps import read_stamps


@dataclass(frozen=True)
class WindowSpan:
    """A window of an A/B experiment, CLOCK_MONOTONIC of the server's host in ns."""

    number: int
    block: int
    variant: str
    begin_ns: int
    end_ns: int
    fixed_work_ns: int | None = None


def sides_in(run: Run) -> Mapping[str, tuple[Run, ...]]:
    """The sides that took turns in a run, each with its replicates; empty if there was one.

    A run of a campaign whose sides alternate has the recording of its own side, and the slices of all.

    A replicate is a run with the segments of one side: all slices, or the windows of a complete block of an
    A/B experiment. Raises InputError with the line of the first mistake.
    """
    if slices := run.slices:
        # its recorder read only at the slices of its own side
        own = run.meta.side if run.turns else None
        names = dict.fromkeys(turn.side for turn in slices if own in (None, turn.side))
        return {name: (_of_side(run, name),) for name in names}
    windows = list(windows_of(run)) if run.meta.generator == "ab" else []
    return {
        variant: tuple(_of_blocks(run, variant, windows))
        for variant in (BASELINE, TREATMENT)
        if any(window.variant == variant for window in windows)
    }


def _of_side(run: Run, name: str) -> Run:
    """The run with the slices of one side as its segments."""
    here, load = (
        tuple((turn.measured_from_ns, turn.end_ns) for turn in slices if turn.side == name)
        for slices in (run.slices, run.load_slices)
    )
    return replace(run, segments=here, load_segments=load or None)


def _of_blocks(run: Run, variant: str, windows: list[WindowSpan]) -> Iterator[Run]:
    """One run for each block with as many windows as the largest one."""
    blocks = sorted({window.block for window in windows})
    sizes = {block: sum(window.block == block for window in windows) for block in blocks}
    for block in blocks:
        spans = tuple(
            (window.begin_ns, window.end_ns)
            for window in windows
            if window.block == block and window.variant == variant
        )
        if spans and sizes[block] == max(sizes.values()):
            named = {"id": f"{run.id} block {block}", "side": variant, "block": block, "repeat": block}
            yield replace(run, meta=run.meta.model_copy(update=named), segments=spans)


def windows_of(run: Run) -> Iterator[WindowSpan]:
    """The complete windows of an A/B experiment, in order. Raises InputError if a line is not a stamp."""
    begin_ns = dict[int, int]()
    for _, stamp in read_stamps(run.path / LOAD / "phases.jsonl"):
        key, when = stamp.window, stamp.monotonic_ns
        if stamp.phase not in (TREATMENT, BASELINE):
            continue
        if stamp.event == "begin":
            begin_ns[key] = when
        elif key in begin_ns and not stamp.broken_off:
            yield WindowSpan(key, stamp.block, stamp.phase, begin_ns[key], when, stamp.fixed_work_ns)
