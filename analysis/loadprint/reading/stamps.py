"""Reads the lines of phases.jsonl and clock.jsonl: the phases of a load, and its readings of two clocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from loadprint.errors import InputError
from loadprint.reading.bounds import COPY_AGAIN
from loadprint.reading.documents import Integer, JsonObject, read_lines


@dataclass(frozen=True)
class Phase:
    """One phase of the load: stamps in ns; the end is None if the generator did not write it."""

    name: str
    begin_ns: int
    begin_realtime_ns: int
    end_ns: int | None
    end_realtime_ns: int | None
    boot_id: str | None


class Stamp(JsonObject):
    """One line of phases.jsonl; those of an A/B experiment have a window, its block, and the fixed work."""

    phase: str
    event: Literal["begin", "end"]
    monotonic_ns: Integer
    realtime_ns: Integer
    boot_id: str | None = None
    window: Integer = 0
    block: Integer = 0
    broken_off: bool = False
    fixed_work_ns: Annotated[Integer, Field(gt=0)] | None = None


class Exchange(JsonObject):
    """One reading of the server's clock by a load host, in ns.

    At `monotonic_ns` and `realtime_ns` of the load the server's CLOCK_REALTIME was `server_realtime_ns`, with
    an error of at most `bound_ns`. `at` is `before` or `after` the run.
    """

    at: Literal["before", "after"]
    boot_id: str | None = None
    monotonic_ns: Integer
    realtime_ns: Integer
    server_realtime_ns: Integer
    bound_ns: Annotated[Integer, Field(ge=0)]


def read_exchanges(path: Path) -> tuple[Exchange, ...]:
    """Read clock.jsonl: the last reading before the run, then the last after it; empty without the file.

    A last line that a crash cut off is dropped. Raises InputError for another broken line.
    """
    exchanges = {
        exchange.at: exchange for _, exchange in read_lines(path, Exchange, "a reading of two clocks")
    }
    return tuple(exchanges[at] for at in ("before", "after") if at in exchanges)


def read_stamps(path: Path, problems: list[str] | None = None) -> Iterator[tuple[int, Stamp]]:
    """Number and content of the lines of phases.jsonl; a last line that a crash cut off is dropped."""
    return read_lines(path, Stamp, "a phase stamp", problems)


def read_phases(path: Path, problems: list[str]) -> tuple[Phase, ...]:
    """Read phases.jsonl; a last line that a crash cut off is reported and dropped."""
    if not path.is_file():
        problems.append(f"{path.parent.name}/phases.jsonl is missing")
        return ()
    phases: list[Phase] = []
    for number, stamp in read_stamps(path, problems):
        if stamp.event == "begin":
            begun = Phase(stamp.phase, stamp.monotonic_ns, stamp.realtime_ns, None, None, stamp.boot_id)
            phases.append(begun)
            continue
        opened = [i for i, phase in enumerate(phases) if phase.name == stamp.phase and phase.end_ns is None]
        if not opened:
            continue
        phase = phases[opened[-1]]
        if stamp.monotonic_ns < phase.begin_ns:
            what = f"phase `{phase.name}` ends before its start"
            raise InputError(f"{path} line {number}", what, COPY_AGAIN)
        ended = replace(phase, end_ns=stamp.monotonic_ns, end_realtime_ns=stamp.realtime_ns)
        phases[opened[-1]] = ended
    return tuple(phases)
