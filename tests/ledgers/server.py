"""Runs Debian's MariaDB with any options, and records a short load on it."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from loadprint.metrics.gather import Measured, gather
from loadprint.reading.queries import Store
from loadprint.reading.recording import open_run
from programs import LOAD, TIMEOUT_S, in_measure_phase, printed, recording, wait_for, wait_while

SERVER, SHARE = "/usr/sbin/mariadbd", Path("/usr/share/mysql")
TABLES = ("system_tables", "performance_tables", "system_tables_data")
PROBES = "cpu,process,threads,ebpf_sched,ebpf_states,ebpf_exchanges,profile"
PASSWORD = "not-that-secret"
ADDRESS, CLIENT = "198.18.98.1", "198.18.98.2"  # of a server and a client with TCP
ACCOUNT = f"""CREATE DATABASE IF NOT EXISTS sbtest;
CREATE USER IF NOT EXISTS 'loadprint'@'localhost' IDENTIFIED BY '{PASSWORD}';
GRANT ALL ON *.* TO 'loadprint'@'localhost';
CREATE USER IF NOT EXISTS 'loadprint'@'{CLIENT}' IDENTIFIED BY '{PASSWORD}';
GRANT ALL ON *.* TO 'loadprint'@'{CLIENT}';
"""
SECONDS, CONNECTIONS = 4, 4


class Server:
    """A server; a restart keeps its data and its pid file's path."""

    def __init__(self, home: Path, program: str | Path = SERVER) -> None:
        self.home, self.pid_file, self.socket = home, home / "pid", home / "mysql.sock"
        self.common: list[str | Path] = [
            program,
            "--no-defaults",
            "--user=root",
            f"--datadir={home}/data",
            f"--lc-messages-dir={SHARE}",
        ]
        self.options: Sequence[str] = ()
        self.process: subprocess.Popen[bytes] | None = None
        self.defaults = home / "client.cnf"

    def initialise(self) -> None:
        """Create its data, account and option file."""
        (self.home / "data").mkdir()
        tables = "".join((SHARE / f"mysql_{name}.sql").read_text(encoding="utf-8") for name in TABLES)
        words = [*self.common, "--bootstrap", "--skip-log-bin", "--max-allowed-packet=8M"]
        statements = f"CREATE DATABASE mysql;\nUSE mysql;\n{tables}"
        subprocess.run(words, input=statements.encode(), check=True, capture_output=True)
        (self.home / "init.sql").write_text(ACCOUNT, encoding="utf-8")
        self.defaults.touch(mode=0o600)
        account = f"[client]\nuser=loadprint\npassword={PASSWORD}\nsocket={self.socket}\n"
        self.defaults.write_text(account, encoding="utf-8")

    def start(self) -> None:
        """Start it and wait for its pid file and its socket."""
        self.pid_file.unlink(missing_ok=True)
        self.socket.unlink(missing_ok=True)
        options = [
            f"--socket={self.socket}",
            f"--pid-file={self.pid_file}",
            f"--init-file={self.home}/init.sql",
            "--skip-networking",
            "--innodb-buffer-pool-size=64M",
            "--innodb-flush-log-at-trx-commit=0",
        ]
        with (self.home / "log").open("ab") as log:
            words = [*self.common, *options, *self.options]
            process = subprocess.Popen(words, stdout=log, stderr=log)
        self.process = process
        made = (self.pid_file, self.socket)
        wait_while(process, "the server", lambda: all(path.exists() for path in made), self.home / "log")

    def kill(self) -> None:
        """End it at once."""
        if self.process:
            self.process.kill()
            self.process.wait()

    @property
    def pid(self) -> int:
        """Its process."""
        assert self.process is not None
        return self.process.pid

    @contextlib.contextmanager
    def running(self, *options: str) -> Iterator[None]:
        """Run it with further options."""
        self.options = options
        self.start()
        try:
            yield
        finally:
            self.kill()


def record(
    server: Server,
    out: Path,
    *options: str,
    process: str | None = None,
    prefix: Sequence[str | Path] = (),
    load_prefix: Sequence[str] = (),
    load: str = "loadprint-load",
    workload: str = "oltp_point_select",
    environment: Mapping[str, str] | None = None,
    during: Callable[[], None] = lambda: None,
) -> Measured:
    """Record a workload; `during` runs in the middle.

    `process` is the server's, `load` the program of the load. The prefixes and the environment are those of
    the recorder and of the load.
    """
    out.mkdir()
    common = [f"--defaults-file={server.defaults}", "--tables=1", "--table-size=100"]
    for verb in ("cleanup", "prepare"):
        printed(LOAD, verb, workload, *common)
    watched = ("--process", process or f"server=@{server.pid_file}", "--process", f"load={load}")
    recorder = ("--interval", "200ms", "--probes", PROBES, *watched)
    with recording(out, *recorder, prefix=prefix, **(environment or {})):
        words = [*load_prefix, str(LOAD), "run", workload, *common, "--out", str(out), "--rand-seed=1"]
        words += [f"--threads={CONNECTIONS}", "--warmup-time=3", f"--time={SECONDS}", "--report-interval=0"]
        words += options
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as running:
            wait_for("the measurement", lambda: in_measure_phase(out) or running.poll() is not None)
            during()
            text, _ = running.communicate(timeout=TIMEOUT_S)
            assert running.returncode == 0, text
    return gather(open_run(out), Store())
