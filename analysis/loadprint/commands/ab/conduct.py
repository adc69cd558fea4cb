"""Carries out an experiment on the server's host: `python -P -m loadprint.commands.ab.conduct RUN`.

The first line of standard input is the plan (`ab plan --format json`) with `collector`, the path of
loadprint-collect; every later line renews the lease. At any end, also of the input, the change is reverted,
verified and recorded in the new run directory RUN. Exit status: that of `ab run`. Standard library only: a
playbook copies this package to hosts without others.
"""

from __future__ import annotations

import hashlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from loadprint.commands.ab.guards import Guarding, parse
from loadprint.commands.ab.recorder import Recorder, has_ended, server_process
from loadprint.commands.ab.switch import PAUSES_ALONE_S, PAUSES_S, Switch, Taken, say
from loadprint.errors import InputError
from loadprint.safe_files import read_file, replace

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
START_S = 120.0  # for the first answer of the recorder, on a busy host
SILENT_S = 15.0  # for its first sample of the server after that
PAUSE_S = 0.2  # at most, until a signal or the end of the caller is noticed
SLICES, BYTES = 25, 1 << 20  # of the fixed work
DOCUMENT = 8 << 20  # bytes of a file of a run directory


class Stop(Exception):
    """The experiment ends early; the message is the reason."""


class CallerGone(Stop):
    """The same; no caller waits for the end."""


