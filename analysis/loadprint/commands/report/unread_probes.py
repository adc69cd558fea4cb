"""Lists the probes that were unavailable or failed, each reason once."""

from __future__ import annotations

from collections.abc import Sequence

from loadprint.metrics.gather import Measured

OFF = "off"  # a probe that was not requested is not missing


def lost(names: Sequence[str], measured: Sequence[Sequence[Measured]]) -> tuple[tuple[str, str], ...]:
    """(probe, reason) of all runs, with the names of the sides where not all sides have the reason."""
    unread: dict[tuple[str, str], set[str]] = {}
    for name, runs in zip(names, measured, strict=True):
        for run in runs:
            if run.window is None:
                unread.setdefault(("all probes", "no recorder ran"), set()).add(name)
                continue
            for probe, reason in (*run.window.unavailable.items(), *run.window.failures.items()):
                if reason.partition(":")[0].strip() != OFF:
                    unread.setdefault((probe, reason), set()).add(name)
            if run.window.missed:
                reason = f"{run.window.missed} ticks missed in the window of {run.run.id}"
                unread.setdefault(("ticks", reason), set()).add(name)
    return tuple(
        (probe, reason if len(sides) == len(names) else f"{reason} ({', '.join(sorted(sides))})")
        for (probe, reason), sides in sorted(unread.items())
    )
