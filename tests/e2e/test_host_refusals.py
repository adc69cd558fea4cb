"""Hosts that cannot be used are refused in one line before anything starts; teardown removes all files."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from . import campaigns, hosts_campaign
from .hosts import Bench, bench, run

OTHER_FILES = "find / -xdev -path /var/lib/loadprint -prune -o -type f -print | sort"
FILES = "bin/loadprint-load servers/debian/usr/sbin/mysqld tools/fio/fio executions/2-a/base-oltp/ibdata1"


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with bench(tmp_path_factory.mktemp("refusals")) as made:
        yield made


def failed(pair: Bench, **variables: object) -> list[str]:
    """Start a campaign that must fail, and give its lines; no host has a process or a supervisor of it."""
    settings = [json.dumps(variables)] if variables else []
    done = pair.run(pair.campaign(hosts_campaign.written(pair), *settings))
    assert done.returncode == (4 if "unreachable" in done.stdout else 2), done.stdout
    assert "Traceback" not in done.stdout, done.stdout
    campaigns.wait_for("hosts without processes", lambda: not any(hosts_campaign.left_on(pair).values()), 30)
    for host in pair.hosts:
        assert host.shell("ls /dev/shm") == ""
    return done.stdout.splitlines()


def refused(pair: Bench, **variables: object) -> list[str]:
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


def test_teardown_removes_everything_of_loadprint_and_nothing_else(pair: Bench) -> None:
    load = pair.loads[0]
    load.shell("umount /var/lib/loadprint")  # a directory there, a mount point on the server's host
    for host in pair.hosts:
        host.shell(f"cd /var/lib/loadprint; for f in {FILES}; do mkdir -p $(dirname $f); echo x >$f; done")
        host.shell("mkdir -p /var/lib/loadprint2 && echo kept >/var/lib/loadprint2/file")
    before = {host.name: host.shell(OTHER_FILES) for host in pair.hosts}
    done = pair.run(pair.playbook("teardown", pair.inventory, teardown_all=True))
    assert done.returncode == 0, done.stdout
    assert pair.server.shell("ls -A /var/lib/loadprint") == ""
    assert load.shell("ls /var/lib | grep loadprint").split() == ["loadprint2"]
    assert {host.name: host.shell(OTHER_FILES) for host in pair.hosts} == before
    for host in pair.hosts:
        assert f"{host.name}: ended 0 supervisors" in done.stdout, done.stdout
    assert "in /var/lib/loadprint: nothing" in done.stdout, done.stdout
