"""Switches the change on and off, and reverts it if the controller is lost.

The keeper is a separate program (`python -I -S keeper.py CONFIG RUN`: two descriptors that it
inherits, which no other user can exchange). It uses only the standard library and runs in a
separate session, so that neither Ctrl-C, a lost terminal nor the end of its caller reaches it. It
reads requests as lines of JSON on standard input. The caller holds a *lease*,
which every line renews. The keeper reverts, verifies and records this in the run directory when the
lease expires, when the input ends (the caller was killed), at the deadline, and on SIGTERM. A
process that switches holds the lock `load/lock`, so that no two processes revert at once.

Only the keeper writes `load/phases.jsonl` and `load/switches.jsonl`.
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

if __name__ == "__main__":
    # -I excludes the package; after the standard library, which it must not replace
    sys.path.append(str(Path(__file__).resolve().parents[3]))

from loadprint.safe_files import Directory

# pauses between attempts to revert, while the caller waits, and without a caller
PAUSES_S = (1.0, 1.0)
PAUSES_ALONE_S = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0)
MAX_OUTPUT = 300  # characters stored of a command's output
RECORDER_S = 120.0  # for the recorder to write its tables
# A server that was found treated: the keeper's change is to revert the treatment.
OPPOSITE = {
    "apply": "revert",
    "revert": "apply",
    "verify_applied": "verify_reverted",
    "verify_reverted": "verify_applied",
}
# The command starts after its process is recorded: a killed keeper leaves no unknown process.
START_ON_INPUT = 'read -r start && exec /bin/sh -c "$0" </dev/null'


OFF = {False: "the treatment is off", True: "the treatment is on, as before"}


class Taken(Exception):
    """Another process holds the lock or the server."""


def stamp() -> dict[str, Any]:
    """Return both clocks and the boot id, as in phases.jsonl."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return {
        "monotonic_ns": time.monotonic_ns(),
        "realtime_ns": time.time_ns(),
        "boot_id": boot,
    }


def start_time(pid: int) -> int | None:
    """Return the start of a process in clock ticks since boot (/proc/PID/stat, field 22), or None."""
    try:
        fields = (
            Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        )
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


class Log:
    """Appends JSON lines to a file; each line is one write, so that a kill leaves complete lines."""

    def __init__(self, descriptor: int) -> None:
        self._file = descriptor

    def write(self, line: dict[str, Any]) -> None:
        """Append one object."""
        os.write(self._file, (json.dumps(line, ensure_ascii=False) + "\n").encode())


