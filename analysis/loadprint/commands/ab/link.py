"""Connects the controller to the keeper: sends requests, renews the lease, detects its end.

Only the keeper switches while it runs. If it was killed, the controller kills the command that the
keeper was running, takes the lock, and reverts.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from loadprint.commands.ab import keeper
from loadprint.configuration.private_files import write_private
from loadprint.errors import InputError

HANGS_S = 5.0
START_S = 120.0  # for the start of a small program on a busy host


class KeeperGone(Exception):
    """The keeper has ended; `last` is its last message, None if it was killed."""

    def __init__(self, last: dict[str, Any] | None) -> None:
        self.last = last
        super().__init__("the keeper has ended")


class Link:
    """Runs a keeper as a child process. Raises InputError if it refuses to start."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config, self.run = config, Path(config["run"])
        path = self.run / "load" / "keeper.json"
        write_private(path, json.dumps(config, indent=1) + "\n")
        with (self.run / "load" / "keeper.log").open("ab") as log:
            # -I -S: independent of the environment and of site packages
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(Path(keeper.__file__)), str(path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        self._number, self._rest = 0, b""
        self._last: dict[str, Any] | None = None
        self.touched = False
        first = self._read(until=time.monotonic() + START_S)
        if first is None or first.get("event") != "ready":
            message = (first or {}).get("message", "the keeper did not start, see load/keeper.log")
            raise InputError(self.run, message, "end the other experiment, or wait for its end")

    def fileno(self) -> int:
        """Return a descriptor that is readable when the keeper sent a message, or has ended."""
        assert self.process.stdout is not None
        return self.process.stdout.fileno()

    def request(self, verb: str, **arguments: Any) -> tuple[bool, str]:
        """Send a request and wait for the answer; a keeper that hangs is killed. Raises KeeperGone."""
        self._number += 1
        if verb == "apply":
            self.touched = True
        self._send({"id": self._number, "do": verb, **arguments})
        # longer than its commands may take: each attempt to revert runs two of them
        until = time.monotonic() + HANGS_S + 2 * (len(keeper.PAUSES_S) + 1) * float(self.config["timeout"])
        while True:
            answer = self._read(until)
            if answer is None:
                self.process.kill()
                until = time.monotonic() + HANGS_S
            elif answer.get("id") == self._number:
                if verb in ("revert", "finish") and answer["ok"]:
                    self.touched = False
                return bool(answer["ok"]), str(answer["message"])

    def renew(self) -> None:
        """Renew the lease. Raises KeeperGone."""
        self._send({"do": "renew"})

    def check(self) -> None:
        """Raise KeeperGone if the keeper has ended."""
        self._read(until=time.monotonic())

    def wait(self) -> None:
        """Wait for the end of the keeper, which may be ending the recorder."""
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def revert_instead(self, why: str) -> tuple[bool, str]:
        """Revert in place of a killed keeper."""
        self.wait()
        end_command(self.run)
        return revert_by_hand(self.run, why)

    def _send(self, request: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write((json.dumps(request) + "\n").encode())
            self.process.stdin.flush()
        except OSError:
            self._drain()

    def _drain(self) -> None:
        while True:
            self._read(until=None)

    def _read(self, until: float | None) -> dict[str, Any] | None:
        """Return the next message of the keeper, or None after `until`. Raises KeeperGone."""
        while b"\n" not in self._rest:
            left = None if until is None else max(0.0, until - time.monotonic())
            ready, _, _ = select.select([self], [], [], left)
            if not ready:
                return None
            read = os.read(self.fileno(), 65536)
            if not read:
                raise KeeperGone(self._last)
            self._rest += read
        line, _, self._rest = self._rest.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        if answer.get("event") == "ended":
            self._last = answer
            return self._read(None)
        return answer


def end_command(run: Path) -> None:
    """Kill the command that a killed keeper left running: it must not run longer than the revert."""
    path = run / "load" / "switches.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    last = json.loads(lines[-1]) if lines else {}
    if last.get("event") == "begin":
        with contextlib.suppress(ProcessLookupError):
            os.killpg(int(last["pid"]), signal.SIGKILL)


def revert_by_hand(run: Path, why: str, *, verify_first: bool = False) -> tuple[bool, str]:
    """Revert and verify with the commands of a run directory; `verify_first`: unless already reverted.

    Raises InputError if the directory has no commands, or another process is reverting.
    """
    path = run / "load" / "keeper.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        switch = keeper.Switch(run, config)
    except (OSError, ValueError, KeyError) as error:
        raise InputError(
            path, f"no commands to revert with ({error})", "revert the change yourself"
        ) from error
    except keeper.Taken as taken:
        raise InputError(run, str(taken), "wait for its end: it reverts") from None
    switch.resume()
    if verify_first and switch.command("verify_reverted", why)[0]:
        switch.touched = False
    reverted, message = switch.end(why)
    if verify_first:
        running = json.loads((run / "run.json").read_text(encoding="utf-8"))["status"] == "running"
        if running:
            keeper.set_status(run, f"everything was killed; {message}, {why}", config["collect"])
        else:
            keeper.finish_recording(run, config["collect"])
    return reverted, message
