"""Gives the sides of a start their turns on one host: `alternate.py PLAN`.

The supervisor runs it as its last process. Each side's server and load are frozen outside of its slices. A
slice: thaw, the load resumes, the guard; a tick of the side's recorder and an end of the load's interval, the
measured part, both again; the load pauses between two operations (an external generator does not), and the
side is frozen. Every run directory gets the lines of all slices in `slices.jsonl`.

PLAN is JSON: `state` (the supervisor's directory), `directory` (of the runs), `runs` (`id`, `side`, its
`positions` in the rounds, and in which it is `probed`: in the others the gate of the scheduler's programs is
closed), `slots` (of each run the end of the names of its processes), `slice_s`, `guard_s`,
and `cpu` (one of the server's). Exit status 1 with one line on standard error
if a process ends or does not answer. All sides are thawed at any end but SIGKILL, after which the supervisor
does it. Standard library of Python 3.9 only: it runs with the Python of the host.
"""

from __future__ import annotations

import hashlib
import json
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

    def __init__(self, name: str, run: Path, place: int, slot: str, supervisor: Supervisor) -> None:
        self.name, self.run, self._supervisor = name, run, supervisor
        # one recorder makes the recordings of all sides
        self._tick = signal.SIGUSR1 if place == 0 else signal.SIGRTMIN + place
        self._named = {"server": f"server{slot}", "load": f"load{slot}", "recorder": "recorder"}
        self._frozen = [self._named["server"], self._named["load"]]
        running = {each["name"]: int(each["pid"]) for each in supervisor.ask("status")["processes"]}
        self._pids = {kind: running[named] for kind, named in self._named.items()}
        self._open = {kind: self._opened(kind, pid) for kind, pid in self._pids.items()}
        self._journal = self.run / "server" / "journal"
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

    def freeze(self) -> dict[str, Any]:
        """Freeze server and load. Returns when both had stopped, and what stopped them."""
        frozen = self._supervisor.ask("freeze", names=self._frozen)
        return {"frozen_ns": frozen["monotonic_ns"], "by": frozen["by"]}

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

    def until(self, what: str, is_so: Any, seconds: float = ANSWER_S) -> None:
        """Look until something is so. Raises Failed if it is not after this time."""
        end = time.monotonic() + seconds
        while True:
            self.look()
            if is_so():
                return
            if time.monotonic() > end:
                raise Failed(f"side {self.name}: {what} within {seconds:g} s")
            time.sleep(LOOK_S)

    def resume(self) -> None:
        """Let the load go on after a pause."""
        self._signal("load", signal.SIGUSR2)
        self._await("resumed")

    def begin(self) -> None:
        """Wait until the load is connected; it begins with a pause, or ends if it cannot connect."""
        self._await("paused", CONNECT_S)

    def pause(self) -> int | None:
        """Let the load pause. Returns how many threads were in an operation, None if it cannot know."""
        self._signal("load", signal.SIGUSR1)
        in_event: int | None = self._await("paused")["in_event"]
        return in_event

    def edge(self) -> tuple[int, int]:
        """Read the counters and end the interval. Returns CLOCK_MONOTONIC in ns before and after both."""
        size = self._journal_size()
        before = time.monotonic_ns()
        self._signal("recorder", self._tick)
        self._signal("load", signal.SIGUSR2)
        self.until("the recorder took no sample", lambda: self._journal_size() > size)
        self._await("boundary")
        return before, time.monotonic_ns()

    def _journal_size(self) -> int:
        try:
            return os.stat(self._journal).st_size
        except FileNotFoundError:  # the recorder has ended
            return 0

    def _signal(self, kind: str, number: int) -> None:
        self._done.clear()
        # it may have ended, which the next look finds
        with suppress(ProcessLookupError):
            os.kill(self._pids[kind], number)

    def _await(self, event: str, seconds: float = ANSWER_S) -> dict[str, Any]:
        found: list[dict[str, Any]] = []

        def is_done() -> bool:
            found.extend(line for line in self._done if line["event"] == event)
            return bool(found)

        self.until(f"the load did not report `{event}`", is_done, seconds)
        return found[0]


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


def warm_up(sides: list[Side]) -> None:
    """Give the sides turns until the warm-up of each is over."""
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
            end = time.monotonic() + WARM_UP_S / (len(sides) - 1)
            side.until(
                "the load goes on", lambda side=side, end=end: side.measuring or time.monotonic() > end
            )
            side.pause()
            side.freeze()


def alternate(plan: dict[str, Any], sides: list[Side]) -> None:
    """Give the sides their slices, round by round."""
    runs = plan["runs"]
    rounds = len(runs[0]["positions"])
    for number in range(rounds):
        print(f"round {number + 1} of {rounds}", flush=True)
        for position, place in sorted((run["positions"][number], place) for place, run in enumerate(runs)):
            side, is_probed = sides[place], runs[place]["probed"][number]
            side.probe(is_probed)
            work_ns = fixed_work_ns(int(plan["cpu"]))
            begin_ns = time.monotonic_ns()
            side.thaw()
            side.resume()
            time.sleep(max(0, begin_ns / 1e9 + plan["guard_s"] - time.monotonic()))
            measured_from_ns, _ = side.edge()
            time.sleep(max(0, measured_from_ns / 1e9 + plan["slice_s"] - time.monotonic()))
            _, end_ns = side.edge()
            in_event, frozen = side.pause(), side.freeze()
            line = {
                "round": number + 1,
                "position": position,
                "side": side.name,
                "begin_ns": begin_ns,
                "measured_from_ns": measured_from_ns,
                "end_ns": end_ns,
                "in_event": in_event,
                "probed": is_probed,
                "fixed_work_ns": work_ns,
                **frozen,
            }
            for each in sides:
                with (each.run / "slices.jsonl").open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")


def stop(number: int, _: object) -> None:
    """End at a signal, with all sides thawed."""
    raise Failed(f"interrupted by {signal.Signals(number).name}")


def main() -> int:
    """Run the plan."""
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, stop)
    plan = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    supervisor, directory = Supervisor(plan["state"]), Path(plan["directory"])
    sides: list[Side] = []
    try:
        for place, run in enumerate(plan["runs"]):
            sides.append(Side(run["side"], directory / run["id"], place, plan["slots"][place], supervisor))
        warm_up(sides)
        alternate(plan, sides)
    except Failed as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        for side in sides:
            side.thaw()
    return 0


if __name__ == "__main__":
    sys.exit(main())
