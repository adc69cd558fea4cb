"""Switches the change on and off by an experiment's commands, and records every command and phase.

Standard library only, as everything that `conduct` imports: it runs on hosts without packages.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import stat
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from loadprint.reading.names import TREATMENT

# pauses between attempts to revert, while the caller waits, and after it is gone
PAUSES_S = (1.0, 1.0)
PAUSES_ALONE_S = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0)
MAX_OUTPUT = 300  # characters stored of a command's output
MAX_LINE = 1 << 16  # bytes of a line of switches.jsonl
# The group's leader remains a shell of this user, whatever the command executes: another user's process
# could block the reader of its start time.
LEADER = ("/bin/sh", "-c", '/bin/sh -c "$1"; exit $?', "loadprint")
UNCHANGED = {"baseline": "the treatment is off", "treatment": "the treatment is on, as before"}
RESTORED = {"baseline": "reverted", "treatment": "applied again"}


class Taken(Exception):
    """Another process switches this experiment, or this server."""


def say(text: str) -> None:
    """Print a message to the user; a lost terminal must not prevent the revert."""
    with suppress(OSError, ValueError):
        print(f"loadprint ab: {text}", file=sys.stderr, flush=True)


def stamp() -> dict[str, Any]:
    """Return both clocks and the boot id, as in phases.jsonl."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return {"monotonic_ns": time.monotonic_ns(), "realtime_ns": time.time_ns(), "boot_id": boot}


def start_time(pid: int) -> int | None:
    """Return the start of a process of this user in clock ticks since boot (proc_pid_stat(5)), or None."""
    try:
        if os.stat(f"/proc/{pid}").st_uid != os.geteuid():
            return None
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


class JsonLines:
    """Appends JSON lines to a file; each line is one write, so that a kill leaves complete lines.

    Raises OSError, also for a pipe, whose writers wait for readers.
    """

    def __init__(self, path: Path, mode: int) -> None:
        self.path = path
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK, mode)
        if not stat.S_ISREG(os.fstat(self.fd).st_mode):
            raise OSError(errno.EINVAL, "is not a regular file", str(path))

    def write(self, line: dict[str, Any]) -> None:
        """Append one object; a full disk must not prevent the revert."""
        try:
            os.write(self.fd, (json.dumps(line, ensure_ascii=False) + "\n").encode())
        except OSError as error:
            say(f"{self.path}: {error.strerror}")


class Switch:
    """Runs the commands of `experiment`; `touched` is whether it has to be restored to its initial variant.

    `load` is the directory of this name in the run directory. Raises Taken if another process switches.
    """

    def __init__(self, load: Path, experiment: dict[str, Any]) -> None:
        self.treatment, self.initial = experiment["treatment"], str(experiment["initial"])
        self.touched = False
        self.open: list[dict[str, Any]] = []
        # the output of commands may contain a password; its lock prevents two reverts at once
        self.log = JsonLines(load / "switches.jsonl", 0o600)
        try:
            fcntl.flock(self.log.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Taken("its experiment is running, or another process is reverting it") from None
        self.phases = JsonLines(load / "phases.jsonl", 0o644)

    def begin(self, phase: str, **more: Any) -> None:
        """Record the start of a phase."""
        self.open.append({"phase": phase, **more})
        self.phases.write({"phase": phase, "event": "begin", **stamp(), **more})

    def end(self, phase: str, **more: Any) -> None:
        """Record the end of an open phase."""
        begun = next(record for record in reversed(self.open) if record["phase"] == phase)
        self.open.remove(begun)
        self.phases.write({**begun, "event": "end", **stamp(), **more})

    def command(self, name: str, why: str) -> tuple[bool, str]:
        """Run one command. Returns whether it exited 0, and its result in one line."""
        with open(os.memfd_create("output"), "w+b") as output:
            try:
                child = subprocess.Popen(
                    [*LEADER, self.treatment[name]],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            except OSError as error:  # too many processes
                return False, f"{name}: {error}"
            begun = {"pid": child.pid, "start": start_time(child.pid)}
            self.log.write({"what": name, "event": "begin", **begun, "why": why, **stamp()})
            try:
                code: int | None = child.wait(float(self.treatment["timeout"]))
            except subprocess.TimeoutExpired:
                # the whole group, because children of the shell would continue
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
                code = None
            output.seek(0, os.SEEK_END)
            output.seek(max(0, output.tell() - 4 * MAX_OUTPUT))
            tail = " ".join(output.read().decode(errors="replace").split())[-MAX_OUTPUT:]
        self.log.write({"what": name, "event": "end", "exit": code, "said": tail, "why": why, **stamp()})
        result = f"timed out after {self.treatment['timeout']:g} s" if code is None else f"exit {code}"
        return code == 0, f"{name}: {result}{': ' + tail if tail and code != 0 else ''}"

    def verify(self, variant: str, why: str) -> tuple[bool, str]:
        """Check that the server is in a variant."""
        return self.command("verify_applied" if variant == TREATMENT else "verify_reverted", why)

    def switch(self, variant: str, why: str) -> tuple[bool, str]:
        """Switch to a variant and verify it; back to the initial one repeatedly, if needed."""
        if variant == self.initial:
            return self.restore(why)
        self.touched = True
        switched, message = self._once(variant, why)
        return self.verify(variant, why) if switched else (switched, message)

    def restore(self, why: str, pauses: tuple[float, ...] = PAUSES_S) -> tuple[bool, str]:
        """Restore the initial variant. The verification decides, not the exit status of the command."""
        message = ""
        for attempt in range(len(pauses) + 1):
            if attempt:
                say(f"{message}; attempt {attempt + 1} of {len(pauses) + 1} to revert")
                time.sleep(pauses[attempt - 1])
            done, message = self._once(self.initial, why)
            verified, verify_message = self.verify(self.initial, why)
            if verified and (done or attempt == len(pauses)):
                self.touched = False
                restored = f"{RESTORED[self.initial]} and verified"
                return True, restored if done else f"verified, although {message}"
            message = verify_message if done else message
        return False, message

    def finish(self, why: str, pauses: tuple[float, ...] = PAUSES_S) -> tuple[bool, str]:
        """End the open phases, restore the initial variant if needed, then end phase `measure`."""
        for record in reversed([record for record in self.open if record["phase"] != "measure"]):
            self.end(record["phase"], broken_off=True)
        restored, message = self.restore(why, pauses) if self.touched else (True, UNCHANGED[self.initial])
        if self.open:
            self.end("measure", broken_off=False)
        return restored, message

    def kill_command(self) -> None:
        """Kill the command that a killed process left running: it must not run longer than the revert."""
        # a damaged line must not prevent the revert
        with suppress(OSError, LookupError, TypeError, ValueError, RecursionError):
            begin = max(0, os.fstat(self.log.fd).st_size - MAX_LINE)
            last = json.loads(os.pread(self.log.fd, MAX_LINE, begin).splitlines()[-1])
            if last["event"] == "begin" and (start := last["start"]) and start_time(last["pid"]) == start:
                os.killpg(last["pid"], signal.SIGKILL)

    def _once(self, variant: str, why: str) -> tuple[bool, str]:
        name = "apply" if variant == TREATMENT else "revert"
        self.begin(name)
        switched = self.command(name, why)
        self.end(name)
        return switched
