"""Connects the controller to the keeper: sends requests, renews the lease, detects its end.

Only the keeper switches while it runs. If it was killed, the controller kills the command that the
keeper was running, takes the lock, and reverts.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from loadprint.commands.ab import keeper
from loadprint.commands.ab.interrupts import say
from loadprint.configuration.checkout import CHECKOUT
from loadprint.errors import InputError
from loadprint.printable import printable
from loadprint.safe_files import Directory, require_trusted

HANGS_S = 5.0
START_S = 120.0  # for the start of a small program on a busy host


class KeeperGone(Exception):
    """The keeper has ended; `last` is its last message, None if it was killed."""

    def __init__(self, last: dict[str, Any] | None) -> None:
        self.last = last
        super().__init__("the keeper has ended")


class Link:
    """Runs a keeper as a child process. Raises InputError if it refuses to start."""

    def __init__(self, config: dict[str, Any], run: Directory) -> None:
        self.config, self.load = config, run.sub("load")
        load = self.load
        load.replace("keeper.json", json.dumps(config, indent=1) + "\n", 0o600)
        with open(load.regular("keeper.json"), "rb") as given, open(load.create("keeper.log"), "wb") as log:
            inherited = (given.fileno(), run.fd)
            # -I -S: independent of the environment and of site packages
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(Path(keeper.__file__)), *map(str, inherited)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                pass_fds=inherited,
                start_new_session=True,
            )
        self._number, self._rest = 0, b""
        self._last: dict[str, Any] | None = None
        self.touched = False
        first = self._read(until=time.monotonic() + START_S)
        if first is None or first.get("event") != "ready":
            message = (first or {}).get("message", "the keeper did not start, see load/keeper.log")
            raise InputError(run.path, message, "end the other experiment, or wait for its end")

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
        end_command(self.load)
        try:
            switch = keeper.Switch(self.load, self.config)
        except (keeper.Taken, OSError) as error:
            return False, str(error)
        switch.resume()
        return switch.end(why)

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


def end_command(load: Directory) -> None:
    """Kill the command that a killed keeper left running: it must not run longer than the revert."""
    # a damaged line must not prevent the revert
    with contextlib.suppress(OSError, LookupError, TypeError, ValueError):
        last = json.loads(load.read("switches.jsonl").splitlines()[-1])
        if last["event"] == "begin":
            os.killpg(int(last["pid"]), signal.SIGKILL)


def revert_by_hand(path: Path, *, yes: bool = False) -> tuple[bool, str]:
    """Revert with the commands of a run directory, unless already reverted, and verify.

    Raises InputError if the directory has no commands, if another process is reverting, and, without
    `yes`, if other users can change the commands; these are printed before.
    """
    distrust = _distrust(path)
    fix = "give a run directory of `ab run`, or revert the change yourself"
    try:
        run = Directory.open(path)
        load = run.sub("load")
        config = configuration(load.read("keeper.json"))
    except OSError as error:
        raise InputError(error.filename, f"no commands to revert with: {error.strerror}", fix) from error
    except ValueError as error:
        place = path / "load" / "keeper.json"
        raise InputError(place, f"no commands to revert with: {error}", fix) from error
    if distrust is not None:
        _print_commands(path, config)
        if not yes:
            fix = "if the commands above are those of the experiment, run it again with --yes"
            raise InputError(distrust.filename, f"{distrust.strerror}; its commands did not run", fix)
    try:
        switch = keeper.Switch(load, config)
    except keeper.Taken as taken:
        raise InputError(path, str(taken), "wait for its end: it reverts") from None
    except OSError as error:
        raise InputError(error.filename, str(error.strerror), "remove it, and revert again") from error
    return _revert(switch, run, config["collect"])


def _distrust(path: Path) -> OSError | None:
    """Return why others than root, the caller and the owner of this program can change what a revert runs."""
    owner = CHECKOUT.stat().st_uid
    try:
        # If it does not exist, another user may make it after this check.
        require_trusted(path / "load" / "keeper.json", owner=owner)
        for name in ("load/phases.jsonl", "load/switches.jsonl", "load/lock", "run.json"):
            with contextlib.suppress(FileNotFoundError):
                require_trusted(path / name, owner=owner)
    except OSError as error:
        return error
    return None


def configuration(text: str) -> dict[str, Any]:
    """Return the content of keeper.json. Raises ValueError if it is not what `ab run` writes."""
    try:
        config: dict[str, Any] = json.loads(text)
        texts = [config["collect"], *(config["commands"][name] for name in keeper.OPPOSITE)]
        timeout = float(config["timeout"])
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"not what `ab run` writes ({error!r})") from None
    if not all(isinstance(each, str) and "\0" not in each for each in texts) or not 0 < timeout < math.inf:
        raise ValueError("not what `ab run` writes (a command or the timeout)")
    return config


def _print_commands(path: Path, config: dict[str, Any]) -> None:
    """Print what a revert runs, with escapes, so that a line break or a terminal sequence hides nothing."""
    for name in ("verify_reverted", "revert"):
        say(f"{name}: {printable(json.dumps(config['commands'][name], ensure_ascii=False))}")
    say(printable(f"then: {json.dumps(config['collect'], ensure_ascii=False)} finish {path}"))


def _revert(switch: keeper.Switch, run: Directory, collect: str) -> tuple[bool, str]:
    """Revert unless reverted already, then complete the recording, as far as run.json permits it."""
    why = "by hand"
    switch.resume()
    if switch.command("verify_reverted", why)[0]:
        switch.touched = False
    reverted, message = switch.end(why)
    try:
        running = keeper.read_meta(run)["status"] == "running"
    except (OSError, ValueError) as error:
        what = error.strerror if isinstance(error, OSError) else error
        return reverted, f"{message}; {run.path}/run.json: {what}; the recording was not completed"
    if running:
        keeper.set_status(run, f"everything was killed; {message}, {why}", collect)
    else:
        keeper.finish_recording(run, collect)
    return reverted, message
