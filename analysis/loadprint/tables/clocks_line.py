"""Writes the header line `clocks`: the offsets between the hosts of a run, and clocks that were set."""

from __future__ import annotations

from collections.abc import Sequence

from loadprint.metrics.gather import Measured
from loadprint.numbers import brief
from loadprint.reading.clocks import Offset


def clocks_text(runs: Sequence[Measured]) -> str:
    """Largest offset, error and drift of each pair of hosts; empty on one host without a step."""
    pairs: dict[tuple[str, str], list[Offset]] = {}
    for run in runs:
        if offset := run.clocks.offset:
            pairs.setdefault((offset.load, offset.server), []).append(offset)
    texts = [_pair(load, server, offsets) for (load, server), offsets in pairs.items()]
    several = len(runs) > 1
    for run in runs:
        when = run.run.id if several else "the run"
        kept = "aligned" if run.clocks.offset and run.clocks.offset.measured else "rates are"
        for host, seconds in run.clocks.steps:
            text = f"{host}'s clock was set by {_seconds(seconds)} during {when}"
            texts.append(f"{text}; {kept} on the monotonic clock")
    return "; ".join(dict.fromkeys(texts))


def _pair(load: str, server: str, offsets: Sequence[Offset]) -> str:
    """One load host and the server."""
    measured = [offset for offset in offsets if offset.measured]
    if len(measured) < len(offsets):
        return f"the offset between {load} and {server} is not known: clock.jsonl is missing; taken as 0"
    largest = max(measured, key=lambda offset: abs(offset.offset_ns))
    bound = max(offset.bound_ns for offset in measured)
    if abs(largest.offset_ns) <= bound:
        return f"{load} within {_ms(bound)} ms of {server}{_drift(measured)}; aligned"
    up_to = "up to " if len(measured) > 1 else ""
    way = "ahead of" if largest.offset_ns > 0 else "behind"
    text = f"{load} {up_to}{_ms(abs(largest.offset_ns))} ms {way} {server} ± {_ms(bound)} ms"
    return f"{text}{_drift(measured)}; aligned"


def _drift(offsets: Sequence[Offset]) -> str:
    drifts = [offset.drift for offset in offsets if offset.drift is not None]
    bounds = [offset.drift_bound for offset in offsets if offset.drift_bound is not None]
    if drifts:
        return f", drift {'up to ' if len(offsets) > 1 else ''}{_ppm(max(drifts, key=abs))} ppm"
    return f", drift under {_ppm(max(bounds))} ppm" if bounds else ", drift not measured"


def _ms(nanoseconds: float) -> str:
    return brief(nanoseconds / 1e6, 2)


def _ppm(drift: float) -> str:
    return brief(drift * 1e6, 2)


def _seconds(seconds: float) -> str:
    return f"{'+' if seconds > 0 else '−'}{brief(abs(seconds), 3)} s"
