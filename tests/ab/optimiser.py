r"""Runs the experiments of the Dynimize study on a private server, with a stand-in for its optimiser.

    LOGS='--general-log-file=/dev/shm/a --slow-query-log-file=/dev/shm/b --long-query-time=0'
    LOADPRINT_TEST_SERVER_OPTIONS="$LOGS --innodb-buffer-pool-size=96M --innodb-flush-method=O_DIRECT" \
        tests/with-server env PYTHONPATH=tests .venv/bin/python -m ab.optimiser runs/ab

The optimiser of the study is a commercial program. The stand-in also makes every query cheaper at run time:
it turns the general and the slow query log off, which are written to memory here. The server has CPU 0, the
load CPU 1; in the third experiment the server reads at most 400 times a second (its control group, blkio), as
on a volume with an IOPS limit. Half an hour.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml
from programs import COLLECT, LOAD, running

from .bench import Server, ab

DATABASES = {"optimiser": 10_000, "optimiser_large": 2_000_000}  # rows: in memory, and not
READS_PER_S = 400
PINNED = ["taskset", "-c", "1"]  # the load
BLKIO = Path("/sys/fs/cgroup/blkio")


def load(server: Server, database: str, verb: str, *options: str) -> list[str]:
    """Return the command of the load."""
    account = [f"--defaults-file={server.defaults}", f"--mysql-db={database}"]
    table = ["--tables=1", f"--table-size={DATABASES[database]}"]
    return [str(LOAD), verb, "oltp_point_select", *account, *table, *options]


def maximum(server: Server) -> int:
    """Return the operations per second of the saturated server."""
    words = load(server, "optimiser", "run", "--threads=8", "--time=10", "--format=json")
    done = subprocess.run([*PINNED, *words], check=True, capture_output=True, text=True)
    result = json.loads(done.stdout)
    return int(result["events"] / result["seconds"])


def switch(server: Server, logs: str) -> str:
    """Return the command that turns both logs ON or OFF."""
    return server.sql(f"SET GLOBAL general_log = {logs}, GLOBAL slow_query_log = {logs}")


def experiment(server: Server, name: str, title: str) -> dict[str, object]:
    """Return the experiment: the logs off (treatment) and on."""
    logs = server.sql("SELECT @@global.general_log + @@global.slow_query_log")
    return {
        "name": name,
        "title": title,
        "initial": "treatment",
        "treatment": {
            "apply": switch(server, "OFF"),
            "revert": switch(server, "ON"),
            "verify_applied": f"test $({logs}) = 0",
            "verify_reverted": f"test $({logs}) = 2",
            "timeout": "10s",
        },
        "schedule": {"order": "ABBA", "blocks": 9, "window": "12s", "settle": "2s"},
        "server": {"process": f"@{server.pid_file}", "defaults_file": str(server.defaults), "cpus": "0"},
        "guards": {"threads_running": 100, "queries_per_second_min": 10},
    }


@contextlib.contextmanager
def read_limit(server: Server, data: Path) -> Iterator[None]:
    """Limit the server's reads per second while the block runs."""
    device = os.stat(data).st_dev
    group = BLKIO / f"loadprint-{os.getpid()}"
    group.mkdir()
    limit = f"{os.major(device)}:{os.minor(device)} {READS_PER_S}\n"
    (group / "blkio.throttle.read_iops_device").write_text(limit)
    (group / "cgroup.procs").write_text(str(server.pid))
    try:
        yield
    finally:
        (BLKIO / "cgroup.procs").write_text(str(server.pid))
        group.rmdir()


def run(server: Server, out: Path, name: str, title: str, words: list[str]) -> None:
    """Run one experiment under a load."""
    file = out / f"{name}.yml"
    file.write_text(yaml.safe_dump(experiment(server, name, title), sort_keys=False), encoding="utf-8")
    with running([*PINNED, *words]):
        done = subprocess.run(ab("run", file, "--out", out / name, "--collector", COLLECT), check=False)
    if done.returncode > 1:
        sys.exit(done.returncode)


def main() -> None:
    """Run all three."""
    out = Path(sys.argv[1]).resolve()
    out.mkdir(parents=True, exist_ok=True)
    server = Server(dict(os.environ))
    subprocess.run(["taskset", "-apc", "0", str(server.pid)], check=True, stdout=subprocess.DEVNULL)
    for statement in (switch(server, "OFF"), *(server.sql(f"CREATE DATABASE {name}") for name in DATABASES)):
        subprocess.run(statement, shell=True, check=True)
    for database in DATABASES:
        subprocess.run(load(server, database, "prepare"), check=True, stdout=subprocess.DEVNULL)
    rate = maximum(server) // 2
    fixed = load(server, "optimiser", "run", "--threads=8", "--time=0", f"--rate={rate}")
    closed = load(server, "optimiser", "run", "--threads=8", "--time=0")
    large = load(server, "optimiser_large", "run", "--threads=8", "--time=0")
    run(server, out, "optimiser-fixed-rate", f"{rate} point selects a second, half of the maximum", fixed)
    run(server, out, "optimiser-saturated", "point selects of eight connections in a closed loop", closed)
    with read_limit(server, server.pid_file):
        title = f"a data set above the buffer pool, {READS_PER_S} reads a second"
        run(server, out, "optimiser-disk-limited", title, large)


if __name__ == "__main__":
    main()
