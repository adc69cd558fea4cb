"""The keeper: the one process that switches, on the server's host, and that reverts when nobody else can.

It is a program of its own (`python -I -S keeper.py CONFIG`), with nothing but the standard library, in a
session of its own, so that neither Ctrl-C, a lost terminal nor the end of its caller reaches it. It takes
lines of JSON on its standard input. The caller holds a *lease*, which every line renews: when the lease
ends, when the input ends (the caller was killed), at the deadline and on SIGTERM, it reverts, verifies, and
writes what it did into the run directory. Whoever switches holds the lock `load/lock`, so that two never
revert at once.

A file has one writer: the keeper writes `load/phases.jsonl` and `load/switches.jsonl`.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

# pauses between attempts at reverting: what was in the way may go; somebody waits, or nobody does
PAUSES_S = (1.0, 1.0)
PAUSES_ALONE_S = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0)
TOLD = 300  # characters kept of what a command printed
RECORDER_S = 120.0  # for the recorder to write its tables
# A command begins once its process is written down: a keeper that is killed before leaves none that goes on.
WHEN_TOLD = 'read -r told && exec /bin/sh -c "$0" </dev/null'


class Taken(Exception):
    """Somebody else holds the lock or the server."""


def stamp() -> dict[str, Any]:
    """Both clocks and the boot, as phases.jsonl has them."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return {
        "monotonic_ns": time.monotonic_ns(),
        "realtime_ns": time.time_ns(),
        "boot_id": boot,
    }


def start_time(pid: int) -> int | None:
    """Start of a process in clock ticks since boot (/proc/PID/stat, field 22); None when it is gone."""
    try:
        fields = (
            Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        )
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


class Log:
    """A file of JSON lines; each line is one write, so that a kill leaves whole lines."""

    def __init__(self, path: Path, mode: int = 0o644) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, mode)

    def write(self, line: dict[str, Any]) -> None:
        """Append one object."""
        os.write(self._file, (json.dumps(line, ensure_ascii=False) + "\n").encode())


