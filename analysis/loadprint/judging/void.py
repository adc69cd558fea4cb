"""Lists why the figures of a side support no verdict: client-bound, never settled, disturbed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from loadprint.judging import canary, client, steady
from loadprint.judging.findings import Shift
from loadprint.metrics.gather import Measured

CLIENT_BOUND, NEVER_SETTLED, DISTURBED = "client-bound", "never settled", "disturbed"


def reasons(
    name: str, runs: Sequence[Measured], shifts: Sequence[Shift], settled: Sequence[Measured] | None = None
) -> Iterator[tuple[str, str]]:
    """Yield a word and a line for each reason.

    `shifts` are those of the runs' canaries; the trend is that of `settled`, by default of all runs.
    """
    if reason := client.client_bound(name, runs):
        yield CLIENT_BOUND, reason
    repeats = runs if settled is None else settled
    if reason := steady.unsettled(name, repeats, steady.together(repeats)):
        yield NEVER_SETTLED, reason
    if reason := "; ".join(canary.beyond(shifts)):
        yield DISTURBED, f"{name}: disturbed according to the canary, run again: {reason}"
