"""Whether the load generator, not the server, was the limit: its threads, CPUs, waits for a CPU, ports."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from loadprint.metrics.gather import Measured

THREAD_BUSY, SET_BUSY, DELAY_SHARE = 0.90, 0.80, 0.05
PORTS_USED = 0.5  # of the port range in TIME_WAIT: connect() begins to search, and soon to fail
TIME_WAIT_S = 60.0  # TCP_TIMEWAIT_LEN of the kernel
PORT_RANGE = "net.ipv4.ip_local_port_range"
STOLEN = 0.01  # of the CPU time of the server or the load: more is a disturbance of the host
LIGHT = 0.5  # busy share of the load's CPUs below which their steal explains the wait for them
STATES = ("user", "nice", "system", "irq", "softirq", "iowait", "steal", "idle")


@dataclass(frozen=True)
class Limit:
    """One way to be the limit: the largest share of any run, None where nobody measured."""

    said: str
    share: float | None
    allowed: float
    why: str = ""

    @property
    def beyond(self) -> bool:
        """Whether it was the limit."""
        return self.share is not None and self.share > self.allowed

    def told(self) -> str:
        """What was measured; the limit where it was passed."""
        if self.share is None:
            return ""
        limit = f" (limit {100 * self.allowed:.0f} %)" if self.beyond else ""
        return self.said.format(_percent(self.share, self.allowed)) + limit


@dataclass(frozen=True)
class Bound:
    """Whether a side was client-bound: `yes`, `no` or `cannot tell`, and the numbers or reasons."""

    answer: str
    text: str


def bound(runs: Sequence[Measured]) -> Bound:
    """Judge all repeats of a side: it is client-bound when any of them was."""
    limits = _limits(runs)
    beyond = [limit for limit in limits if limit.beyond]
    if beyond:
        own = [found.rate for run in runs if (found := run.quantities.get("process.load.cpu"))]
        said = ", ".join(limit.told() for limit in beyond)
        said += f"; its own process {100 * sum(own) / len(own):.0f} % of a core" if own else ""
        return Bound("yes", said)
    told = _stolen_text(runs)
    known = [limit.told() for limit in limits if limit.share is not None]
    lacking = [limit for limit in limits[:3] if limit.share is None]
    if len(lacking) == len(limits[:3]):
        return Bound("cannot tell", "; ".join(dict.fromkeys(limit.why for limit in lacking)))
    unknown = f"; unknown: {'; '.join(dict.fromkeys(limit.why for limit in lacking))}" if lacking else ""
    return Bound("no", ", ".join(known) + told + unknown)


def stolen(run: Measured) -> float | None:
    """Share of the load's CPU time that the hypervisor gave to other guests; None where it is unknown."""
    times = _times(run)
    return times["steal"] / sum(times.values()) if times else None


def _stolen_text(runs: Sequence[Measured]) -> str:
    """The CPU wait that is not counted because the CPUs were stolen; empty where there is none."""
    shares = [(found, wait) for run in runs if (found := _excused(run)) and (wait := _wait(run)) is not None]
    if not shares:
        return ""
    steal, wait = (max(each) for each in zip(*shares, strict=True))
    told = (
        f"CPU wait {_percent(wait, DELAY_SHARE)} % of latency with {100 * steal:.1f} % of its CPU time stolen"
    )
    return f"; not counted: {told}"


def client_bound(name: str, runs: Sequence[Measured]) -> str:
    """Why the load generator, not the server, was the limit; empty when it was not, or nobody measured."""
    found = bound(runs)
    if found.answer != "yes":
        return ""
    return f"{name} is client-bound: {found.text}. The server may be able to do more"


def _percent(share: float, limit: float) -> str:
    """A share in percent, with a decimal where whole numbers would hide on which side of the limit it is."""
    near = abs(share - limit) < 0.01 or 0 < share < 0.01
    return f"{100 * share:.1f}" if near else f"{100 * share:.0f}"


