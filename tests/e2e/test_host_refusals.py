"""Hosts that cannot be used are refused in one line before anything starts; teardown removes all files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from programs import ROOT, finished, read, wait_for
from programs import printed as run

from .hosts import Bench

OTHER_FILES = "find / -xdev -path /var/lib/loadprint -prune -o -type f -print | sort"
FILES = "bin/loadprint-load servers/debian/usr/sbin/mysqld tools/fio/fio executions/2-a/base-oltp/ibdata1"


def failed(pair: Bench, inventory: Path | None = None, **variables: Any) -> list[str]:
    """Start a campaign that must fail, and give its lines; no host has a process or a supervisor of it."""
    settings = json.dumps({"campaign_new": True, **variables})
    done = finished(pair.campaign(pair.written(), settings, inventory=inventory), env=pair.environment())
    assert done.returncode == (4 if "unreachable" in done.stdout else 2), done.stdout
    assert "Traceback" not in done.stdout, done.stdout
    wait_for("empty hosts", lambda: not pair.has_left(), 30)
    return done.stdout.splitlines()


def refused(pair: Bench, **variables: Any) -> list[str]:
    """Start a campaign that must be refused before a file is copied, and give its lines."""
    lines = failed(pair, **variables)
    for host in pair.hosts:
        assert host.shell("ls /var/lib/loadprint") == ""
    return lines


def test_a_wrong_ssh_key_is_refused(pair: Bench) -> None:
    other = pair.place / "other_key"
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", other)
    lines = refused(pair, ansible_ssh_private_key_file=str(other))
    for host in ("db1", "load1"):
        [line] = [line for line in lines if line.startswith(f"{host}: ")]
        assert "Permission denied (publickey" in line, lines


def test_a_user_who_may_not_become_root_is_refused(pair: Bench) -> None:
    pair.loads[0].shell("echo 'admin ALL=(ALL) ALL' >/etc/sudoers.d/admin")
    try:
        lines = refused(pair)
    finally:
        pair.loads[0].shell("echo 'admin ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/admin")
    [line] = [line for line in lines if "Missing sudo password" in line]
    assert line.startswith("load1: "), lines
    assert "--ask-become-pass" in line, lines


def test_a_user_without_root_is_refused(pair: Bench) -> None:
    lines = refused(pair, ansible_become=False)
    found = [line.partition(": ")[0] for line in lines if "lacks root (run as root" in line]
    assert sorted(found) == ["db1", "load1"], lines


def test_an_architecture_without_programs_is_refused(pair: Bench) -> None:
    load = pair.loads[0]
    usual = load.machine
    load.kill()
    load.machine = "i686"
    load.start()
    try:
        lines = refused(pair)
    finally:
        load.kill()
        load.machine = usual
        load.start()
    [line] = [line for line in lines if " lacks " in line]
    assert "load1 lacks programs for i686 (./setup --targets" in line, line


def test_a_port_that_is_taken_is_named_with_its_process(pair: Bench) -> None:
    listening = "import socket, time; kept = socket.create_server(('', 33306)); time.sleep(900)"
    other = pair.server.shell(f'setsid python3 -c "{listening}" >/dev/null 2>&1 & echo $!')
    try:
        lines = failed(pair)
    finally:
        pair.server.shell(f"kill {other}")
    [line] = [line for line in lines if "port 33306" in line]
    assert line.startswith("db1: "), line
    assert "port 33306 of db1 is taken" in line, line
    assert '"python3",pid=' in line, line
    assert "choose another with -e server_port=NUMBER" in line, line


def test_a_host_that_another_execution_measures_is_refused(pair: Bench) -> None:
    shutil.copy(ROOT / "target/release/loadprint-supervise", pair.server.data)
    program, other = "/var/lib/loadprint/loadprint-supervise", "--state /run/loadprint/other"
    pair.server.shell(f"{program} start {other} --lease 600s")
    try:
        done = finished(pair.campaign(pair.written()), env=pair.environment())
    finally:
        pair.server.shell(f"{program} end {other}; rm -r {program} /run/loadprint")
    [line] = [line for line in done.stdout.splitlines() if "is measuring" in line]
    assert line.startswith("db1: "), line
    assert "the execution other is measuring on db1" in line, line
    wait_for("empty hosts", lambda: not pair.has_left(), 30)


def test_a_target_that_lacks_programs_is_refused_in_one_line(pair: Bench) -> None:
    pair.loads[0].shell("mv /usr/bin/lscpu /usr/bin/taskset /srv/")
    pair.server.shell("mv /usr/bin/ss /bin/ss.away; rm -f /usr/sbin/debootstrap")
    try:
        lines = failed(pair)
    finally:
        pair.loads[0].shell("mv /srv/lscpu /srv/taskset /usr/bin/")
        pair.server.shell("mv /bin/ss.away /usr/bin/ss")
    by_host = {line.split(":")[0]: line for line in lines if " lacks " in line}
    assert by_host.keys() == {"db1", "load1"}, lines
    assert "lscpu, taskset" in by_host["load1"]
    assert "sudo apt-get install util-linux" in by_host["load1"]
    assert "sudo apt-get install iproute2" in by_host["db1"]


def test_a_target_on_which_the_programs_do_not_run_is_refused_with_what_helps(pair: Bench) -> None:
    alone = pair.place / "release"  # without portable programs
    alone.symlink_to(ROOT / "target/release")
    move = "cd /usr/lib/*-linux-gnu; mv"
    pair.loads[0].shell(f"{move} libssl.so.3 libssl.away")
    try:
        lines = failed(pair, loadprint_bin_dir=str(alone))
    finally:
        pair.loads[0].shell(f"{move} libssl.away libssl.so.3; rm -r /var/lib/loadprint/bin")
        pair.server.shell("rm -r /var/lib/loadprint/bin")
    [line] = [line for line in lines if "libssl.so.3" in line]
    assert line.startswith("load1: "), line
    assert "./setup --targets on this machine builds programs that run on other" in line, line


@pytest.mark.parametrize(("group", "hosts"), [("server", "db1, db2"), ("load", "load1, load2")])
def test_an_inventory_that_cannot_be_measured_is_refused(pair: Bench, group: str, hosts: str) -> None:
    path = pair.inventory
    document = read(path)
    document["all"]["children"][group]["hosts"][hosts.partition(", ")[2]] = {}
    other = path.with_name("other.yml")
    other.write_text(json.dumps(document))
    assert any(f"has 2 hosts ({hosts})" in line for line in failed(pair, inventory=other))


def test_an_unknown_host_key_is_refused(pair: Bench) -> None:
    known = pair.place / "known_hosts"
    kept = known.read_text()
    known.write_text("")
    (pair.place / "cp").rename(pair.place / "cp.away")  # else a shared connection, which is verified, is used
    try:
        lines = failed(pair)
    finally:
        (pair.place / "cp.away").rename(pair.place / "cp")
        known.write_text(kept)
    assert any("Host key verification failed" in line for line in lines), lines


def test_teardown_removes_everything_of_loadprint_and_nothing_else(pair: Bench) -> None:
    load = pair.loads[0]
    load.shell("umount /var/lib/loadprint")  # a directory there, a mount point on the server's host
    for host in pair.hosts:
        host.shell(f"cd /var/lib/loadprint; for f in {FILES}; do mkdir -p $(dirname $f); echo x >$f; done")
        host.shell("mkdir -p /var/lib/loadprint2 && echo kept >/var/lib/loadprint2/file")
    before = {host.name: host.shell(OTHER_FILES) for host in pair.hosts}
    output = pair.run(pair.playbook("teardown", pair.inventory, teardown_all=True))
    assert pair.server.shell("ls -A /var/lib/loadprint") == ""
    assert load.shell("ls /var/lib | grep loadprint").split() == ["loadprint2"]
    assert {host.name: host.shell(OTHER_FILES) for host in pair.hosts} == before
    for host in pair.hosts:
        assert f"{host.name}: ended 0 supervisors" in output, output
    assert "in /var/lib/loadprint: nothing" in output, output
    elsewhere = pair.listed(
        {"server": {pair.server: {}}, "load": {load: {"target_dir": "/var/lib/loadprint2"}}}
    )
    load.shell("mkdir -p /srv/20260101T000000Z-0123abcd/data /srv/postgres/data")
    command = pair.playbook("teardown", elsewhere, teardown_all=True, server_data_root="/srv")
    assert "in /var/lib/loadprint2: nothing" in pair.run(command)
    assert load.shell("ls -d /srv/*/data").split() == ["/srv/postgres/data"]
    assert load.shell("ls /var/lib | grep loadprint || :") == ""
    assert pair.server.shell("cat /var/lib/loadprint2/file") == "kept\n"
