"""Reads the time of connection threads by state, from the probe `ebpf_states`."""

from __future__ import annotations

from loadprint.metrics.sources import Source
from loadprint.metrics.sources_ebpf import increases, readings
from loadprint.reading.queries import doubles

PROBE = "ebpf_states"
KEYS = ("role", "threads", "state")
ON_CPU = "on CPU"
USER = "user"  # the part of ON_CPU in user mode
FIGURES = ("time_ns", "user_ns", "system_ns")


def rates(source: Source, role: str) -> dict[str, float] | None:
    """Mean number of a role's connection threads in each state; `user` is also a part of `on CPU`.

    The kernel's user and system times are samples: they only divide the time. Empty without such threads;
    None, with the reason, if the states were not recorded.
    """
    rows = readings(source, PROBE, KEYS, doubles(FIGURES))
    if rows is None:
        # the quantities that are missing without the states of a role
        names = "ledger." if role == "server" else f"ledger.{role}_threads"
        source.out.mark_missing(names, source.window.why_missing(PROBE))
        return None
    seconds, found = source.seconds(PROBE), dict[str, float]()
    for (of_role, threads, state), risen in increases(source, PROBE, rows, KEYS, FIGURES):
        if (of_role, threads) != (role, "connection"):
            continue
        found[state] = risen["time_ns"] * source.unit(f"{PROBE}.time_ns") / seconds
        if state == ON_CPU:
            ticks = risen["user_ns"] + risen["system_ns"]
            found[USER] = found[state] * (risen["user_ns"] / ticks if ticks > 0 else 1.0)
    return found if any(found.values()) else {}
