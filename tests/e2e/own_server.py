"""Starts a server from an unpacked tarball, as an administrator has one: Loadprint did not deploy it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ports import free_port

from . import campaigns


@dataclass(frozen=True)
class OwnServer:
    """A running server: its process, its addresses, its data."""

    pid: int
    port: int
    socket: Path
    log: Path


@contextmanager
def serving(home: Path, unpacked: Path, statements: Sequence[str]) -> Iterator[OwnServer]:
    """Run the server `unpacked`/bin/mysqld below `home`, which runs `statements` when it starts."""
    home.mkdir(parents=True)
    common: list[str | Path] = [
        unpacked / "bin/mysqld",
        "--no-defaults",
        "--user=root",
        f"--basedir={unpacked}",
        f"--datadir={home}/data",
    ]
    subprocess.run([*common, "--initialize-insecure"], capture_output=True, check=True)
    (home / "init.sql").write_text("".join(f"{statement};\n" for statement in statements))
    port, log, socket = free_port(), home / "error.log", home / "mysql.sock"
    options = {
        "bind-address": "127.0.0.1",
        "port": port,
        "socket": socket,
        "pid-file": home / "pid",
        "secure-file-priv": home,
        "init-file": home / "init.sql",
        "innodb-buffer-pool-size": "64M",
        "loose-mysqlx": "OFF",
        "loose-auto-generate-certs": "OFF",
    }
    with log.open("w") as output:
        server = subprocess.Popen(
            [*common, *(f"--{name}={value}" for name, value in options.items())],
            stdout=output,
            stderr=output,
            env={"PATH": os.environ["PATH"]},
        )
    try:
        campaigns.wait_for(
            "the server", lambda: "ready for connections" in log.read_text() or server.poll() is not None
        )
        assert server.poll() is None, log.read_text()
        yield OwnServer(server.pid, port, socket, log)
    finally:
        server.kill()
        server.wait()
