"""Compares the recorder's newest sample and the output of commands with the limits of the guards.

Standard library only, as everything that `conduct` imports.
"""

from __future__ import annotations

import math
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from loadprint.commands.ab.result import Check
from loadprint.numbers import brief

Sample = Mapping[str, float]
QUESTIONS = "Questions"
BUSY = ("user", "nice", "system", "irq", "softirq")
OTHERS = ("idle", "iowait", "steal")  # as everywhere in Loadprint these are not busy


def parse(document: Mapping[str, Any] | None) -> Sample:
    """Return the values of `loadprint-collect record --live`: MySQL's by their names, and these.

    `time` (monotonic seconds), `cpu.busy` and `cpu.all` (ticks of all CPUs), `mysql.ok` (1 if the server
    answered). Empty without a document.
    """
    if document is None:
        return {}
    probes = document["probes"]
    sample = {"time": document["monotonic_ns"] / 1e9, "mysql.ok": float(probes["mysql"]["ok"])}
    sample |= {row["metric"]: row["value"] for row in probes["mysql"]["rows"] if row["value"] is not None}
    for row in probes["cpu"]["rows"]:
        if row["cpu"] == "all" and None not in (row[state] for state in (*BUSY, *OTHERS)):
            sample["cpu.busy"] = sum(row[state] for state in BUSY)
            sample["cpu.all"] = sample["cpu.busy"] + sum(row[state] for state in OTHERS)
    return sample


def questions(sample: Sample) -> float:
    """Return the statements of clients since the server started, without the recorder's statements."""
    return sample[QUESTIONS] - sample.get("loadprint.queries", 0.0)


def errors(sample: Sample) -> float:
    """Return the connections lost or refused since the server started."""
    return sum(value for name, value in sample.items() if name.startswith(("Aborted_", "Connection_errors_")))


@dataclass
class _Watch:
    """One guard: its limits, the worst value so far, and how many readings in a row were beyond a limit."""

    unit: str
    high: float | None = None
    low: float | None = None
    worst: float | None = None
    beyond: int = 0
    tripped: bool = False

    def judge(self, name: str, value: float, readings: int) -> str | None:
        if self.worst is None or self._past(value) > self._past(self.worst):
            self.worst = value
        self.beyond = self.beyond + 1 if self._past(value) > 0 else 0
        if self.beyond < readings:
            return None
        self.tripped = True
        over = self.high is not None and value > self.high
        limit = f"above {self.high:g}" if over else f"below {self.low:g}"
        times = "1 reading" if self.beyond == 1 else f"{self.beyond} readings in a row"
        return f"guard {name}: {brief(value, 4)}{self.unit}, {limit}, {times}"

    def _past(self, value: float) -> float:
        """By how much a value is beyond a limit; negative if it is within both."""
        above = -math.inf if self.high is None else value - self.high
        below = -math.inf if self.low is None else self.low - value
        return max(above, below)

    def limits(self) -> str:
        most = [f"at most {self.high:g}"] if self.high is not None else []
        least = [f"at least {self.low:g}"] if self.low is not None else []
        return " and ".join(most + least)


class Guarding:
    """Judges readings; the first guard that trips ends the experiment. `guards`: those of a plan."""

    def __init__(self, guards: Mapping[str, Any]) -> None:
        self._readings, self._silence = int(guards["readings"]), float(guards["silence"])
        self._watches = {
            "threads_running": _Watch("", high=guards["threads_running"]),
            "error_rate": _Watch("/s", high=guards["error_rate"]),
            "queries_per_second": _Watch("/s", low=guards["queries_per_second_min"]),
            "host_cpu": _Watch("", high=guards["host_cpu"]),
        }
        self.commands: dict[str, dict[str, Any]] = dict(guards["commands"])
        if guards["replication_lag"] is not None:
            self.commands["replication_lag"] = guards["replication_lag"]
        for name, reader in self.commands.items():
            self._watches[name] = _Watch("", reader["max"], reader["min"])
        self._due = dict.fromkeys(self.commands, 0.0)
        self._last: Sample | None = None
        self._read: float | None = None
        self._silent_s = 0.0
        self.queries_per_second: float | None = None

    def reading(self, sample: Sample, now: float) -> str | None:
        """Judge one reading taken at `now` (monotonic seconds). Returns the reason to stop, or None."""
        # limited because the time may be that of a suspended process: silence needs several readings
        passed = 0.0 if self._read is None else min(now - self._read, self._silence / 2)
        self._read = now
        self._silent_s = 0.0 if self._fresh(sample) else self._silent_s + passed
        if self._silent_s > self._silence:
            return f"guard silence: no answer of the server for {self._silent_s:.0f} s"
        if not sample.get("mysql.ok"):
            return None
        reasons = [self._judge("threads_running", sample.get("Threads_running"))]
        # the recorder publishes its newest tick, so that two readings may return the same tick
        if self._last is not None and self._moved(sample):
            old = self._last
            seconds = sample["time"] - old["time"]
            if questions(sample) >= questions(old):  # else the server restarted: its rates are not known
                self.queries_per_second = (questions(sample) - questions(old)) / seconds
                reasons.append(self._judge("queries_per_second", self.queries_per_second))
                reasons.append(self._judge("error_rate", (errors(sample) - errors(old)) / seconds))
            both_read = "cpu.all" in sample and "cpu.all" in old
            total = sample["cpu.all"] - old["cpu.all"] if both_read else 0
            if total > 0:
                reasons.append(self._judge("host_cpu", (sample["cpu.busy"] - old["cpu.busy"]) / total))
            self._last = sample
        elif self._last is None:
            self._last = sample
        return next((reason for reason in reasons if reason), None)

    def run_commands(self, now: float) -> str | None:
        """Run the commands that are due. Returns the reason to stop, such as a failed command."""
        for name, guard in self.commands.items():
            if now < self._due[name]:
                continue
            self._due[name] = now + guard["every"]
            try:
                done = subprocess.run(
                    ["/bin/sh", "-c", guard["command"]],
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    timeout=guard["timeout"],
                    check=True,
                    text=True,
                    start_new_session=True,
                )
                value = float(done.stdout.strip())
            except (subprocess.SubprocessError, ValueError, OSError):
                value = math.nan
            if math.isnan(value):
                return f"guard {name}: its command printed no number"
            reason = self._judge(name, value)
            if reason:
                return reason
        return None

    def checks(self) -> tuple[Check, ...]:
        """Return the worst value of each guard, with its limit."""
        checks = []
        for name, watch in self._watches.items():
            if not (limits := watch.limits()):
                continue
            state = "failed" if watch.tripped else "untested" if watch.worst is None else "passed"
            worst = "never read" if watch.worst is None else f"worst {brief(watch.worst, 4)}{watch.unit}"
            checks.append(Check(f"guard {name}", state, f"{worst}; limit {limits}"))
        return tuple(checks)

    def _judge(self, name: str, value: float | None) -> str | None:
        watch = self._watches[name]
        if value is None or (watch.high is None and watch.low is None):
            return None
        return watch.judge(name, value, self._readings)

    def _fresh(self, sample: Sample) -> bool:
        """Whether the server has answered since the last reading."""
        return bool(sample.get("mysql.ok")) and (self._last is None or self._moved(sample))

    def _moved(self, sample: Sample) -> bool:
        """Whether this is a new tick: the recorder's statements increase the counter at every tick."""
        return self._last is not None and sample[QUESTIONS] != self._last[QUESTIONS]
