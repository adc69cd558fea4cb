"""May a side carry verdicts? Whether it settled, and whether its load generator was the limit."""

from __future__ import annotations

from collections.abc import Sequence

from loadprint import stats
from loadprint.gather import Measured

DRIFT = 0.05
THREAD_BUSY, SET_BUSY, DELAY_SHARE = 0.90, 0.80, 0.05
GROWING = ("arm_insert",)  # the data grow with the work: compared at equal work, no trend test


def grows(run: Measured) -> bool:
    """Whether a run is exempt from the trend test: its data grow, or its work is a fixed number of events."""
    workload = str((run.run.result or {}).get("workload") or run.run.meta.get("workload") or "")
    options = (run.run.result or {}).get("options") or {}
    fixed = isinstance(options.get("events"), int) and options["events"] > 0
    return workload.startswith(GROWING) or fixed


def unsettled(name: str, runs: Sequence[Measured]) -> str:
    """Why a side counts as never settled; empty when it settled, is exempt, or its series is too short.

    A run drifts when Theil–Sen slope × window is 5 % of the mean or more and its interval excludes zero.
    """
    drifting = []
    for run in runs:
        if grows(run):
            continue
        found = stats.trend(run.events_per_second)
        if found and abs(found.drift) >= DRIFT and found.low * found.high > 0:
            drifting.append(f"{run.run.id} {100 * found.drift:+.0f} %")
    if not drifting or len(drifting) * 2 <= len(runs):
        return ""
    return f"{name} never settled (drift of operations/s over the window: {', '.join(drifting)}): no verdict"


def transient(name: str, runs: Sequence[Measured]) -> str:
    """What MSER-5 would still cut from a long series; empty when it agrees that the window is steady."""
    cuts = [(run, stats.mser5(run.events_per_second)) for run in runs if not grows(run)]
    late = [f"{run.run.id} {cut} s" for run, cut in cuts if cut and cut > 0.2 * len(run.events_per_second)]
    return f"{name}: MSER-5 would drop the beginning of {', '.join(late)}" if late else ""


def client_bound(name: str, runs: Sequence[Measured]) -> str:
    """Why the load generator, not the server, was the limit; empty when it was not, or nobody measured."""
    reasons: dict[str, list[str]] = {}
    for run in runs:
        for what, value in _limits(run):
            reasons.setdefault(what, []).append(value)
    if not reasons:
        return ""
    said = "; ".join(f"{what} {' / '.join(values)}" for what, values in reasons.items())
    own = [found.rate for run in runs if (found := run.quantities.get("process.load.cpu"))]
    said += f" (its own process used {100 * sum(own) / len(own):.0f} % of a core)" if own else ""
    return f"{name} is client-bound: {said}. Its server was not driven to its limit"


def _limits(run: Measured) -> list[tuple[str, str]]:
    found = []
    q = run.quantities
    busiest, delay = q.get("threads.load.busiest"), q.get("threads.load.run_delay_ns")
    if busiest and busiest.rate > THREAD_BUSY:
        found.append(("a load thread was on CPU for", f"{100 * busiest.rate:.0f} %"))
    states = [
        q.get(f"cpu.load.{s}")
        for s in ("user", "nice", "system", "irq", "softirq", "iowait", "steal", "idle")
    ]
    times = [state.rate for state in states if state]
    if len(times) == len(states) and run.load_cpus is not None and sum(times) > 0:
        busy = sum(times[:5]) / sum(times)
        if busy > SET_BUSY:
            found.append(("its CPUs were busy for", f"{100 * busy:.0f} %"))
    events, latency = q.get("load.events"), q.get("latency.mean")
    if delay and events and latency and events.rate > 0 and latency.rate > 0:
        share = delay.rate / events.rate / latency.rate
        if share > DELAY_SHARE:
            found.append(("share of mean latency spent waiting for a CPU", f"{100 * share:.0f} %"))
    return found
