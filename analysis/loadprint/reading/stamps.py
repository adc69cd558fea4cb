"""Reads the lines of phases.jsonl and clock.jsonl: the phases of a load, and its readings of two clocks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from loadprint.errors import InputError
from loadprint.reading import bounds, documents
from loadprint.reading.bounds import COPY_AGAIN

BASELINE, TREATMENT = "baseline", "treatment"  # phases of an A/B experiment, for each of its windows


@dataclass(frozen=True)
class Phase:
    """One phase of the load: stamps in ns; the end is None if the generator did not write it."""

    name: str
    begin_ns: int
    begin_realtime_ns: int
    end_ns: int | None
    end_realtime_ns: int | None
    boot_id: str | None


@dataclass(frozen=True)
class Exchange:
    """One reading of the server's clock by a load host, in ns.

    At `monotonic_ns` and `realtime_ns` of the load the server's CLOCK_REALTIME was `server_ns`, with an error
    of at most `bound_ns`. `at` is `before` or `after` the run.
    """

    at: str
    boot_id: str | None
    monotonic_ns: int
    realtime_ns: int
    server_ns: int
    bound_ns: int


def read_exchanges(path: Path) -> tuple[Exchange, ...]:
    """Read clock.jsonl: the last reading before the run, then the last after it; empty without the file.

    A last line that a crash cut off is dropped. Raises InputError for another broken line.
    """
    found: dict[str, Exchange] = {}
    for number, is_last, line in bounds.lines(path):
        try:
            exchange = _exchange(documents.loads(line))
        except (ValueError, KeyError, TypeError) as error:
            if is_last:
                break
            raise InputError(f"{path} line {number}", "is not a reading of two clocks", COPY_AGAIN) from error
        found[exchange.at] = exchange
    return tuple(found[at] for at in ("before", "after") if at in found)


def _exchange(stamp: Any) -> Exchange:
    """Check one line. Raises KeyError or TypeError."""
    at, boot = stamp["at"], stamp.get("boot_id")
    names = ("monotonic_ns", "realtime_ns", "server_realtime_ns", "bound_ns")
    values = [stamp[name] for name in names]
    if at not in ("before", "after") or not isinstance(boot, str | None):
        raise TypeError(stamp)
    if any(type(value) is not int or abs(value) > documents.LARGEST_INTEGER for value in values):
        raise TypeError(stamp)
    if values[3] < 0:
        raise TypeError(stamp)
    return Exchange(at, boot, *values)


def read_phases(path: Path, problems: list[str]) -> tuple[Phase, ...]:
    """Read phases.jsonl; a last line that a crash cut off is reported and dropped."""
    if not path.is_file():
        problems.append(f"{path.parent.name}/phases.jsonl is missing")
        return ()
    phases: list[Phase] = []
    for number, is_last, line in bounds.lines(path):
        try:
            stamp = _stamp(line)
        except (ValueError, KeyError, TypeError) as error:
            if is_last:
                problems.append(f"{path.parent.name}/phases.jsonl: last line {number} is cut off")
                break
            raise InputError(f"{path} line {number}", "is not a phase stamp", COPY_AGAIN) from error
        if stamp.end_ns is None:
            phases.append(stamp)
            continue
        opened = [i for i, phase in enumerate(phases) if phase.name == stamp.name and phase.end_ns is None]
        if not opened:
            continue
        phase = phases[opened[-1]]
        if stamp.end_ns < phase.begin_ns:
            what = f"phase `{phase.name}` ends before its start"
            raise InputError(f"{path} line {number}", what, COPY_AGAIN)
        phases[opened[-1]] = replace(phase, end_ns=stamp.end_ns, end_realtime_ns=stamp.end_realtime_ns)
    return tuple(phases)


def _stamp(line: str) -> Phase:
    """One line as a phase, with an end if it has one. Raises ValueError, KeyError or TypeError."""
    stamp = documents.loads(line)
    name, event, boot = stamp["phase"], stamp["event"], stamp.get("boot_id")
    monotonic, realtime = stamp["monotonic_ns"], stamp["realtime_ns"]
    if not isinstance(name, str) or event not in ("begin", "end") or not isinstance(boot, str | None):
        raise TypeError(line)
    if any(type(at) is not int or abs(at) > documents.LARGEST_INTEGER for at in (monotonic, realtime)):
        raise TypeError(line)
    begun = Phase(name, monotonic, realtime, None, None, boot)
    return begun if event == "begin" else replace(begun, end_ns=monotonic, end_realtime_ns=realtime)
