"""Gives the sides of a start their turns: `alternate.py PLAN [BEGIN]`.

The supervisor runs it as its last process. Each side's server and load are frozen outside of its slices. A
slice: thaw, the load resumes, the guard; a tick of the side's recorder and an end of the load's interval, the
measured part, both again; the load pauses between two operations (an external generator does not), and the
side is frozen. Every run directory gets the lines of all slices in `slices.jsonl`.

On two hosts it runs on each, with the processes that are there, and turns begin at times that both know. That
of the load writes into the file `begin` when the first one begins, CLOCK_REALTIME of the server's host in ns,
which is BEGIN there: the load has related both clocks. The last `closing_s` of a slice are not measured: in
them the load pauses, before the server is frozen. The warm-up has whole turns and one to spare, because the
server's host may miss the first, and operations at its end may take long.

PLAN is JSON: `state` (the supervisor's directory), `directory` (of the runs), `roles` (`server`, `load`, or
both), `runs` (`id`, `side`, its `positions` in the rounds, and in which it is `probed`: in the others the
gate of the scheduler's programs is closed), `slots` (of each run the end of the names of its processes),
`slice_s`, `guard_s`, `closing_s`, `warmup_s`, `begin`, and `cpu` (one of the server's). Exit status 1 with
one line on standard error if a process ends or does not answer. All sides are thawed at any end but SIGKILL,
after which the supervisor does it. Standard library of Python 3.9 only: it runs with the Python of the host.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import select
import signal
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

ANSWER_S = 30.0  # for what a process is asked; a pause has 5 s, after which it is reported
CONNECT_S = 3600.0  # for the load, which has its own limits
WARM_UP_S = 5.0  # of one turn; no side is frozen for longer than its client waits
LOOK_S = 0.001  # between two looks at a file
WORK, BYTES = 9, 1 << 20  # of the fixed work
HEAD_S = 4.0  # from the choice of the first turn's time to that turn: the server's host has to be reached
GAP_S = 0.2  # between two turns on two hosts: the fixed work
APART = 0.1  # of `closing_s`: by how much the times of both hosts may differ


class Failed(Exception):
    """The start is lost; the message is the reason."""


class Supervisor:
    """Sends requests to the supervisor's control socket, whose protocol is a line of JSON each way."""

    def __init__(self, state: str) -> None:
        self._socket = str(Path(state) / "control.sock")

    def ask(self, command: str, **values: Any) -> Any:
        """Return the answer. Raises Failed."""
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(ANSWER_S)
                connection.connect(self._socket)
                connection.sendall(json.dumps({"command": command, **values}).encode() + b"\n")
                with connection.makefile("rb") as lines:
                    answer = json.loads(lines.readline())
        except (OSError, ValueError) as error:
            raise Failed(f"the supervisor does not answer: {error}") from None
        if "error" in answer:
            raise Failed(answer["error"])
        return answer["ok"]