class Switch:
    """Runs apply, revert and the verifications; `touched` is whether a revert is needed.

    `config` has the `commands` apply, revert, verify_applied, verify_reverted (shell), and their
    `timeout` in seconds. If `treated`, the server was found with the treatment: the commands are
    exchanged, and recorded by the names that the experiment gives them. `load` is the directory of
    this name in the run directory. Raises Taken if another process holds its lock, and OSError.
    """

    def __init__(self, load: Directory, config: dict[str, Any]) -> None:
        self.load, self.commands, self.timeout = load, config["commands"], float(config["timeout"])
        self.treated = bool(config.get("treated"))
        self.touched = False
        self.open: list[dict[str, Any]] = []
        # users who can read a file can hold its lock, and so prevent a revert
        self._lock = load.append("lock", 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Taken(f"{load.path}/lock: another process holds the lock") from None
        self.phases = Log(load.append("phases.jsonl"))
        # the output of commands may contain a password
        self.log = Log(load.append("switches.jsonl", 0o600))

    def named(self, name: str) -> str:
        """Return the experiment's name of a command."""
        return OPPOSITE.get(name, name) if self.treated else name

    def mark(self, phase: str, event: str, **more: Any) -> None:
        """Record the start or end of a phase."""
        if event == "begin":
            self.open.append({"phase": phase, **more})
        else:
            self.open = [each for each in self.open if each["phase"] != phase]
        self.phases.write({"phase": phase, "event": event, **stamp(), **more})

    def close(self) -> None:
        """End all open phases, the innermost first."""
        for each in reversed(list(self.open)):
            more = {key: value for key, value in each.items() if key != "phase"}
            self.mark(each["phase"], "end", **more, broken_off=each["phase"] != "measure")

    def command(self, what: str, why: str) -> tuple[bool, str]:
        """Run one command. Returns whether it exited 0, and its result in one line."""
        text = self.commands[what]
        with tempfile.TemporaryFile() as output:
            child = subprocess.Popen(
                ["/bin/sh", "-c", START_ON_INPUT, text],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            assert child.stdin is not None
            self.log.write(
                {"what": self.named(what), "event": "begin", "pid": child.pid, "why": why, **stamp()}
            )
            with contextlib.suppress(BrokenPipeError), child.stdin as start:
                start.write(b"\n")
            try:
                code: int | None = child.wait(self.timeout)
            except subprocess.TimeoutExpired:
                # the whole group, because children of the shell would continue
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
                code = None
            output.seek(0, os.SEEK_END)
            output.seek(max(0, output.tell() - 4 * MAX_OUTPUT))
            tail = " ".join(output.read().decode(errors="replace").split())[-MAX_OUTPUT:]
        result = f"timed out after {self.timeout:g} s" if code is None else f"exit {code}"
        self.log.write(
            {"what": self.named(what), "event": "end", "exit": code, "said": tail, "why": why, **stamp()}
        )
        return code == 0, f"{self.named(what)}: {result}{': ' + tail if tail and code != 0 else ''}"

    def apply(self, why: str) -> tuple[bool, str]:
        """Apply the treatment and verify it. After a failure `touched` is set, for a revert."""
        self.touched = True
        self.mark(self.named("apply"), "begin")
        applied, message = self.command("apply", why)
        self.mark(self.named("apply"), "end")
        return self.command("verify_applied", why) if applied else (applied, message)

    def revert(self, why: str, pauses: tuple[float, ...] = PAUSES_S) -> tuple[bool, str]:
        """Revert and verify, repeatedly if needed. The verification decides, not the exit status."""
        message = ""
        for attempt in range(len(pauses) + 1):
            if attempt:
                time.sleep(pauses[attempt - 1])
            self.mark(self.named("revert"), "begin")
            reverted, message = self.command("revert", why)
            self.mark(self.named("revert"), "end")
            verified, verify_message = self.command("verify_reverted", why)
            if verified and (reverted or attempt == len(pauses)):
                self.touched = False
                done = "applied again" if self.treated else "reverted"
                return True, f"{done} and verified" if reverted else f"verified, although {message}"
            message = verify_message if reverted else message
        return False, message

    def end(self, why: str, pauses: tuple[float, ...] = PAUSES_S) -> tuple[bool, str]:
        """End the open phases, revert if needed, then end phase `measure`."""
        measure = [each for each in self.open if each["phase"] == "measure"]
        self.open = [each for each in self.open if each["phase"] != "measure"]
        self.close()
        reverted, message = self.revert(why, pauses) if self.touched else (True, OFF[self.treated])
        self.open = measure
        self.close()
        return reverted, message

    def resume(self) -> None:
        """Take over from a killed keeper: read the open phases, and assume that a revert is needed."""
        self.touched = True
        try:
            lines = self.load.read("phases.jsonl").splitlines()
        except OSError as error:
            report(f"the open phases cannot be read: {error}")
            lines = []
        for line in lines:
            try:
                each = json.loads(line)
                phase, begins = each["phase"], each["event"] == "begin"
            except (ValueError, KeyError, TypeError, RecursionError):  # cut off by a crash
                continue
            kept = {key: each[key] for key in ("phase", "block", "window") if key in each}
            self.open = [other for other in self.open if other["phase"] != phase]
            self.open += [kept] if begins else []


class Keeper:
    """Serves the caller's requests until it finishes, its lease expires, or the deadline."""

    def __init__(self, config: dict[str, Any], run: Directory, answers: int) -> None:
        self.config, self.run, self.answers = config, run, answers
        self.switch = Switch(run.sub("load"), config)
        # one experiment per server: the kernel frees an abstract socket name with its process
        self.claim = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.claim.bind(f"\0loadprint-ab-{config['server_pid']}")
        except OSError:
            raise Taken(f"another experiment uses the server (process {config['server_pid']})") from None
        self.lease = float(config["lease"])
        self.until = time.monotonic() + self.lease
        self.deadline = time.monotonic() + float(config["deadline"])
        self.recorder: tuple[int, int] | None = None
        self.pending = b""

    def answer(self, **what: Any) -> None:
        """Answer the caller, if it still exists."""
        with contextlib.suppress(OSError):
            os.write(self.answers, (json.dumps(what) + "\n").encode())

    def serve(self, wake: int) -> int:
        """Serve until `finish`, or until a revert is due. Returns 0 if reverted, else 1."""
        self.answer(event="ready")
        while True:
            now = time.monotonic()
            if now >= self.deadline:
                return self.alone("the deadline has passed")
            if now >= self.until:
                return self.alone(f"the controller did not renew its lease of {self.lease:g} s")
            ready, _, _ = select.select([0, wake], [], [], min(self.until, self.deadline) - now)
            # each byte is the number of a signal; SIGINT and SIGHUP are left to the caller
            if wake in ready and signal.SIGTERM in os.read(wake, 64):
                return self.alone("the keeper received SIGTERM")
            if 0 not in ready:
                continue
            read = os.read(0, 65536)
            if not read:
                return self.alone("the controller is gone")
            *lines, self.pending = (self.pending + read).split(b"\n")
            for line in lines:
                status = self.execute(json.loads(line))
                # the time of a command does not count against the lease
                self.until = time.monotonic() + self.lease
                if status is not None:
                    return status

    def execute(self, request: dict[str, Any]) -> int | None:
        """Execute one request. A returned exit status ends the keeper."""
        number, verb = request.get("id"), request["do"]
        ok, message = True, ""
        if verb == "apply":
            ok, message = self.switch.apply(request["why"])
        elif verb == "revert":
            ok, message = self.switch.revert(request["why"])
        elif verb == "verify":
            ok, message = self.switch.command(request["what"], request["why"])
        elif verb == "mark":
            self.switch.mark(request["phase"], request["event"], **request.get("more", {}))
        elif verb == "recorder":
            self.recorder = (int(request["pid"]), int(request["start"]))
        elif verb == "finish":
            ok, message = self.switch.end(request["why"])
            self.answer(id=number, ok=ok, message=message)
            return 0 if ok else 1
        if number is not None:
            self.answer(id=number, ok=ok, message=message)
        return None

    def alone(self, why: str) -> int:
        """Without a caller: revert, end the recorder, and complete the run directory."""
        ok, message = self.switch.end(why, PAUSES_ALONE_S)
        self.switch.log.write(
            {"what": "keeper", "event": "end", "why": why, "ok": ok, "said": message, **stamp()}
        )
        if not ok:
            revert = self.config["commands"]["revert"]
            report(f"NOT REVERTED ({message}); run by hand: {revert}")
        self.answer(event="ended", ok=ok, why=why, message=message)
        self.end_recorder()
        set_status(self.run, f"{why}; {message}", self.config["collect"])
        return 0 if ok else 1

    def end_recorder(self) -> None:
        """End the recorder and wait for its tables. The start time detects a reused process id."""
        if self.recorder is None or start_time(self.recorder[0]) != self.recorder[1]:
            return
        os.kill(self.recorder[0], signal.SIGTERM)
        until = time.monotonic() + RECORDER_S
        while start_time(self.recorder[0]) == self.recorder[1] and time.monotonic() < until:
            time.sleep(0.1)


def set_status(run: Directory, reason: str | None, collect: str) -> None:
    """Write the status (failed if `reason`, else complete) into run.json, and finish the recording.

    Prints why run.json cannot be read or written: the change has been reverted in any case.
    """
    try:
        meta = read_meta(run) | {
            "status": "failed" if reason else "complete",
            "reason": reason,
            "ended_realtime_ns": time.time_ns(),
        }
        run.replace("run.json", json.dumps(meta, indent=1, ensure_ascii=False) + "\n")
    except (OSError, ValueError) as error:
        report(f"{run.path}/run.json: its status cannot be written: {error}")
    finish_recording(run, collect)


def read_meta(run: Directory) -> dict[str, Any]:
    """Return run.json. Raises OSError, and ValueError if it has no status."""
    try:
        meta = json.loads(run.read("run.json"))
        meta["status"]
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"no status ({error!r})") from None
    return dict(meta)


def finish_recording(run: Directory, collect: str) -> None:
    """Write the tables and the manifest; the run directory does not change after it."""
    command = f"{collect} finish {run.path}"
    try:
        done = subprocess.run(
            [collect, "finish", "."],
            cwd=run.by_descriptor,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        report(f"{command}: {error}")
        return
    if done.returncode:
        report(f"{command}: {done.stderr.strip()}")


def report(text: str) -> None:
    """Print a message: to keeper.log, or to the caller, whose terminal may be gone."""
    with contextlib.suppress(OSError, ValueError):
        print(text, file=sys.stderr, flush=True)


def main(config: int, run: int) -> int:
    """Read the configuration and serve."""
    wake, sender = socket.socketpair()
    sender.setblocking(False)
    signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
    # handlers instead of SIG_IGN, which the commands would inherit
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(each, lambda *_: None)
    with open(config, encoding="utf-8") as file:
        given = json.load(file)
    try:
        keeper = Keeper(given, Directory(run, Path(given["run"])), sys.stdout.fileno())
    except Taken as taken:
        print(json.dumps({"event": "refused", "message": str(taken)}), flush=True)
        return 2
    return keeper.serve(wake.fileno())


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