class Switch:
    """Runs apply, revert and the verifications; remembers whether the server was touched.

    `commands`: apply, revert, verify_applied, verify_reverted (shell), `timeout` in seconds. Raises Taken
    where another holds the run directory's lock.
    """

    def __init__(self, run: Path, commands: dict[str, str], timeout: float) -> None:
        self.run, self.commands, self.timeout = run, commands, timeout
        # what commands print may hold a password
        self.phases, self.log = (
            Log(run / "load" / "phases.jsonl"),
            Log(run / "load" / "switches.jsonl", 0o600),
        )
        self.touched = False
        self.open: list[dict[str, Any]] = []
        self._lock = os.open(run / "load" / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Taken(f"{run}/load/lock: somebody else is switching here") from None

    def mark(self, phase: str, event: str, **more: Any) -> None:
        """Write the begin or end of a phase."""
        if event == "begin":
            self.open.append({"phase": phase, **more})
        else:
            self.open = [each for each in self.open if each["phase"] != phase]
        self.phases.write({"phase": phase, "event": event, **stamp(), **more})

    def close(self) -> None:
        """End every phase that is open, the innermost first."""
        for each in reversed(list(self.open)):
            more = {key: value for key, value in each.items() if key != "phase"}
            self.mark(each["phase"], "end", **more, broken_off=each["phase"] != "measure")

    def command(self, what: str, why: str) -> tuple[bool, str]:
        """Run one command to its end or timeout: whether it exited 0, and how it went in a line."""
        text = self.commands[what]
        with tempfile.TemporaryFile() as printed:
            child = subprocess.Popen(
                ["/bin/sh", "-c", WHEN_TOLD, text],
                stdin=subprocess.PIPE,
                stdout=printed,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            assert child.stdin is not None
            self.log.write({"what": what, "event": "begin", "pid": child.pid, "why": why, **stamp()})
            with contextlib.suppress(BrokenPipeError), child.stdin as told:
                told.write(b"\n")
            try:
                code: int | None = child.wait(self.timeout)
            except subprocess.TimeoutExpired:
                # the whole group: what the shell started would go on
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
                code = None
            printed.seek(0, os.SEEK_END)
            printed.seek(max(0, printed.tell() - 4 * TOLD))
            said = " ".join(printed.read().decode(errors="replace").split())[-TOLD:]
        went = f"timed out after {self.timeout:g} s" if code is None else f"exit {code}"
        self.log.write({"what": what, "event": "end", "exit": code, "said": said, "why": why, **stamp()})
        return code == 0, f"{what}: {went}{': ' + said if said and code != 0 else ''}"

    def apply(self, why: str) -> tuple[bool, str]:
        """Apply the treatment and verify it. A failure leaves `touched`, for a revert."""
        self.touched = True
        self.mark("apply", "begin")
        good, told = self.command("apply", why)
        self.mark("apply", "end")
        return self.command("verify_applied", why) if good else (good, told)

    def revert(self, why: str, pauses: tuple[float, ...] = PAUSES_S) -> tuple[bool, str]:
        """Revert and verify, several times if need be; what verifies counts, whatever the command said."""
        told = ""
        for attempt in range(len(pauses) + 1):
            if attempt:
                time.sleep(pauses[attempt - 1])
            self.mark("revert", "begin")
            good, told = self.command("revert", why)
            self.mark("revert", "end")
            verified, said = self.command("verify_reverted", why)
            if verified and (good or attempt == len(pauses)):
                self.touched = False
                return True, "reverted and verified" if good else f"verified as reverted, though {told}"
            told = told if not good else said
        return False, told

    def end(self, why: str, pauses: tuple[float, ...] = PAUSES_S) -> tuple[bool, str]:
        """End what is open, revert what was touched, then end phase `measure`."""
        measure = [each for each in self.open if each["phase"] == "measure"]
        self.open = [each for each in self.open if each["phase"] != "measure"]
        self.close()
        good, told = self.revert(why, pauses) if self.touched else (True, "the treatment is off")
        self.open = measure
        self.close()
        return good, told

    def resume(self) -> None:
        """Take over from a keeper that was killed: which phases are open; the server may be touched."""
        self.touched = True
        for line in (self.run / "load" / "phases.jsonl").read_text(encoding="utf-8").splitlines():
            each = json.loads(line)
            kept = {key: each[key] for key in ("phase", "block", "window") if key in each}
            self.open = [other for other in self.open if other["phase"] != each["phase"]]
            self.open += [kept] if each["event"] == "begin" else []


class Keeper:
    """The loop: asks, leases, deadline."""

    def __init__(self, config: dict[str, Any], answers: int) -> None:
        self.config, self.answers = config, answers
        self.switch = Switch(Path(config["run"]), config["commands"], float(config["timeout"]))
        # one experiment a server: an abstract name goes with the process that holds it
        self.claim = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.claim.bind(f"\0loadprint-ab-{config['server_pid']}")
        except OSError:
            raise Taken(f"another experiment has process {config['server_pid']} of the server") from None
        self.lease = float(config["lease"])
        self.until = time.monotonic() + self.lease
        self.deadline = time.monotonic() + float(config["deadline"])
        self.recorder: tuple[int, int] | None = None
        self.pending = b""

    def answer(self, **what: Any) -> None:
        """Tell the caller; one that is gone does not matter here."""
        with contextlib.suppress(OSError):
            os.write(self.answers, (json.dumps(what) + "\n").encode())

    def serve(self, wake: int) -> int:
        """Serve until asked to finish, or until it is time to revert: 0 reverted, 1 reverting failed."""
        self.answer(event="ready")
        while True:
            now = time.monotonic()
            if now >= self.deadline:
                return self.alone("the deadline has passed")
            if now >= self.until:
                return self.alone(f"the controller did not renew its lease of {self.lease:g} s")
            ready, _, _ = select.select([0, wake], [], [], min(self.until, self.deadline) - now)
            # each byte is the number of a signal; SIGINT and SIGHUP are for the caller, who decides
            if wake in ready and signal.SIGTERM in os.read(wake, 64):
                return self.alone("the keeper was told to end (SIGTERM)")
            if 0 not in ready:
                continue
            read = os.read(0, 65536)
            if not read:
                return self.alone("the controller is gone")
            *lines, self.pending = (self.pending + read).split(b"\n")
            for line in lines:
                ended = self.take(json.loads(line))
                # what a command took is not the caller's lateness
                self.until = time.monotonic() + self.lease
                if ended is not None:
                    return ended

    def take(self, asked: dict[str, Any]) -> int | None:
        """Do what one line asks; a status ends the keeper."""
        number, verb = asked.get("id"), asked["do"]
        good, told = True, ""
        if verb == "apply":
            good, told = self.switch.apply(asked["why"])
        elif verb == "revert":
            good, told = self.switch.revert(asked["why"])
        elif verb == "verify":
            good, told = self.switch.command(asked["what"], asked["why"])
        elif verb == "mark":
            self.switch.mark(asked["phase"], asked["event"], **asked.get("more", {}))
        elif verb == "recorder":
            self.recorder = (int(asked["pid"]), int(asked["start"]))
        elif verb == "finish":
            good, told = self.switch.end(asked["why"])
            self.answer(id=number, ok=good, told=told)
            return 0 if good else 1
        if number is not None:
            self.answer(id=number, ok=good, told=told)
        return None

    def alone(self, why: str) -> int:
        """Nobody asks any more: revert, end the recorder, and leave a run directory that can be read."""
        good, told = self.switch.end(why, PAUSES_ALONE_S)
        self.switch.log.write(
            {"what": "keeper", "event": "end", "why": why, "ok": good, "said": told, **stamp()}
        )
        if not good:
            print(f"NOT REVERTED ({told}); run by hand: {self.config['commands']['revert']}", file=sys.stderr)
        self.answer(event="ended", ok=good, why=why, told=told)
        self.end_recorder()
        settle(Path(self.config["run"]), f"{why}; {told}", self.config["collect"])
        return 0 if good else 1

    def end_recorder(self) -> None:
        """Ask the recorder to end and wait for its tables; its start time guards against a pid used anew."""
        if self.recorder is None or start_time(self.recorder[0]) != self.recorder[1]:
            return
        os.kill(self.recorder[0], signal.SIGTERM)
        until = time.monotonic() + RECORDER_S
        while start_time(self.recorder[0]) == self.recorder[1] and time.monotonic() < until:
            time.sleep(0.1)


def settle(run: Path, reason: str | None, collect: str) -> None:
    """Say in run.json how it ended (None: complete), and have manifest and tables made whole."""
    path = run / "run.json"
    meta = json.loads(path.read_text(encoding="utf-8"))
    meta |= {
        "status": "failed" if reason else "complete",
        "reason": reason,
        "ended_realtime_ns": time.time_ns(),
    }
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps(meta, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    beside.rename(path)
    seal(run, collect)


def seal(run: Path, collect: str) -> None:
    """Make the tables and the manifest; nothing is written into the run directory after it."""
    done = subprocess.run(
        [collect, "finish", str(run)], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        print(f"{collect} finish {run}: {done.stderr.strip()}", file=sys.stderr)


def main(path: str) -> int:
    """Read the configuration and serve."""
    wake, sender = socket.socketpair()
    sender.setblocking(False)
    signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
    # handlers, not SIG_IGN, which the commands would inherit
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(each, lambda *_: None)
    config = json.loads(Path(path).read_text(encoding="utf-8"))
    try:
        keeper = Keeper(config, sys.stdout.fileno())
    except Taken as taken:
        print(json.dumps({"event": "refused", "told": str(taken)}), flush=True)
        return 2
    return keeper.serve(wake.fileno())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