def fixed_work_ns() -> int:
    """Return the CPU time of hashing 1 MiB, in ns: the lower quartile of 25 slices, 15 to 100 ms in all.

    CPU time does not contain waits for a CPU that the load keeps busy, which follow from the treatment.
    """
    block = bytes(BYTES)
    slices = []
    for _ in range(SLICES):
        begin = time.thread_time_ns()
        hashlib.sha256(block).digest()
        slices.append(time.thread_time_ns() - begin)
    return sorted(slices)[SLICES // 4]


class Caller:
    """The process at the other end of the standard input, which renews a lease of `lease_s` seconds."""

    def __init__(self) -> None:
        self._received: signal.Signals | None = None
        for number in SIGNALS:
            signal.signal(number, self._note)
        self._read, self._renewed = b"", time.monotonic()
        self.lease_s = float("inf")

    def document(self) -> dict[str, Any]:
        """Return the first line. Raises InputError."""
        while b"\n" not in self._read:
            more = os.read(0, 1 << 16)
            if not more:
                break
            self._read += more
        try:
            document: dict[str, Any] = json.loads(self._read.partition(b"\n")[0])
            self.lease_s = float(document["experiment"]["lease"])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            fix = "write it with `loadprint ab plan FILE --format json` of the same version"
            raise InputError("standard input", f"not a planned experiment ({error!r})", fix) from None
        return document

    def check(self, wait_s: float = 0.0) -> None:
        """Wait for a sign of the caller, `wait_s` at most. Raises Stop after a signal, CallerGone."""
        if select.select([0], [], [], wait_s)[0]:
            if not os.read(0, 1 << 16):
                raise CallerGone("the caller is gone")
            self._renewed = time.monotonic()
        if self._received is not None:
            raise Stop(f"interrupted by {self._received.name}")
        if time.monotonic() - self._renewed > self.lease_s:
            raise CallerGone(f"the caller is gone: it did not renew its lease of {self.lease_s:g} s")

    def _note(self, number: int, _: object) -> None:
        if self._received is not None:
            # the signal may have interrupted print()
            with suppress(OSError):
                os.write(2, b"loadprint ab: already reverting, please wait\n")
        self._received = signal.Signals(number)


class Conductor:
    """Runs one experiment, on the server with the process `pid`, of which `server` is a descriptor."""

    def __init__(self, document: dict[str, Any], run: Path, pid: int, server: int, caller: Caller) -> None:
        self.document, self.experiment = document, document["experiment"]
        self.slots: list[dict[str, Any]] = document["plan"]["slots"]
        self.run, self.load, self.caller = run, run / "load", caller
        self.pid, self.server = pid, server
        self.deadline = time.monotonic() + document["plan"]["deadline_s"]
        self.guarding = Guarding(self.experiment["guards"])
        self.recorder: Recorder | None = None
        self.load.mkdir(0o755, parents=True)
        write(self.load / "experiment.json", self.experiment | {"plan": document["plan"]})
        self.meta = {
            "format_version": document["format_version"],
            "id": run.name,
            "generator": "ab",
            "workload": "production",
            "operation": "statement",
            "ab": {
                "name": self.experiment["name"],
                "order": self.experiment["schedule"]["order"],
                "blocks": self.experiment["schedule"]["blocks"],
            },
            "roles": {"server": {"host": socket.gethostname(), "cpus": self.experiment["server"]["cpus"]}},
            "status": "running",
            "reason": None,
            "started_realtime_ns": time.time_ns(),
        }
        write(self.run / "run.json", self.meta, 0o644)
        self.switch = Switch(self.load, self.experiment)

    def conduct(self) -> int:
        """Start, run the windows, and revert. Raises InputError if it cannot start."""
        reason, alone = "", False
        try:
            self._start()
            for slot in self.slots:
                self._window(slot)
        except Stop as stop:
            reason, alone = str(stop), isinstance(stop, CallerGone)
            say(f"{reason}; reverting")
        except InputError as error:
            self._end_recorder()
            self._close(f"{error.place}: {error.what}; nothing was applied", {})
            raise
        except Exception as error:  # a defect of this program must not leave the treatment applied
            reason = f"{type(error).__name__}: {error}"
        reverted, message = self.switch.finish(
            reason or "the experiment is over", PAUSES_ALONE_S if alone else PAUSES_S
        )
        failed = self._end_recorder()
        reason = reason or failed or ""
        failure = f"{reason}; {message}" if reason or not reverted else None
        self._close(failure, {"reverted": reverted, "told": message})
        say(f"{reason or 'complete'}; {message}")
        if not reverted:
            name = "revert" if self.switch.initial == "baseline" else "apply"
            say(f"NOT REVERTED ({message}). Run by hand, now: {self.experiment['treatment'][name]}")
            return 2
        return 1 if reason else 0

    def _start(self) -> None:
        verified, message = self.switch.verify(self.switch.initial, "before the first window")
        if not verified:
            raise InputError(
                f"treatment.{message.partition(':')[0]}",
                "failed before the first switch: the server is not in the initial variant, "
                f"{self.switch.initial} ({message})",
                "change the server, `initial`, or the command",
            )
        self.recorder = Recorder(self.document, self.run, self.pid)
        until, answers = time.monotonic() + START_S, False
        while not parse(newest := self.recorder.newest()).get("mysql.ok"):
            if newest and not answers:
                until, answers = time.monotonic() + SILENT_S, True
            if (died := self.recorder.died()) is not None:
                raise InputError(self.load / "recorder.log", died, "fix this and run it again")
            if time.monotonic() > until:
                reason = newest["probes"]["mysql"]["reason"] if newest else ""
                fix = "see docs/mysql-probe.md for the account"
                raise InputError("server", reason or "it does not answer the recorder", fix)
            self.caller.check(PAUSE_S)
        self.switch.begin("measure")

    def _window(self, slot: dict[str, Any]) -> None:
        """Switch if needed, wait for the settle time, and measure the window. Raises Stop."""
        self._wait(0.0)
        number, variant, place = slot["number"], slot["variant"], f"{slot['number']}/{len(self.slots)}"
        if slot["flip"]:
            say(f"{slot['flip']} before window {place}")
            switched, message = self.switch.switch(variant, f"window {number}")
            if not switched:
                raise Stop(f"{slot['flip']} before window {number} failed: {message}")
        more = {"block": slot["block"], "window": number}
        if slot["settle_s"]:
            self.switch.begin("settle", **more)
            self._hold(slot["settle_s"])
            self.switch.end("settle")
        # in the gap, so that the window does not contain it
        work = fixed_work_ns()
        self.switch.begin(variant, **more, fixed_work_ns=work)
        self._measure(self.experiment["schedule"]["window"])
        self.switch.end(variant)
        pace = self.guarding.queries_per_second
        rate = "" if pace is None else f", {pace:,.0f} queries/s"
        say(f"window {place} {variant} complete{rate}")
        verified, message = self.switch.verify(variant, f"after window {number}")
        if not verified:
            raise Stop(f"after window {number} the server is no longer in its variant: {message}")

    def _measure(self, seconds: float) -> None:
        """Wait for the end of a window, with a tick of all probes at its start and before its end."""
        assert self.recorder is not None
        last = 1.5 * self.experiment["recorder"]["interval"]
        self.recorder.edge()
        self._hold(seconds - last)
        self.recorder.edge()
        self._hold(last)

    def _hold(self, seconds: float) -> None:
        """Wait, and read the guards. Raises Stop."""
        assert self.recorder is not None
        until = time.monotonic() + seconds
        while (now := time.monotonic()) < until:
            reason = self.guarding.reading(parse(self.recorder.newest()), now)
            reason = reason or self.guarding.run_commands(now)
            if reason:
                raise Stop(reason)
            self._wait(min(until, now + min(1.0, self.experiment["recorder"]["interval"])))

    def _wait(self, until: float) -> None:
        """Wait. Raises Stop if the deadline passes, or the caller, recorder or server is gone."""
        while True:
            left = until - time.monotonic()
            self.caller.check(min(max(0.0, left), PAUSE_S))
            if time.monotonic() > self.deadline:
                raise Stop("the deadline has passed")
            if self.recorder is not None and (died := self.recorder.died()) is not None:
                raise Stop(died)
            if has_ended(self.server):
                raise Stop(f"the server's process {self.pid} has ended")
            if left <= 0:
                return

    def _end_recorder(self) -> str | None:
        return self.recorder.end() if self.recorder is not None else None

    def _close(self, failure: str | None, end: dict[str, Any]) -> None:
        checks = [asdict(check) for check in self.guarding.checks()]
        try:
            write(self.load / "guards.json", {"checks": checks} | end)
        except OSError as error:
            say(str(error))
        close(self.run, self.meta, failure)
        finish(self.run, self.document["collector"])


def write(path: Path, value: dict[str, Any], mode: int = 0o600) -> None:
    """Write a JSON document in one step."""
    replace(path, json.dumps(value, indent=1, ensure_ascii=False) + "\n", mode)


def close(run: Path, meta: dict[str, Any], failure: str | None) -> None:
    """Write the end into run.json. Prints what fails: the change is reverted."""
    status = {"status": "failed" if failure else "complete", "reason": failure}
    try:
        write(run / "run.json", meta | status | {"ended_realtime_ns": time.time_ns()}, 0o644)
    except OSError as error:
        say(str(error))


def finish(run: Path, collector: str) -> None:
    """Write the recording's tables, and the manifest of all files. Prints what fails."""
    command = [collector, "finish", str(run)]
    try:
        subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
    except OSError as error:
        say(str(error))
    except subprocess.CalledProcessError as error:
        say(f"{' '.join(command)}: {error.stderr.strip()}")


def revert(run: Path) -> tuple[bool, str]:
    """Revert the change of an experiment whose process was killed, unless already reverted, and verify.

    The caller has checked who can change `run`. Raises Taken; OSError, ValueError, LookupError or
    TypeError if it has no experiment.
    """
    switch = Switch(run / "load", json.loads(read_file(run / "load" / "experiment.json", DOCUMENT)))
    switch.kill_command()
    verified, _ = switch.verify(switch.initial, "by hand")
    switch.touched = not verified
    reverted, message = switch.finish("by hand")
    try:
        meta = json.loads(read_file(run / "run.json", DOCUMENT))
        if meta["status"] == "running":
            close(run, meta, f"its process was killed; {message}, by hand")
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        return reverted, f"{message}; {run}/run.json: {error!r}: the end was not recorded"
    return reverted, message


def main(run: Path) -> int:
    """Read the plan from standard input, and carry it out."""
    caller = Caller()
    try:
        document = caller.document()
        pid, server = server_process(document["experiment"]["server"]["process"])
        # one experiment per server: the kernel frees an abstract socket name with its process
        claim = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            claim.bind(f"\0loadprint-ab-{pid}")
        except OSError:
            fix = "end the other experiment, or wait for its end"
            raise InputError(run, f"another experiment switches the process {pid}", fix) from None
        try:
            run.mkdir(0o755)
        except FileExistsError:
            raise InputError(run, "already exists", "name a new directory with --out") from None
        return Conductor(document, run, pid, server, caller).conduct()
    except (InputError, OSError, Taken) as error:
        print(f"loadprint: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
