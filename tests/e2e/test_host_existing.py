"""A server that runs already on another host: a wrong password, and kernels without type information."""

from __future__ import annotations

import json
from collections.abc import Container, Iterator
from typing import Any

import pytest
from programs import SUCCEEDED, running, wait_while

from . import campaigns
from .hosts import Bench, Host

ROOT_OF_SERVER = "/srv/servers/debian-unstable-mysql-server-core"
PORT = 3310
PASSWORDS = {"bench": "secret-of-bench", "watcher": "secret-of-watcher", "wrong": "another-secret"}
# $1 the server's root directory, the rest its options: data and socket are on a tmpfs.
SERVE = """
set -e
root=$1; shift
mountpoint -q "$root/media" || mount -t tmpfs -o size=1g tmpfs "$root/media"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
cp /run/init.sql "$root/media/"
chroot "$root" "$@" --initialize-insecure
exec chroot "$root" "$@" --init-file=/media/init.sql
"""


def accounts(load: Host) -> str:
    return (
        "CREATE DATABASE shop;\n"
        f"CREATE USER 'bench'@'{load.address}' IDENTIFIED BY '{PASSWORDS['bench']}';\n"
        f"GRANT ALL ON shop.* TO 'bench'@'{load.address}';\n"
        f"CREATE USER 'watcher'@'%' IDENTIFIED BY '{PASSWORDS['watcher']}';\n"
    )


@pytest.fixture(scope="module")
def server(pair: Bench) -> Iterator[int]:
    """Run a server on db1 that Loadprint does not know, and give its process id."""
    db, load = pair.server, pair.loads[0]
    for host in pair.hosts:
        for name, password in PASSWORDS.items():
            host.shell(f"echo {password} >/srv/{name}; chmod 600 /srv/{name}")
    db.shell(f"cat >/run/init.sql <<'END'\n{accounts(load)}END")
    options = {
        "user": "root", "datadir": "/media/data", "tmpdir": "/media",
        "socket": "/media/mysql.sock", "pid-file": "/media/pid",
        "bind-address": db.address, "port": PORT, "mysqlx": "OFF", "secure-file-priv": "NULL",
        "innodb-buffer-pool-size": "64M", "innodb-use-native-aio": "OFF", "skip-log-bin": "ON",
        "skip-name-resolve": "ON",
    }  # fmt: skip
    words = ["/usr/sbin/mysqld", "--no-defaults", *(f"--{name}={value}" for name, value in options.items())]
    log = pair.place / "server.log"
    with running([*db.inside(), "sh", "-c", SERVE, "sh", ROOT_OF_SERVER, *words], log) as process:
        wait_while(process, "the server", lambda: f"port: {PORT}" in log.read_text(), log)
        yield process.pid


def run(pair: Bench, server: int, statuses: Container[int] = SUCCEEDED, **changes: Any) -> str:
    """Run a campaign on the server; gives its output."""
    known = {
        "host": pair.server.address, "port": PORT, "user": "bench", "database": "shop", "pid": server,
        "password_file": "/srv/bench", "probe_user": "watcher", "probe_password_file": "/srv/watcher",
        "get_server_public_key": True,
    }  # fmt: skip
    settings = ("mysql_source=existing", json.dumps({"server_existing": known | changes}))
    return pair.run(pair.campaign(campaigns.written(pair.place, "existing"), *settings), statuses)


def test_a_wrong_password_is_refused(pair: Bench, server: int) -> None:
    output = run(pair, server, password_file="/srv/wrong", statuses=(2,))
    [line] = [line for line in output.splitlines() if "Access denied" in line]
    assert line.startswith("load1: "), line
    assert line.endswith("correct user and password_file in server_existing; the file is on the load's host")
    assert "2 of 2 runs are not complete" in output.splitlines()[-1], output
    assert pair.left() == {"db1": ["mysqld"], "load1": []}
    for host in pair.hosts:
        assert host.shell("ls /dev/shm; ls -d /run/loadprint 2>/dev/null || true") == ""


def test_no_type_information_costs_its_rows_only(pair: Bench, server: int) -> None:
    for host in pair.hosts:
        host.shell("mount -t tmpfs tmpfs /sys/kernel/btf")
    run(pair, server)
    text = " ".join(campaigns.reasons(pair.runs).split())
    assert "no eBPF /sys/kernel/btf/vmlinux: no such file; eBPF probes need Linux 5.8 or newer" in text
    rows = campaigns.table_rows(pair.runs)
    for key in ("operations", "cpu_server_utilisation", "cpu_load_utilisation"):
        assert all(value > 0 for value in rows[key]), rows[key]
    assert not any(rows.get("rtt_p50", [])), rows["rtt_p50"]
    for key in ("time_latency_per_statement", "cputime_server_all_per_statement"):
        assert not any(rows[key]), rows[key]
