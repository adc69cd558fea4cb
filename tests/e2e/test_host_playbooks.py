"""Playbooks other than characterize.yml on hosts over SSH: A/B experiments, ceilings, groups of instances."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from programs import LOAD, printed, read, running, wait_for

from .hosts import Bench, Host, bench
from .mirror import packages

HOME = "/var/lib/loadprint/production"  # of the server that Loadprint did not deploy
SERVER = f"""set -e
home={HOME} root=/srv/servers/debian-unstable-mysql-server-core
install -d -o 64033 -g 64033 -m 755 $home
mountpoint -q $root/media || mount --bind $home $root/media
cat >$home/init.sql <<'SQL'
CREATE USER probe@localhost IDENTIFIED BY 'secret';
GRANT ALL ON *.* TO probe@localhost;
CREATE DATABASE sbtest;
SQL
printf '[client]\nuser=probe\npassword=secret\nsocket=%s\n' $home/mysql.sock >$home/probe.cnf
chmod 600 $home/probe.cnf
mysqld="chroot --userspec=64033:64033 $root /usr/sbin/mysqld --no-defaults --datadir=/media/data
    --tmpdir=/media --innodb-buffer-pool-size=32M"
$mysqld --initialize-insecure
setsid --fork $mysqld --socket=/media/mysql.sock --pid-file=/media/mysqld.pid --skip-networking --mysqlx=OFF \
    --skip-log-bin --init-file=/media/init.sql --secure-file-priv=NULL </dev/null >/dev/null 2>$home/error.log
"""
SWITCH = f"{HOME}/applied"
LONG_S = 600.0  # a window that the test always ends before its time


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with bench(tmp_path_factory.mktemp("playbooks"), loads=3) as made:
        yield made


@contextmanager
def production(host: Host) -> Iterator[None]:
    """Run a server on the host, and lookups on it at a fixed rate."""
    home = host.data / "production"
    host.shell(SERVER)
    wait_for("the server", (home / "mysqld.pid").exists)
    account = home / "client.cnf"  # for a client on the control node, which sees the host's files elsewhere
    account.write_text((home / "probe.cnf").read_text().replace(HOME, str(home)))
    account.chmod(0o600)
    client = ["select_random_points", f"--defaults-file={account}", "--tables=1", "--table-size=100"]
    printed(LOAD, "prepare", *client)
    try:
        with running([LOAD, "run", *client, "--threads=1", "--time=0", "--rate=50"]):
            yield
    finally:
        host.shell(f"kill $(cat {HOME}/mysqld.pid)")
        wait_for("the server's end", lambda: not (home / "mysqld.pid").exists())
        host.shell(f"rm -r {HOME}/*")


def experiment(four: Bench, window: float) -> Path:
    """Write an experiment whose treatment is a file on the server's host."""
    document = {
        "name": "hosts",
        "treatment": {
            "apply": f"touch {SWITCH}",
            "revert": f"rm -f {SWITCH}",
            "verify_applied": f"test -e {SWITCH}",
            "verify_reverted": f"test ! -e {SWITCH}",
        },
        "schedule": {"order": "TB", "blocks": 1, "window": window, "settle": 0.1},
        "server": {"process": f"@{HOME}/mysqld.pid", "defaults_file": f"{HOME}/probe.cnf"},
        "guards": {"threads_running": 1000, "commands": {"one": {"command": "echo 1", "max": 1}}},
        "recorder": {"interval": "200ms"},
    }
    path = four.place / "experiment.yml"
    path.write_text(yaml.safe_dump(document))
    return path


def test_an_experiment_runs_with_the_python_of_the_servers_host(four: Bench) -> None:
    """Its programs are copied; the host has no package of Python."""
    host, out = four.server, four.place / "experiments/run"
    settings = {"ab_experiment": str(experiment(four, 2.0)), "ab_out": str(out), "ab_wait_s": 5}
    with production(host):
        output = four.run(four.playbook("ab", four.inventory, **settings))
        assert not (host.data / "production/applied").exists(), output
    assert "queries per CPU-second" in output, output
    run = read(out / "run.json")
    assert run["status"] == "complete", run
    last = json.loads((out / "load/switches.jsonl").read_text().splitlines()[-1])
    assert (last["what"], last["exit"]) == ("verify_reverted", 0)
    assert sorted(path.name for path in host.data.iterdir()) == ["ab", "bin", "production"]
    assert not list((host.data / "ab").iterdir())


