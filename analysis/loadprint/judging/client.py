"""Checks whether the load generator limited the throughput: its threads, CPUs, CPU wait and ports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from loadprint.judging.facts_host import port_count
from loadprint.judging.findings import Judgement
from loadprint.metrics.gather import Measured

THREAD_BUSY, SET_BUSY, DELAY_SHARE = 0.90, 0.80, 0.05
PORTS_USED = 0.5  # of the port range in TIME_WAIT: connect() slows down, and soon fails
TIME_WAIT_S = 60.0  # TCP_TIMEWAIT_LEN of the kernel
STOLEN = 0.01  # of the CPU time of the server or the load; more is a disturbance
LIGHT = 0.5  # above this busy share of the load's CPUs its threads also wait for each other
Share = Callable[[Measured], float | None]
STATES = ("user", "nice", "system", "irq", "softirq", "iowait", "steal", "idle")


@dataclass(frozen=True)
class Limit:
    """One resource of the load generator: its largest share in any run, None if not measured."""

    label: str
    share: float | None
    allowed: float
    reason: str = ""

    @property
    def beyond(self) -> bool:
        """Whether the share exceeds the limit."""
        return self.share is not None and self.share > self.allowed

    def text(self) -> str:
        """The share, with the limit if it was exceeded."""
        if self.share is None:
            return ""
        limit = f" (limit {100 * self.allowed:.0f} %)" if self.beyond else ""
        return self.label.format(_percent(self.share, self.allowed)) + limit


def bound(runs: Sequence[Measured]) -> Judgement:
    """Whether a side was client-bound: `yes` if any repeat was, `no` or `not measured`."""
    limits = _limits(runs)
    beyond = [limit for limit in limits if limit.beyond]
    if beyond:
        used = [cpu.rate for run in runs if (cpu := run.quantities.get("process.load.cpu"))]
        text = ", ".join(limit.text() for limit in beyond)
        text += f"; its process {100 * sum(used) / len(used):.0f} % of a core" if used else ""
        return Judgement("yes", text + _stolen_text(runs))
    measured = [limit.text() for limit in limits if limit.share is not None]
    lacking = [limit for limit in limits[:3] if limit.share is None]
    if len(lacking) == len(limits[:3]):
        return Judgement("not measured", "; ".join(dict.fromkeys(limit.reason for limit in lacking)))
    if hidden := [run for run in runs if _may_hide_a_thread(run)]:
        return Judgement("not measured", ", ".join([_hidden_text(hidden, len(runs)), *measured]))
    unknown = f"; unknown: {'; '.join(dict.fromkeys(limit.reason for limit in lacking))}" if lacking else ""
    return Judgement("no", ", ".join(measured) + _stolen_text(runs) + unknown)


def stolen(run: Measured) -> float | None:
    """Share of the load's CPU time that was stolen by other virtual machines, if known."""
    times = _times(run)
    return times["steal"] / sum(times.values()) if times else None


def _stolen_text(runs: Sequence[Measured]) -> str:
    """The largest CPU wait of a run that is not counted as its CPUs were stolen; empty if there is none."""
    shares = [
        (wait * excused, steal)
        for run in runs
        if (wait := _wait(run)) and (excused := _excused(run)) and (steal := stolen(run))
    ]
    if not shares:
        return ""
    wait, steal = max(shares)
    waited = f"CPU wait {_percent(wait, DELAY_SHARE)} % of latency"
    return f"; not counted: {waited} where {100 * steal:.1f} % of the load's CPU time was stolen"


def _may_hide_a_thread(run: Measured) -> bool:
    """Whether one thread of the load may be full although neither its process nor its CPUs show it."""
    if _busiest_thread(run) is not None:
        return False
    shown_by_its_cpu = len(run.load_cpus or ()) == 1 and _busy(run) is not None
    used = run.quantities.rate("process.load.cpu")
    return not shown_by_its_cpu and (used is None or used >= THREAD_BUSY)


def _hidden_text(hidden: Sequence[Measured], count: int) -> str:
    """Why a full thread cannot be excluded in some of the runs."""
    used = [cpu for run in hidden if (cpu := run.quantities.rate("process.load.cpu")) is not None]
    process = f"its process uses {100 * max(used):.0f} % of a core" if used else "its CPU time is unknown"
    of = f" in {len(hidden)} of {count} runs" if count > 1 else ""
    reason = hidden[0].quantities.why("threads.load.busiest")
    return f"one thread may be full{of}: {process}, that of each thread is unknown ({reason})"