def _limits(runs: Sequence[Measured]) -> tuple[Limit, Limit, Limit, Limit]:
    first = runs[0].quantities
    return (
        Limit(
            "busiest thread {} %",
            _most(_quantity(run, "threads.load.busiest") for run in runs),
            THREAD_BUSY,
            first.why("threads.load.busiest"),
        ),
        Limit(
            "its CPUs {} %",
            _most(_busy(run) for run in runs),
            SET_BUSY,
            "no CPU set was given for the load" if runs[0].load_cpus is None else first.why("cpu.load.user"),
        ),
        Limit(
            "CPU wait {} % of latency",
            _most(_delay(run) for run in runs),
            DELAY_SHARE,
            first.why("threads.load.run_delay_ns"),
        ),
        Limit("{} % of ports in TIME_WAIT", _most(_ports(run) for run in runs), PORTS_USED),
    )


def _most(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _quantity(run: Measured, name: str) -> float | None:
    found = run.quantities.get(name)
    return None if found is None else found.rate


def _times(run: Measured) -> dict[str, float]:
    """Time of the load's CPU set by state, in CPU-seconds a second; empty where it is not known."""
    states = {state: _quantity(run, f"cpu.load.{state}") for state in STATES}
    times = {state: time for state, time in states.items() if time is not None}
    known = len(times) == len(STATES) and run.load_cpus is not None and sum(times.values()) > 0
    return times if known else {}


def _busy(run: Measured) -> float | None:
    """Busy share of the load's CPU set, whatever ran there."""
    times = _times(run)
    return sum(times[state] for state in STATES[:5]) / sum(times.values()) if times else None


def _wait(run: Measured) -> float | None:
    """Time that the load's threads were ready and waited for a CPU, over mean latency × operations."""
    delay, events, latency = (
        _quantity(run, name) for name in ("threads.load.run_delay_ns", "load.events", "latency.mean")
    )
    if not delay or not events or not latency or events <= 0 or latency <= 0:
        return None
    return delay / events / latency


def _excused(run: Measured) -> float | None:
    """The stolen share where steal explains the threads' CPU wait: CPUs that were mostly idle; else None."""
    share, busy = stolen(run), _busy(run)
    return share if share is not None and busy is not None and share > STOLEN and busy < LIGHT else None


def _delay(run: Measured) -> float | None:
    """The part of `_wait` that the load's own threads caused.

    While a thread waits, its CPU runs other threads or is stolen. What threads of others ran is taken off in
    proportion to CPU time. The wait for a stolen CPU does not follow from the client's demand and is a
    disturbance of the host: none of it counts.
    """
    wait = _wait(run)
    if wait is None:
        return None
    if _excused(run) is not None:
        return 0.0
    times, own = _times(run), _quantity(run, "threads.load.on_cpu_ns")
    ran = sum(times[state] for state in ("user", "nice", "system")) if times else 0.0
    return wait * min(1.0, own / ran) if own is not None and ran > 0 else wait


def port_range(run: Measured) -> int | None:
    """How many ports the load's host gives to connections that it opens."""
    text = (run.run.fingerprint("load").get("sysctl") or {}).get(PORT_RANGE)
    try:
        first, last = (int(word) for word in str(text).split())
    except ValueError:
        return None
    return last - first + 1 if last >= first else None


def _ports(run: Measured) -> float | None:
    """Share of the port range that is, or at this rate of new connections will be, in TIME_WAIT."""
    ports = port_range(run)
    held = [_quantity(run, "sockets.load.time_wait"), _guest_waits(run)]
    opened = _quantity(run, "sockets.load.active_opens")
    if opened is not None:
        held.append(opened * TIME_WAIT_S if _lasting(run) else None)
    known = [value for value in held if value is not None]
    return max(known) / ports if known and ports else None


def _lasting(run: Measured) -> bool:
    """Whether connections that end leave ports behind: one that stays open does not."""
    return bool(_quantity(run, "sockets.load.time_wait"))


def _guest_waits(run: Measured) -> float | None:
    """Sockets in TIME_WAIT after another program was the load; it says so itself."""
    sockets = ((run.run.result or {}).get("details") or {}).get("sockets") or {}
    waits = (sockets.get("after") or {}).get("tcp_time_wait")
    return float(waits) if isinstance(waits, int | float) else None
