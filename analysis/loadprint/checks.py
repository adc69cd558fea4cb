"""Was the load generator the limit? Then a side carries no verdict."""

from __future__ import annotations

from collections.abc import Sequence

from loadprint.gather import Measured

THREAD_BUSY, SET_BUSY, DELAY_SHARE = 0.90, 0.80, 0.05


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