def client_bound(name: str, runs: Sequence[Measured]) -> str:
    """The warning for a client-bound side; empty if it was not client-bound, or not measured."""
    result = bound(runs)
    if result.answer != "yes":
        return ""
    return f"{name} is client-bound: {result.text}. The server may be able to do more"


def _percent(share: float, limit: float) -> str:
    """A share in percent, with a decimal near the limit."""
    near = abs(share - limit) < 0.01 or 0 < share < 0.01
    return f"{100 * share:.1f}" if near else f"{100 * share:.0f}"


def _limits(runs: Sequence[Measured]) -> tuple[Limit, Limit, Limit, Limit]:
    def limit(label: str, share: Share, allowed: float, quantity: str) -> Limit:
        shares = [value for run in runs if (value := share(run)) is not None]
        reason = runs[0].quantities.why(quantity)
        if quantity.startswith("cpu.") and runs[0].load_cpus is None:
            reason = "no CPU set was given for the load"
        return Limit(label, max(shares, default=None), allowed, reason)

    return (
        limit("busiest thread {} % of a CPU", _busiest_thread, THREAD_BUSY, "threads.load.busiest"),
        limit("its CPUs {} %", _busy, SET_BUSY, "cpu.load.user"),
        limit("CPU wait {} % of latency", _delay, DELAY_SHARE, "threads.load.run_delay_ns"),
        limit("{} % of ports in TIME_WAIT", _ports, PORTS_USED, "sockets.load.time_wait"),
    )


def _busiest_thread(run: Measured) -> float | None:
    return run.quantities.rate("threads.load.busiest")


def _times(run: Measured) -> dict[str, float]:
    """Time of the load's CPU set by state, in CPU-seconds per second; empty if unknown."""
    states = {state: run.quantities.rate(f"cpu.load.{state}") for state in STATES}
    times = {state: time for state, time in states.items() if time is not None}
    complete = len(times) == len(STATES) and run.load_cpus is not None and sum(times.values()) > 0
    return times if complete else {}


def _busy(run: Measured) -> float | None:
    """Busy share of the load's CPU set, of all processes."""
    times = _times(run)
    cores = run.quantities.rate("cpu.load.cores")
    return sum(times[state] for state in STATES[:5]) / cores if times and cores else None


def _wait(run: Measured) -> float | None:
    """Time that runnable threads of the load waited for a CPU, over mean latency × operations."""
    delay, events, latency = (
        run.quantities.rate(name) for name in ("threads.load.run_delay_ns", "load.events", "latency.mean")
    )
    if not delay or not events or not latency or events <= 0 or latency <= 0:
        return None
    return delay / events / latency


def _excused(run: Measured) -> float:
    """The share of the CPU wait that stolen time explains, 0 to 1.

    In a stolen second the threads of one CPU wait: on CPUs that are mostly idle that is one thread, so that a
    stolen second explains a second of waiting. On busy CPUs threads wait for each other, whatever is stolen.
    """
    share, busy, delay = stolen(run), _busy(run), run.quantities.rate("threads.load.run_delay_ns")
    if not delay or share is None or busy is None or share <= STOLEN or busy >= LIGHT:
        return 0.0
    return min(1.0, _times(run)["steal"] / delay)


def _delay(run: Measured) -> float | None:
    """The part of `_wait` that the load's own threads caused.

    While a thread waits, its CPU runs other threads or is stolen. The wait that stolen time explains is a
    disturbance of the host and does not count. Of the rest the share of other processes is subtracted in
    proportion to CPU time.
    """
    wait = _wait(run)
    if wait is None:
        return None
    wait *= 1 - _excused(run)
    times, on_cpu = _times(run), run.quantities.rate("threads.load.on_cpu_ns")
    ran = sum(times[state] for state in ("user", "nice", "system")) if times else 0.0
    return wait * min(1.0, on_cpu / ran) if on_cpu is not None and ran > 0 else wait


def _ports(run: Measured) -> float | None:
    """Share of the port range that is in TIME_WAIT, or will be at this rate of new connections."""
    ports = port_count(run.run.fingerprint("load"))
    now, opened = (run.quantities.rate(f"sockets.load.{name}") for name in ("time_wait", "active_opens"))
    waiting = [now, run.run.result.details.sockets.after.tcp_time_wait]
    if opened is not None and now:  # else connections stay open, and leave no port in TIME_WAIT
        waiting.append(opened * TIME_WAIT_S)
    measured = [value for value in waiting if value is not None]
    return max(measured) / ports if measured and ports else None