class Lines:
    """The lines of JSON that a program appends to a file."""

    def __init__(self, path: Path) -> None:
        self._path, self._offset, self._rest = path, 0, b""

    def new(self) -> list[dict[str, Any]]:
        """Return the complete lines since the last call; none if the file does not exist yet."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                read = file.read()
        except FileNotFoundError:
            return []
        self._offset += len(read)
        *lines, self._rest = (self._rest + read).split(b"\n")
        return [json.loads(line) for line in lines]


class Side:
    """One side of the start: its processes, and what they have done."""

    def __init__(self, plan: dict[str, Any], place: int, supervisor: Supervisor) -> None:
        run = plan["runs"][place]
        self.name, self.run, self._supervisor = run["side"], Path(plan["directory"]) / run["id"], supervisor
        # one recorder makes the recordings of all sides
        self._tick = signal.SIGUSR1 if place == 0 else signal.SIGRTMIN + place
        self._named = {role: role + plan["slots"][place] for role in plan["roles"]}
        self._frozen = list(self._named.values())
        self._named["recorder"] = "recorder"
        running = {process["name"]: int(process["pid"]) for process in supervisor.ask("status")["processes"]}
        self._open = {kind: self._opened(kind, running[named]) for kind, named in self._named.items()}
        self._has_load = "load" in self._named
        self._journal = self.run / plan["roles"][0] / "journal"
        self.slices = self.run / ("" if "server" in plan["roles"] else "load") / "slices.jsonl"
        self._turns, self._phases = (
            Lines(self.run / "load" / f"{name}.jsonl") for name in ("turns", "phases")
        )
        self._done: list[dict[str, Any]] = []
        self.measuring = False

    def _opened(self, kind: str, pid: int) -> int:
        """Return a descriptor of a process. Raises Failed if it has ended."""
        try:
            return os.pidfd_open(pid)
        except ProcessLookupError:
            raise self._ended(kind) from None

    def _ended(self, kind: str) -> Failed:
        """Return how a process ended, with its last message."""
        ended = self._supervisor.ask("wait", name=self._named[kind], slice={"secs": 1, "nanos": 0})
        why = f"signal {ended['signal']}" if "signal" in ended else f"exit status {ended.get('code')}"
        said = ended["stderr_tail"].strip().splitlines()[-1:] if "code" in ended else []
        return Failed(": ".join([f"the {kind} of side {self.name} ended ({why})", *said]))

    def thaw(self) -> None:
        """Let server and load go on."""
        self._supervisor.ask("thaw", names=self._frozen)

    def freeze(self) -> int:
        """Freeze server and load. Returns when both had stopped, CLOCK_MONOTONIC in ns."""
        frozen = self._supervisor.ask("freeze", names=self._frozen)
        return int(frozen["monotonic_ns"])

    def look(self) -> None:
        """Read what the load has done. Raises Failed if a process has ended."""
        for kind, process in self._open.items():
            if select.select([process], [], [], 0)[0]:
                raise self._ended(kind)
        self.measuring = self.measuring or any(line["phase"] == "measure" for line in self._phases.new())
        self._done += self._turns.new()

    def probe(self, is_probed: bool) -> None:
        """Open or close the gate of the recorder's programs; it is done before the tick of the next edge."""
        self._signal("recorder", signal.SIGRTMIN if is_probed else signal.SIGUSR2)

    def until(self, is_so: Any, end_s: float) -> bool:
        """Look until something is so, at most until this time. Returns whether it is."""
        while True:
            self.look()
            if is_so():
                return True
            if time.monotonic() > end_s:
                return False
            time.sleep(LOOK_S)

    def _require(self, what: str, is_so: Any, seconds: float = ANSWER_S) -> None:
        if not self.until(is_so, time.monotonic() + seconds):
            raise Failed(f"side {self.name}: {what} within {seconds:g} s")

    def resume(self) -> None:
        """Let the load go on after a pause."""
        if self._has_load:
            self._signal("load", signal.SIGUSR2)
            self._await("resumed")

    def begin(self) -> None:
        """Wait until the load is connected; it begins with a pause, or ends if it cannot connect."""
        self._await("paused", CONNECT_S)

    def pause(self, end_s: float | None) -> int | None:
        """Let the load pause, or give the load of another host the time for it, until `end_s`.

        Returns how many threads were in an operation, or 1 if some still are; None if it is not known.
        """
        if not self._has_load:
            self.until(lambda: False, end_s or 0.0)
            return None
        self._signal("load", signal.SIGUSR1)
        if end_s is not None and not self.until(lambda: self._is_done("paused"), end_s):
            return 1
        in_event: int | None = self._await("paused")["in_event"]
        return in_event

    def edge(self) -> tuple[int, int]:
        """Read the counters and end the interval. Returns CLOCK_MONOTONIC in ns before and after both."""
        size = self._journal_size()
        before = time.monotonic_ns()
        self._signal("recorder", self._tick)
        if self._has_load:
            self._signal("load", signal.SIGUSR2)
        self._require("the recorder took no sample", lambda: self._journal_size() > size)
        if self._has_load:
            self._await("boundary")
        return before, time.monotonic_ns()

    def clocks(self) -> list[dict[str, Any]]:
        """Return how the load has related its clock to the server's; it does so before it begins."""
        return Lines(self.run / "load" / "clock.jsonl").new()

    def _journal_size(self) -> int:
        try:
            return os.stat(self._journal).st_size
        except FileNotFoundError:  # the recorder has ended
            return 0

    def _signal(self, kind: str, number: int) -> None:
        self._done.clear()
        # it may have ended, which the next look finds
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._open[kind], number)

    def _is_done(self, event: str) -> bool:
        return any(line["event"] == event for line in self._done)

    def _await(self, event: str, seconds: float = ANSWER_S) -> dict[str, Any]:
        self._require(f"the load did not report `{event}`", lambda: self._is_done(event), seconds)
        return next(line for line in self._done if line["event"] == event)


