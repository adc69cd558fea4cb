"""The controller's end of the keeper: asks one thing at a time, renews the lease, notices when it is gone.

While the keeper lives only it switches. When it was killed, the controller ends the command that it had under
way, takes the lock, and reverts itself.
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
START_S = 120.0  # for a host that is busy to start a small program


class KeeperGone(Exception):
    """The keeper has ended; `told` is its last word where it had one."""

    def __init__(self, told: dict[str, Any] | None) -> None:
        self.told = told
        super().__init__("the keeper has ended")


class Link:
    """A keeper as a child. Raises InputError where it refuses to start."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config, self.run = config, Path(config["run"])
        path = self.run / "load" / "keeper.json"
        write_private(path, json.dumps(config, indent=1) + "\n")
        with (self.run / "load" / "keeper.log").open("ab") as log:
            # -I -S: nothing of the environment, no site packages; it needs none
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
            told = (first or {}).get("told", "the keeper did not start, see load/keeper.log")
            raise InputError(self.run, told, "end the other experiment first, or wait for it")

    def fileno(self) -> int:
        """To be waited for: readable when the keeper has something to say, or is gone."""
        assert self.process.stdout is not None
        return self.process.stdout.fileno()

    def ask(self, verb: str, **what: Any) -> tuple[bool, str]:
        """Ask and wait for the answer; a keeper that hangs is killed in the end. Raises KeeperGone."""
        self._number += 1
        if verb == "apply":
            self.touched = True
        self._send({"id": self._number, "do": verb, **what})
        # longer than its commands may take: each attempt at reverting is two of them
        until = time.monotonic() + HANGS_S + 2 * (len(keeper.PAUSES_S) + 1) * float(self.config["timeout"])
        while True:
            answer = self._read(until)
            if answer is None:
                self.process.kill()
                until = time.monotonic() + HANGS_S
            elif answer.get("id") == self._number:
                if verb in ("revert", "finish") and answer["ok"]:
                    self.touched = False
                return bool(answer["ok"]), str(answer["told"])

    def renew(self) -> None:
        """Renew the lease. Raises KeeperGone."""
        self._send({"do": "renew"})

    def check(self) -> None:
        """Raise KeeperGone where the keeper has said its last word, or has none any more."""
        self._read(until=time.monotonic())

    def wait(self) -> None:
        """Wait for the keeper's end: it may be ending the recorder."""
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def revert_instead(self, why: str) -> tuple[bool, str]:
        """Revert in the keeper's place, after it was killed."""
        self.wait()
        end_command(self.run)
        return revert_by_hand(self.run, why)

    def _send(self, what: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write((json.dumps(what) + "\n").encode())
            self.process.stdin.flush()
        except OSError:
            self._drain()

    def _drain(self) -> None:
        while True:
            self._read(until=None)

    def _read(self, until: float | None) -> dict[str, Any] | None:
        """Next line of the keeper; None when there is none by `until`. Raises KeeperGone."""
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
    """Kill the process group of a command that a killed keeper left under way, lest it outlast the revert."""
    path = run / "load" / "switches.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    last = json.loads(lines[-1]) if lines else {}
    if last.get("event") == "begin":
        with contextlib.suppress(ProcessLookupError):
            os.killpg(int(last["pid"]), signal.SIGKILL)


def revert_by_hand(run: Path, why: str, *, ask_first: bool = False) -> tuple[bool, str]:
    """Revert and verify with the commands of a run directory; `ask_first`: only where it is not yet so.

    Raises InputError where the directory does not say how, or somebody is at it.
    """
    path = run / "load" / "keeper.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        switch = keeper.Switch(run, config["commands"], float(config["timeout"]))
    except (OSError, ValueError, KeyError) as error:
        raise InputError(path, f"does not say how to revert ({error})", "revert by hand") from error
    except keeper.Taken as taken:
        raise InputError(run, str(taken), "let it finish: it reverts") from None
    switch.resume()
    if ask_first and switch.command("verify_reverted", why)[0]:
        switch.touched = False
    good, told = switch.end(why)
    if ask_first:
        running = json.loads((run / "run.json").read_text(encoding="utf-8"))["status"] == "running"
        if running:
            keeper.settle(run, f"everything was killed; {told}, {why}", config["collect"])
        else:
            keeper.seal(run, config["collect"])
    return good, told
