"""The recorder beside an experiment: started before the first window, watched, asked for edges, ended."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

from loadprint.commands.ab.experiment import Experiment
from loadprint.commands.ab.keeper import start_time
from loadprint.errors import InputError

SERVING = re.compile(r"serving http://127\.0\.0\.1:(\d+)/metrics\n")
BESIDE = Path(__file__).parents[4] / "target" / "release" / "loadprint-collect"


def collector(given: Path | None) -> Path:
    """Find loadprint-collect: as given, on the PATH, or in this source tree. Raises InputError."""
    found = shutil.which("loadprint-collect")
    for path in (given, Path(found) if found else None, BESIDE):
        if path is not None and path.is_file() and os.access(path, os.X_OK):
            return path.resolve()
        if given is not None:
            break
    raise InputError(given or "loadprint-collect", "is not there", "name it with --collector PATH")


def server_pid(process: str) -> int:
    """Process of the server: a number, @PIDFILE, or the name of the one such process. Raises InputError."""
    place = f"server.process {process}"
    if process.isdigit():
        pids = [int(process)]
    elif process.startswith("@"):
        try:
            pids = [int(Path(process[1:]).read_text(encoding="ascii").strip())]
        except (OSError, ValueError) as error:
            raise InputError(place, f"the pid file cannot be read ({error})", "name the right file") from None
    else:
        pids = [
            int(path.parent.name)
            for path in Path("/proc").glob("[0-9]*/comm")
            if _text(path) == process[:15] and start_time(int(path.parent.name)) is not None
        ]
    pids = [pid for pid in pids if start_time(pid) is not None]
    if len(pids) != 1:
        what = "no such process" if not pids else f"is the name of {len(pids)} processes"
        raise InputError(place, what, "give a process number or @PIDFILE")
    return pids[0]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


class Recorder:
    """loadprint-collect as a child in a session of its own: Ctrl-C is for the controller to decide on."""

    def __init__(self, binary: Path, run: Path, experiment: Experiment, pid: int, seconds: float) -> None:
        self._port: int | None = None
        self._log = run / "load" / "recorder.log"
        server, recorder = experiment.server, experiment.recorder
        words = [str(binary), "record", "--out", str(run), "--interval", f"{recorder.interval:g}s"]
        words += ["--process", f"server={pid}", "--listen", "127.0.0.1:0"]
        words += ["--deadline", f"{seconds + 60:.0f}s"]
        if recorder.without:
            words += ["--without", ",".join(recorder.without)]
        if server.defaults_file is not None:
            # libmysqlclient looks for a bare name elsewhere
            words += ["--mysql-defaults-file", str(server.defaults_file.absolute())]
        for option, value in (("socket", server.socket), ("host", server.host), ("port", server.port)):
            if value is not None:
                words += [f"--mysql-{option}", str(value)]
        if server.data_dir is not None:
            words += ["--data-dir", str(server.data_dir)]
        if server.cpus is not None:
            words += ["--cpuset", f"server={server.cpus}"]
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        self.start = start_time(self.process.pid)

    @property
    def port(self) -> int | None:
        """Port at which it serves its newest tick, which the system chose; None until it says so."""
        if self._port is None:
            said = SERVING.search(self._log.read_text(encoding="utf-8", errors="replace"))
            self._port = int(said[1]) if said else None
        return self._port

    def died(self) -> str | None:
        """Why it is gone; None while it runs."""
        code = self.process.poll()
        if code is None:
            return None
        lines = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        how = f"killed by signal {-code}" if code < 0 else f"exit {code}"
        return f"the recorder ended ({how}{': ' + lines[-1] if lines else ''})"

    def edge(self) -> None:
        """Ask for a tick of all probes: a window begins or ends."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGUSR1)

    def end(self, patience: float = 120.0) -> str | None:
        """End it and wait for its tables; what went wrong, or None."""
        before = self.process.poll()
        if before is not None:
            return self.died()
        self.process.terminate()
        try:
            code = self.process.wait(patience)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return f"the recorder did not end within {patience:g} s"
        return None if code == 0 else self.died()


def why_silent(run: Path) -> str | None:
    """What kept the recorder from asking the server, by its tables; None where they do not say."""
    from loadprint.reading.queries import Store  # noqa: PLC0415  only after a failure

    path = run / "server" / "ticks.parquet"
    if not path.is_file():
        return None
    store = Store()
    told = [str(p.get("reason")) for p in store.metadata(path).get("probes", []) if p.get("name") == "mysql"]
    rows = store.fetch(
        path, lambda t: t.filter((t.probe == "mysql") & t.reason.notnull()).order_by("tick").select("reason")
    )
    reasons = [str(reason) for reason in rows["reason"] if reason]
    known = reasons or [reason for reason in told if reason != "None"]
    return known[-1] if known else None


def gone(pid: int, start: int | None) -> bool:
    """Whether the process that had this number at the begin is no longer there."""
    return start_time(pid) != start
