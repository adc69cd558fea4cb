"""Servers from tarballs, repacked from the distribution's MariaDB: what runs, and who may log in."""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

import pytest
from programs import ANY, LOAD, ended, read, wait_for

from . import campaigns
from .machine import look, settled

MARIADB = Path("/usr/sbin/mariadbd")
SHARE = Path("/usr/share/mysql")


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that only root may enter, as root's home: the server's account may not."""
    before = look()
    with TemporaryDirectory(dir="/var/tmp") as name:
        yield Path(name)
    assert settled(before) == []


def repacked(
    tarball: Path,
    top: str,
    program: Path | None = MARIADB,
    share: str = "*",
    more: Mapping[str, Path] = MappingProxyType({}),
) -> Path:
    """Pack the installed MariaDB and `more` files, below the directory `top` of the tarball or at its top."""
    tarball.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(tarball, "w:gz", compresslevel=1) as archive:
        if program is not None:
            archive.add(program, Path(top, "bin", "mariadbd"))
        for name, path in more.items():
            archive.add(path, Path(top, name))
        for result in (*SHARE.glob(f"{share}.sql"), *SHARE.glob("english")):
            archive.add(result, Path(top, "share", result.name))
    return tarball


def changed(place: Path, change: Callable[[bytes], bytes]) -> Path:
    """Copy the installed MariaDB with another content."""
    program = place / "mariadbd"
    program.write_bytes(change(MARIADB.read_bytes()))
    program.chmod(0o755)
    return program


def arguments(place: Path, tarball: Path) -> list[str]:
    return [f"server_tarball={tarball}", f"server_cache_dir={place}/servers"]


def executions(place: Path) -> list[dict[str, Any]]:
    return [read(path) for path in sorted(place.glob("sources/2*/execution.json"))]


def refused(place: Path, tarball: Path) -> str:
    """Run a campaign that cannot get its server; return the line with the reason. Nothing may be kept."""
    output = campaigns.run("sources", place, *arguments(place, tarball), statuses=(2,))
    assert list((place / "servers").iterdir()) == []
    return next(line for line in output.splitlines() if "runnable server" in line)


def test_what_is_no_whole_server_is_refused_with_its_cause(place: Path) -> None:
    whole = repacked(place / "whole.tar.gz", "", program=None)
    assert "no bin/mysqld and no bin/mariadbd in it" in refused(place, whole)
    cut = place / "cut.tar.gz"
    cut.write_bytes(repacked(place / "to-cut.tar.gz", "").read_bytes()[:1_000_000])
    # of gzip or of tar: either may be first
    assert "unexpected e" in (message := refused(place, cut)).lower(), message
    assert not any(guess in message for guess in ("zstd", "bzip2", "xz:")), message


def test_a_library_that_the_host_lacks_is_named(place: Path) -> None:
    needed, lacking = b"libsystemd.so.0\0", b"libloadprnt.so0\0"
    program = changed(place, lambda content: content.replace(needed, lacking))
    tarball = repacked(place / "needy.tar.gz", "", program=program)
    output = campaigns.run("sources", place, *arguments(place, tarball), statuses=(2,))
    assert "mariadbd needs libloadprnt.so0, which localhost does not have" in output.splitlines()[-1]


def test_a_server_that_plants_links_reaches_nothing_of_root(place: Path) -> None:
    """Its processes leave children in other sessions, which wait for the data to be replaced."""
    precious = place / "precious"
    precious.mkdir(mode=0o750)
    plant = f"while :; do [ -e /media/data ] || ln -s {precious} /media/data; sleep 0.01; done"
    hostile = place / "mariadbd"
    hostile.write_text(
        f"#!/bin/sh\nid -u >>/tmp/users\nsetsid sh -c '{plant}' >/dev/null 2>&1 &\n"
        'exec "$(dirname "$0")/genuine" "$@"\n'
    )
    hostile.chmod(0o755)
    tarball = repacked(place / "hostile.tar.gz", "", program=hostile, more={"bin/genuine": MARIADB})
    output = campaigns.run("sources", place, *arguments(place, tarball), statuses=ANY)
    users = Path("/tmp/users")
    assert set(users.read_text().split()) == {"64033"}
    users.unlink()
    assert campaigns.statuses(place)["b1-runs-r1"] == "complete", output
    assert (precious.stat().st_uid, precious.stat().st_mode & 0o777, list(precious.iterdir())) == (
        0,
        0o750,
        [],
    )


def log_in(socket: Path, user: str) -> str:
    """Try to log in without a password, and return the client's message."""
    account = [f"--mysql-socket={socket}", f"--mysql-user={user}"]
    words: list[str | Path] = [LOAD, "run", "oltp_point_select", *account, "--time=1"]
    return ended(words, (2,), env={"HOME": "/nonexistent"})


def test_a_tarball_is_known_by_its_content_and_its_server_admits_nobody_else(place: Path) -> None:
    flat = repacked(place / "a" / "mariadb-linux.tar.gz", "")
    started = campaigns.start("sources", place, *arguments(place, flat))
    wait_for("the load", lambda: campaigns.measuring(place) or started.poll() is not None)
    server = campaigns.running(place, "server")
    assert server is not None, (place / "output").read_text()
    socket = Path("/proc", str(server), "root", "media", "run", "mysql.sock")
    # an unknown name is what an anonymous account would admit
    for user in ("root", "nobody"):
        assert f"Access denied for user '{user}'" in log_in(socket, user)
    started.wait()
    output = (place / "output").read_text()
    # of the side whose server dies: the first error, and where the whole log is
    assert campaigns.statuses(place) == {"b1-runs-r1": "complete", "b1-dies-r1": "failed"}, output
    dead, cause = campaigns.newest(place) / "b1-dies-r1", "unknown variable 'no-such-option=1'"
    reason = read(dead / "run.json")["reason"]
    for part in ("the server died", "s after its start", cause, "server/error.log"):
        assert part in reason
    assert cause in (dead / "server/error.log").read_text()
    assert reason in output

    # Another server in a tarball of the same name: the unfinished execution is not resumed with it, and it is
    # started, not the unpacked one. It cannot make its system tables: that names the cause and ends here.
    program = changed(place, lambda content: content + b"another")
    nested = repacked(place / "b" / flat.name, "mariadb-linux-x86_64", program=program, share="fill*")
    output = campaigns.run("sources", place, *arguments(place, nested), statuses=(2,))
    assert "could not initialise a data directory" in output
    assert "_system_tables" in output
    first, second = (execution["servers"]["main"] for execution in executions(place))
    assert first["sha256"] != second["sha256"]
    assert first["obtained"]["program_sha256"] != second["obtained"]["program_sha256"]
