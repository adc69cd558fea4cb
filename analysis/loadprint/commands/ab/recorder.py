"""Starts, watches and ends the recorder of an experiment, and requests ticks at window edges."""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import subprocess
from pathlib import Path
from typing import Any

from loadprint.errors import InputError, as_input_error
from loadprint.safe_files import read_file

LIVE = Path("load") / "live.json"
LOG = Path("load") / "recorder.log"
PR_SET_PDEATHSIG = 1  # prctl(2)
PID_FILE = 64  # bytes of a pid file


def server_process(process: str) -> tuple[int, int]:
    """Return the server's process and a descriptor of it, from a number, @PIDFILE, or a process name.

    Nothing below /proc/PID is read later: a process can block its readers. Raises InputError.
    """
    place = f"server.process {process}"
    if process.isdecimal():
        pids = [int(process)]
    elif process.startswith("@"):
        try:
            pids = [int(read_file(Path(process[1:]), PID_FILE))]
        except (OSError, ValueError) as error:
            raise InputError(place, f"the pid file cannot be read ({error})", "check its path") from None
    else:
        commands = Path("/proc").glob("[0-9]*/comm")
        pids = [int(path.parent.name) for path in commands if _text(path) == process[:15]]
    running = [(pid, fd) for pid in pids if (fd := _descriptor(pid)) is not None]
    if len(running) != 1:
        what = "no such process" if not running else f"{len(running)} processes have this name"
        raise InputError(place, what, "give a process number or @PIDFILE")
    return running[0]


def has_ended(process: int) -> bool:
    """Whether the process of a descriptor has ended, pidfd_open(2)."""
    return bool(select.select([process], [], [], 0)[0])


def _descriptor(pid: int) -> int | None:
    try:
        process = os.pidfd_open(pid)
    except (OSError, OverflowError):
        return None
    return None if has_ended(process) else process


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


class Recorder:
    """Runs loadprint-collect in a separate session, so that Ctrl-C does not reach it."""

    def __init__(self, document: dict[str, Any], run: Path, pid: int) -> None:
        self._run = run
        server, recorder = document["experiment"]["server"], document["experiment"]["recorder"]
        words = [document["collector"], "record", "--out", ".", "--interval", f"{recorder['interval']:g}s"]
        words += ["--process", f"server={pid}", "--live", str(LIVE)]
        words += ["--duration", f"{document['plan']['deadline_s'] + 60:.0f}s"]
        if recorder["without"]:
            words += ["--without", ",".join(recorder["without"])]
        if server["cpus"] is not None:
            words += ["--cpuset", f"server={server['cpus']}"]
        options = {"--mysql-host": "host", "--mysql-port": "port"}
        words += [str(w) for o, key in options.items() if server[key] is not None for w in (o, server[key])]
        paths = {
            "--mysql-defaults-file": "defaults_file",
            "--mysql-socket": "socket",
            "--data-dir": "data_dir",
        }
        for option, key in paths.items():
            if server[key] is not None:
                words += [option, str(Path(server[key]).absolute())]
        with as_input_error(words[0], "run ./setup"), (run / LOG).open("wb") as log:
            self.process = subprocess.Popen(
                words,
                cwd=run,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=_end_with_parent,  # noqa: PLW1509  there are no threads
            )

    def newest(self) -> dict[str, Any] | None:
        """Its newest sample; None while there is none."""
        try:
            sample: dict[str, Any] = json.loads((self._run / LIVE).read_text(encoding="utf-8"))
        except OSError:
            return None
        return sample

    def died(self) -> str | None:
        """Return how it ended, or None while it runs."""
        code = self.process.poll()
        if code is None:
            return None
        lines = (self._run / LOG).read_text(encoding="utf-8", errors="replace").strip().splitlines()
        how = f"killed by signal {-code}" if code < 0 else f"exit {code}"
        return f"the recorder ended ({how}{': ' + lines[-1] if lines else ''})"

    def edge(self) -> None:
        """Request a tick of all probes at the start or end of a window."""
        self.process.send_signal(signal.SIGUSR1)

    def end(self, timeout: float = 120.0) -> str | None:
        """End it and wait for its tables. Returns an error, or None."""
        if self.process.poll() is not None:
            return self.died()
        self.process.terminate()
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return f"the recorder did not end within {timeout:g} s"
        return None if code == 0 else self.died()