def test_a_killed_playbook_leaves_a_reverted_server_and_the_recording(four: Bench) -> None:
    host = four.server
    kept, applied = host.data / "ab/killed/killed", host.data / "production/applied"
    settings = {"ab_experiment": str(experiment(four, LONG_S)), "ab_out": str(four.place / "killed")}
    with production(host):
        process = four.start(four.playbook("ab", four.inventory, **settings, ab_lease_s=20, ab_wait_s=2))
        wait_for("the treatment", lambda: applied.exists() or process.poll() is not None)
        assert applied.exists(), four.output()
        # its workers have separate sessions
        workers = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        for pid in (process.pid, *map(int, workers)):
            os.kill(pid, signal.SIGKILL)
        process.wait()
        run = wait_for(
            "the end",
            lambda: (failed := read(kept / "run.json"))["status"] == "failed" and failed,
        )
        assert run["reason"].startswith("the caller is gone"), run
        assert run["reason"].endswith("reverted and verified"), run
        assert not applied.exists()
        applied.touch()  # as if all processes had been killed at once
        there = "/var/lib/loadprint/ab/killed"
        host.shell(f"PYTHONPATH={there}/program python3 -P -m loadprint ab revert {there}/killed")
        assert not applied.exists()


def test_ceilings_are_those_of_the_network_between_server_and_load(four: Bench) -> None:
    with packages(*four.hosts[:2]):
        output = four.run(
            four.playbook(
                "ceilings",
                four.inventory,
                ceilings_runs_dir=str(four.place / "ceilings"),
                ceilings_parts=["network", "switches"],
                ceilings_seconds=1,
                ceilings_repeats=1,
            )
        )
    document = read(four.place / "ceilings/latest/ceilings.json")
    measured = {entry["id"]: entry for entry in document["ceilings"]}
    assert {"receive_bandwidth", "send_bandwidth", "round_trips"} <= set(measured), output
    assert measured["send_bandwidth"]["quantity"] == "nic.eth0.tx_bytes"
    assert {entry["host"] for entry in measured.values()} == {"db1"}
    assert not any(four.left().values())


def test_groups_of_instances_with_their_loads_are_measured_at_the_same_time(four: Bench) -> None:
    hosts = four.hosts
    pairs = {"baseline": hosts[:2], "candidate": hosts[2:]}
    groups = {group: {server: {"qualify_load": load.name}} for group, (server, load) in pairs.items()}
    inventory = four.listed({**groups, "loads": {load: {} for _, load in pairs.values()}})
    specification = four.place / "specification.yml"
    specification.write_text(
        "about: instances\ninstances_by: execution\nrows: {operations: 3 %}\nconcurrencies: 1\n"
    )
    output = four.run(
        four.playbook(
            "qualify",
            inventory,
            campaign_file=str(four.written()),
            qualify_parallel=2,
            qualify_runs_dir=str(four.place / "instances"),
            qualify_spec=str(specification),
        ),
        statuses=(2,),
    )
    results = {name: measured(four.place, name) for name in (hosts[0].name, hosts[2].name)}
    assert "one after the other: db1 with load2" in output or "load2 with db1" in output, output
    for (server, load), run in zip(pairs.values(), results.values(), strict=True):
        assert run["status"] == "complete", run
        assert {role: document["host"] for role, document in run["roles"].items()} == {
            "server": server.name,
            "load": load.name,
        }
    first, second = results.values()
    assert first["started_realtime_ns"] < second["ended_realtime_ns"]
    assert second["started_realtime_ns"] < first["ended_realtime_ns"]
    report = read(four.place / "instances/qualify.json")
    assert report["status"] == 2, "one repeat of each gives no spread"
    assert not any(four.left().values())


def measured(place: Path, name: str) -> dict[str, Any]:
    """Read run.json of the only run of an instance."""
    [run] = place.glob(f"instances/{name}/hosts/2*/b1-near-r1/run.json")
    return read(run)
