"""Starts, watches and ends the recorder of an experiment, and requests ticks at window edges."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from loadprint.commands.ab.keeper import start_time
from loadprint.errors import InputError
from loadprint.safe_files import Directory

if TYPE_CHECKING:
    from loadprint.commands.ab.experiment import Experiment

PID_BYTES = 64  # of a pid file
LIVE = "live.json"  # in the directory `load`


def server_pid(process: str) -> int:
    """Return the server's process, from a number, @PIDFILE, or a process name. Raises InputError."""
    place = f"server.process {process}"
    if process.isdigit():
        pids = [int(process)]
    elif process.startswith("@"):
        try:
            path = Path(process[1:])
            pids = [int(Directory.open(path.parent).read(path.name, PID_BYTES).strip())]
        except (OSError, ValueError) as error:
            raise InputError(place, f"the pid file cannot be read ({error})", "check its path") from None
    else:
        pids = [
            int(path.parent.name)
            for path in Path("/proc").glob("[0-9]*/comm")
            if _text(path) == process[:15] and start_time(int(path.parent.name)) is not None
        ]
    pids = [pid for pid in pids if start_time(pid) is not None]
    if len(pids) != 1:
        what = "no such process" if not pids else f"{len(pids)} processes have this name"
        raise InputError(place, what, "give a process number or @PIDFILE")
    return pids[0]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


class Recorder:
    """Runs loadprint-collect in a separate session, so that Ctrl-C reaches only the controller."""

    def __init__(
        self, binary: Path, run: Directory, experiment: Experiment, pid: int, seconds: float
    ) -> None:
        self._load = run.sub("load")
        self._log = self._load.create("recorder.log", flags=os.O_APPEND)
        server, recorder = experiment.server, experiment.recorder
        # its working directory: a path may name another directory by now
        words = [str(binary), "record", "--out", ".", "--interval", f"{recorder.interval:g}s"]
        words += ["--process", f"server={pid}", "--live", f"load/{LIVE}"]
        words += ["--deadline", f"{seconds + 60:.0f}s"]
        if recorder.without:
            words += ["--without", ",".join(recorder.without)]
        if server.defaults_file is not None:
            # the recorder is detached: its messages name the whole path
            words += ["--mysql-defaults-file", str(server.defaults_file.absolute())]
        socket = None if server.socket is None else Path(server.socket).absolute()
        for option, value in (("socket", socket), ("host", server.host), ("port", server.port)):
            if value is not None:
                words += [f"--mysql-{option}", str(value)]
        if server.data_dir is not None:
            words += ["--data-dir", str(Path(server.data_dir).absolute())]
        if server.cpus is not None:
            words += ["--cpuset", f"server={server.cpus}"]
        self.process = subprocess.Popen(
            words,
            cwd=run.by_descriptor,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )
        self.start = start_time(self.process.pid)

    def newest(self) -> str:
        """Its newest sample as JSON; empty while there is none."""
        try:
            return self._load.read(LIVE)
        except OSError:
            return ""

    def died(self) -> str | None:
        """Return how it ended, or None while it runs."""
        code = self.process.poll()
        if code is None:
            return None
        lines = self._logged().strip().splitlines()
        how = f"killed by signal {-code}" if code < 0 else f"exit {code}"
        return f"the recorder ended ({how}{': ' + lines[-1] if lines else ''})"

    def _logged(self) -> str:
        return os.pread(self._log, os.fstat(self._log).st_size, 0).decode(errors="replace")

    def edge(self) -> None:
        """Request a tick of all probes at the start or end of a window."""
        if self.process.poll() is None:
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


def why_silent(run: Path) -> str | None:
    """Return why the recorder could not query the server, from its tables, or None."""
    try:
        from loadprint.reading.queries import Store  # noqa: PLC0415  only after a failure
    except ImportError:  # `ab run --planned` on a host without packages
        return None

    path = run / "server" / "ticks.parquet"
    if not path.is_file():
        return None
    store = Store()
    at_open = [
        str(probe["reason"])
        for probe in store.metadata(path).get("probes", [])
        if probe.get("name") == "mysql" and probe.get("reason") is not None
    ]
    rows = store.fetch(
        path, lambda t: t.filter((t.probe == "mysql") & t.reason.notnull()).order_by("tick").select("reason")
    )
    reasons = [str(reason) for reason in rows["reason"] if reason] or at_open
    return reasons[-1] if reasons else None


def gone(pid: int, start: int | None) -> bool:
    """Whether the process with this number and start time has ended."""
    return start_time(pid) != start
