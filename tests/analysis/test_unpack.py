"""Archives of hosts: what a host under the control of another user can put into them is refused."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from loadprint import unpack

NAMES = ("server/", "load/", "run.json")


def entry(name: str, content: bytes = b"x", **changes: object) -> tuple[tarfile.TarInfo, bytes]:
    """One entry of an archive, a regular file unless `changes` set another type."""
    member = tarfile.TarInfo(name)
    member.size = len(content) if "type" not in changes else 0
    for key, value in changes.items():
        setattr(member, key, value)
    return member, content


def packed(place: Path, *entries: tuple[tarfile.TarInfo, bytes]) -> Path:
    """An archive with these entries."""
    path = place / "run.tar"
    with tarfile.open(path, "w:", format=tarfile.GNU_FORMAT) as tar:
        for member, content in entries:
            tar.addfile(member, io.BytesIO(content))
    return path


def unpacked(archive: Path, *names: str) -> subprocess.CompletedProcess[str]:
    """What the program does that the playbooks call, with the run directory `run`."""
    places = [str(archive), str(archive.with_name("run"))]
    command = [sys.executable, "-P", "-m", "loadprint.unpack", *places, *names]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_the_files_of_a_host_are_added_to_its_run(tmp_path: Path) -> None:
    made = tmp_path / "made"
    (made / "server").mkdir(parents=True)
    (made / "server" / "cpu.parquet").write_bytes(b"PAR1")
    (made / "server" / "empty.jsonl").touch()
    archive = tmp_path / "run.tar"
    tar = ["tar", "--create", "--dereference", "--directory", str(made), "--file", str(archive), "."]
    subprocess.run(tar, check=True)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text("{}")

    assert unpacked(archive, "server/").returncode == 0
    files = {
        path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if made not in path.parents
    }
    assert files == {
        "made", "run", "run/run.json", "run/server", "run/server/cpu.parquet", "run/server/empty.jsonl"
    }  # fmt: skip
    assert (tmp_path / "run/server/cpu.parquet").read_bytes() == b"PAR1"

    # Outputs without directories, as of ceilings.
    assert unpacked(packed(tmp_path, entry("./fio.1"), entry("fio.2"))).returncode == 0
    assert (tmp_path / "run" / "fio.2").read_bytes() == b"x"


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        # The attack: a link in place of a directory, and then a file through it.
        (
            [entry("load", type=tarfile.SYMTYPE, linkname="..")],
            "contains `load`, which is not a regular file",
        ),
        (
            [entry("server/x", type=tarfile.SYMTYPE, linkname="/etc/passwd"), entry("server/x")],
            "contains `server/x`, which is not a regular file",
        ),
        ([entry("server/a"), entry("server/b", type=tarfile.LNKTYPE, linkname="/etc/shadow")], "`server/b`"),
        ([entry("server/journal", type=tarfile.FIFOTYPE)], "`server/journal`, which is not a regular file"),
        ([entry("server/null", type=tarfile.CHRTYPE)], "`server/null`, which is not a regular file"),
        ([entry("run.json", type=tarfile.GNUTYPE_SPARSE)], "not a regular file"),
        ([entry("../evil")], "`../evil`, which is not one of its files"),
        ([entry("load/../../evil")], "`load/../../evil`, which is not one"),
        ([entry("/tmp/evil")], "`/tmp/evil`, which is not one"),
        ([entry("load/.hidden")], "`load/.hidden`, which is not one"),
        ([entry("load/line\nbreak")], "which is not one"),
        ([entry("load/deeper/file")], "`load/deeper/file`, which is not one"),
        ([entry("load")], "`load`, which is not one of its files"),
        ([entry("other/file")], "`other/file`, which is not one"),
        ([entry("manifest.json")], "`manifest.json`, which is not one"),
        ([entry("load/deeper", type=tarfile.DIRTYPE)], "`load/deeper`, which is not a regular file"),
        ([entry("load/a"), entry("./load/a")], "`load/a` twice"),
        ([entry(f"load/{number}") for number in range(10_001)], "more than 10000 entries"),
    ],
)
def test_everything_else_is_refused_and_the_run_stays(
    tmp_path: Path, entries: list[tuple[tarfile.TarInfo, bytes]], reason: str
) -> None:
    archive = packed(tmp_path, *entries)
    done = unpacked(archive, *NAMES)
    assert done.returncode == 2
    assert f"the archive {archive} contains " in done.stderr
    assert reason in done.stderr.replace("\\n", "\n")
    assert sorted(os.listdir(tmp_path)) == ["run.tar"]


def test_a_file_that_the_run_has_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text("{}")
    done = unpacked(packed(tmp_path, entry("load/a"), entry("run.json")), *NAMES)
    assert done.returncode == 2
    assert "`run.json`, which is there already" in done.stderr
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["run.json"]
    # A link at the place of the directory is another's.
    (tmp_path / "run" / "load").symlink_to(tmp_path / "elsewhere")
    assert "`load`, which is there already" in unpacked(packed(tmp_path, entry("load/a")), *NAMES).stderr


def test_a_header_without_end_takes_no_memory(tmp_path: Path) -> None:
    """A header says that it has 12 GiB; the file has holes."""
    member = tarfile.TarInfo("long")
    member.type, member.size = tarfile.XHDTYPE, 12 << 30
    archive = tmp_path / "run.tar"
    with archive.open("wb") as file:
        file.write(member.tobuf(tarfile.GNU_FORMAT))
        file.truncate(13 << 30)
    assert "has headers of more than 2 GiB" in unpacked(archive, *NAMES).stderr
    with archive.open("ab") as file:
        file.truncate(unpack.MAX_BYTES + 1)
    assert "contains more than 16 GiB" in unpacked(archive, *NAMES).stderr


def test_an_archive_that_was_cut_is_refused(tmp_path: Path) -> None:
    archive = packed(tmp_path, entry("load/a", b"y" * 100_000))
    os.truncate(archive, 50_000)
    assert "cannot be unpacked: unexpected end of data" in unpacked(archive, *NAMES).stderr
    archive.write_bytes(b"no archive")
    done = unpacked(archive, *NAMES)
    assert done.returncode == 2
    assert "\n" not in done.stderr.rstrip("\n")