def fixed_work_ns(cpu: int) -> int:
    """Return the CPU time of hashing 1 MiB on this CPU, in ns: the lower quartile of nine."""
    home, block, taken = os.sched_getaffinity(0), bytes(BYTES), []
    os.sched_setaffinity(0, {cpu})
    for _ in range(WORK):
        begin = time.thread_time_ns()
        hashlib.sha256(block).digest()
        taken.append(time.thread_time_ns() - begin)
    os.sched_setaffinity(0, home)
    return sorted(taken)[WORK // 4]


class Times:
    """When turns begin: on two hosts at times that both know, on one host when the turn before has ended."""

    def __init__(self, plan: dict[str, Any], begin_s: float | None) -> None:
        self._guard_s, self._slice_s = plan["guard_s"], plan["slice_s"]
        self._closing_s = 0.0 if begin_s is None else plan["closing_s"]
        self._begin_s, self._next_s = 0.0, begin_s
        running_s = self._guard_s + self._slice_s - self._closing_s
        self.warm_up = 0 if begin_s is None else math.ceil(plan["warmup_s"] / running_s) + 1

    def wait(self, *, warming: bool) -> bool:
        """Wait for the next turn. Returns whether to take it: one of the warm-up can be missed.

        Raises Failed for another one.
        """
        if self._next_s is None:
            self._begin_s = time.monotonic()
            return True
        time.sleep(max(0.0, self._next_s - time.monotonic()))
        self._begin_s = self._next_s
        self._next_s += self._guard_s + self._slice_s + GAP_S
        late_s = time.monotonic() - self._begin_s
        if late_s > self._closing_s and not warming:
            raise Failed(f"this host was {late_s:.2f} s late for a turn, limit {self._closing_s:g} s")
        return late_s <= self._closing_s

    def wait_guard(self) -> None:
        """Wait until the measured part begins."""
        time.sleep(max(0.0, self._begin_s + self._guard_s - time.monotonic()))

    def wait_slice(self, measured_from_ns: int) -> None:
        """Wait until the measured part ends."""
        begin_s = measured_from_ns / 1e9 if self._next_s is None else self._begin_s + self._guard_s
        time.sleep(max(0.0, begin_s + self._slice_s - self._closing_s - time.monotonic()))

    @property
    def freeze_s(self) -> float | None:
        """By when the load has to pause; None on one host."""
        return None if self._next_s is None else self._begin_s + self._guard_s + self._slice_s


def agreed(plan: dict[str, Any], sides: list[Side]) -> float:
    """Choose when the first turn begins, and write it for the server's host. Raises Failed."""
    for side in sides:
        side.begin()
    for side in sides:
        side.freeze()
    clocks = [clock for side in sides for clock in side.clocks()]
    if not clocks:
        raise Failed("the load did not relate its clock to the server's")
    clock = min(clocks, key=lambda clock: int(clock["bound_ns"]))
    limit_s = APART * plan["closing_s"]
    if clock["bound_ns"] / 1e9 > limit_s:
        raise Failed(
            f"the clocks of server and load are known to {clock['bound_ns'] / 1e6:.0f} ms only, limit "
            f"{1e3 * limit_s:.0f} ms: raise slices.closing, or use a network with a shorter round trip"
        )
    begin_ns = time.monotonic_ns() + int(HEAD_S * 1e9)
    there_ns = begin_ns - clock["monotonic_ns"] + clock["server_realtime_ns"]
    written = Path(plan["begin"] + ".new")
    written.write_text(str(there_ns), encoding="utf-8")
    written.rename(plan["begin"])
    return begin_ns / 1e9


def warm_up(sides: list[Side]) -> None:
    """Give the sides turns on one host until the warm-up of each is over."""
    for side in sides:
        side.begin()
    for side in sides:
        side.freeze()
    while not all(side.measuring for side in sides):
        for side in sides:
            if side.measuring:
                continue
            side.thaw()
            side.resume()
            end_s = time.monotonic() + WARM_UP_S / (len(sides) - 1)
            side.until(lambda side=side: side.measuring, end_s)
            side.pause(None)
            side.freeze()


def turn(side: Side, times: Times, *, warming: bool) -> dict[str, Any]:
    """Give a side its turn. Returns its times, and how it ended."""
    begin_ns = measured_from_ns = end_ns = time.monotonic_ns()
    side.thaw()
    side.resume()
    if not warming:
        times.wait_guard()
        measured_from_ns, _ = side.edge()
    times.wait_slice(measured_from_ns)
    if not warming:
        _, end_ns = side.edge()
    return {
        "side": side.name,
        "begin_ns": begin_ns,
        "measured_from_ns": measured_from_ns,
        "end_ns": end_ns,
        "in_event": side.pause(times.freeze_s),
        "frozen_ns": side.freeze(),
    }


def alternate(plan: dict[str, Any], sides: list[Side], times: Times) -> None:
    """Give the sides their slices, round by round."""
    runs, has_server = plan["runs"], "server" in plan["roles"]
    rounds = len(runs[0]["positions"])
    for number in range(-times.warm_up, rounds):
        if number == 0 and not (has_server or all(side.measuring for side in sides)):
            raise Failed(
                f"the warm-up was not over after {times.warm_up} turns of each side: its operations take too "
                "long for turns of this length, raise slices.length"
            )
        print("warm-up" if number < 0 else f"round {number + 1} of {rounds}", flush=True)
        order = sorted((run["positions"][number % rounds], place) for place, run in enumerate(runs))
        for position, place in order:
            is_probed = runs[place]["probed"][number % rounds]
            sides[place].probe(is_probed)
            work_ns = fixed_work_ns(int(plan["cpu"])) if has_server else None
            if not times.wait(warming=number < 0):
                continue
            line = {"round": number + 1, "position": position}
            line |= turn(sides[place], times, warming=number < 0)
            line |= {"probed": is_probed, "fixed_work_ns": work_ns}
            if number >= 0:
                _append(sides, json.dumps(line))


def _append(sides: list[Side], line: str) -> None:
    """Write a line to the run of each side, to one file on each host."""
    for side in sides:
        with side.slices.open("a", encoding="utf-8") as file:
            file.write(line + "\n")


def stop(number: int, _: object) -> None:
    """End at a signal, with all sides thawed."""
    raise Failed(f"interrupted by {signal.Signals(number).name}")


def main() -> int:
    """Run the plan."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    plan = json.loads(sys.argv[1])
    supervisor = Supervisor(plan["state"])
    sides: list[Side] = []
    try:
        for place in range(len(plan["runs"])):
            sides.append(Side(plan, place, supervisor))
        begin_s = None
        if len(sys.argv) > 2:
            begin_s = time.monotonic() + int(sys.argv[2]) / 1e9 - time.time()
            for side in sides:
                side.freeze()
        elif "server" in plan["roles"]:
            warm_up(sides)
        else:
            begin_s = agreed(plan, sides)
        alternate(plan, sides, Times(plan, begin_s))
    except Failed as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        for side in sides:
            side.thaw()
    return 0


if __name__ == "__main__":
    sys.exit(main())
