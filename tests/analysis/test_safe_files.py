"""Directories that another user may own: who can change a path is found out, and root refuses them."""

from __future__ import annotations

import os
import pwd
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from loadprint import options
from loadprint.commands.campaign import execution
from loadprint.commands.campaign.campaign_file import load
from loadprint.commands.campaign.execution import open_execution
from loadprint.commands.ceilings import gather_outputs
from loadprint.commands.fleet import dataset
from loadprint.configuration.document import DocumentError
from loadprint.errors import InputError
from loadprint.importing.imported import Imported, ImportedTable
from loadprint.importing.writer import write_run
from loadprint.plotting import report_plot, style
from loadprint.rendering.report_data import ReportPage
from loadprint.safe_files import Unsafe, replace, require_trusted
from programs import ROOT, printed

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with a file of this user."""
    (tmp_path / "in").mkdir(mode=0o755)
    (tmp_path / "in" / "file").touch(mode=0o644)
    return tmp_path / "in"


def reason(path: Path) -> str:
    """Why a path is not trusted, with the component."""
    with pytest.raises(Unsafe) as caught:
        require_trusted(path)
    return f"{Path(caught.value.filename).name}: {caught.value.strerror}"


def test_a_path_that_only_this_user_can_change_is_trusted(place: Path) -> None:
    require_trusted(place / "file")
    (place / "link").symlink_to("../in/file")
    (place / "absolute").symlink_to(place)
    require_trusted(place / "link")
    require_trusted(place / "absolute" / ".." / "in" / "file")
    with pytest.raises(FileNotFoundError):
        require_trusted(place / "absent")
    (place / "loop").symlink_to("loop")
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        require_trusted(place / "loop")


def test_modes_that_let_others_write_are_not(place: Path) -> None:
    place.chmod(0o757)
    assert reason(place / "file") == "in: can be changed by all users"
    place.chmod(0o1777)
    require_trusted(place / "file")  # others cannot rename it, as in /tmp
    require_trusted(place, shared=True)
    assert reason(place) == "in: can be changed by all users"  # they can make names that are expected later
    (place / "file").chmod(0o666)
    assert reason(place / "file") == "file: can be changed by all users"


@as_root
def test_owners_and_groups_that_are_not(place: Path) -> None:
    place.chmod(0o775)
    require_trusted(place / "file")  # the group root has no member
    os.chown(place, -1, NOBODY)
    assert reason(place / "file") == f"in: can be changed by its group, {NOBODY} (`chmod g-w` prevents it)"
    os.chown(place, NOBODY, 0)
    assert reason(place / "file") == "in: belongs to the user `nobody`, who can change it"
    require_trusted(place / "file", owners={NOBODY})
    os.chown(place, 4_000_000, -1)
    assert reason(place / "file").startswith("in: belongs to the user 4000000, ")
    os.chown(place, 0, 0)
    (place / "link").symlink_to("file")
    os.chown(place / "link", NOBODY, -1, follow_symlinks=False)
    assert reason(place / "link") == "link: belongs to the user `nobody`, who can change it"


ACL_USER_OBJ, ACL_USER, ACL_GROUP_OBJ, ACL_MASK, ACL_OTHER = (1, 2, 4, 16, 32)  # linux/posix_acl.h


@as_root
def test_a_group_is_not_trusted_whoever_its_members_are(place: Path) -> None:
    """An account can join any group later; an access control list sets the bits of the group."""
    account = next(user for user in pwd.getpwall() if user.pw_uid and user.pw_uid == user.pw_gid)
    os.chown(place, account.pw_uid, account.pw_gid)
    require_trusted(place / "file", owners={account.pw_uid})
    place.chmod(0o775)
    with pytest.raises(Unsafe, match=f"can be changed by its group, {account.pw_gid} "):
        require_trusted(place / "file", owners={account.pw_uid})
    os.chown(place, 0, NOBODY)
    place.chmod(0o755)
    rights = [(ACL_USER_OBJ, 7, -1), (ACL_USER, 7, NOBODY), (ACL_GROUP_OBJ, 5, -1)]
    rights += [(ACL_MASK, 7, -1), (ACL_OTHER, 5, -1)]
    packed = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *right) for right in rights)
    os.setxattr(place, "system.posix_acl_access", packed)
    assert reason(place / "file").startswith(f"in: can be changed by its group, {NOBODY} ")


@as_root
@pytest.mark.parametrize(("use", "status"), [("own", 2), ("shared", 0)])
def test_a_playbook_uses_tmp_only_for_what_it_creates_exclusively(
    shared: Path, use: str, status: int
) -> None:
    shared.chmod(0o1777)
    words = [sys.executable, str(ROOT / "analysis/loadprint/safe_files.py")]
    done = subprocess.run([*words, str(shared), use], capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    assert done.stderr == (
        f"{shared}: can be changed by all users; name another directory\n" if status else ""
    )
    subprocess.run([*words, str(shared / "mine"), use], check=True)
    assert (shared / "mine").stat().st_mode & 0o777 == 0o755


def test_a_written_file_replaces_a_link(place: Path) -> None:
    (place / "link").symlink_to("file")
    replace(place / "link", "new")
    assert (place / "file").read_text(encoding="utf-8") == ""
    assert (place / "link").read_text(encoding="utf-8") == "new"
    assert not (place / "link").is_symlink()
    assert sorted(path.name for path in place.iterdir()) == ["file", "link"]


@pytest.fixture
def shared() -> Iterator[Path]:
    """A directory that all users can enter, unlike that of the tests."""
    with tempfile.TemporaryDirectory(prefix="loadprint-test-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@as_root
def test_root_writes_no_output_where_another_user_can_change_it(
    shared: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user could name a file of root by a link."""
    times = [1_700_000_000_000_000_000, 1_700_000_001_000_000_000]
    table = ImportedTable("nic", [0, 1], {"interface": ["eth0"] * 2, "rx_bytes": [1.0, 2.0]})
    imported = Imported("test", ["a file"], times, [table], {"host": "db9"})
    inside = shared / "in"
    inside.mkdir()
    for link in ("report.html", "loadprint-fleet-version", "run"):
        (inside / link).symlink_to(place / "file")
    os.chown(inside, NOBODY, NOBODY)
    outputs: list[Callable[[], object]] = [
        lambda: options.write("text", inside / "report.html"),
        lambda: report_plot.write(ReportPage("", (), ()), inside / "figures"),
        lambda: dataset.mark_version(dataset.open_dataset(str(inside))),
        lambda: write_run(inside / "new", imported),
    ]
    for output in outputs:
        with pytest.raises(InputError, match="/in: belongs to the user `nobody`, who can change it; "):
            output()
    assert (place / "file").read_text(encoding="utf-8") == ""
    assert len([*inside.iterdir()]) == 3
    monkeypatch.setenv("SUDO_UID", str(NOBODY))
    for planted in inside.iterdir():
        planted.unlink()
    for output in outputs:
        output()
    assert (inside / "new" / "manifest.json").is_file()


def _figure(path: Path) -> None:
    with style.styled():
        style.save(style.sheet()[0], path)


OUTPUTS: dict[str, Callable[[Path], object]] = {
    "report.html": lambda path: options.write("text", path),
    "stacks.pb.gz": lambda path: options.write_bytes(b"text", path),
    "figure.svg": _figure,
    "ceilings.json": lambda path: gather_outputs.write({}, path),
}
INSIDE: dict[str, Callable[[Path], object]] = {  # of a directory that `require_trusted` refuses to root
    "loadprint-fleet-version": lambda path: dataset._write(
        dataset.open_dataset(str(path.parent)), str(path), b"2"
    ),
    "execution.json": lambda path: execution.write(path.parent, {}),
}


@as_root
@pytest.mark.parametrize("name", [*OUTPUTS, *INSIDE])
def test_no_link_of_another_user_is_followed(shared: Path, place: Path, name: str) -> None:
    """In a directory such as /tmp; also under the names that a temporary file could have."""
    output = (OUTPUTS | INSIDE)[name]
    shared.chmod(0o1777)
    planted = [name, f".{name}.tmp", f"{name}.new", f".{name}.new", f"{name}.tmp"]
    for link in planted:
        (shared / link).symlink_to(place / "file")
        os.chown(shared / link, NOBODY, NOBODY, follow_symlinks=False)
    output(shared / name)
    assert (place / "file").read_bytes() == b""
    assert not (shared / name).is_symlink()
    assert (shared / name).stat().st_size > 0
    assert sorted(path.name for path in shared.iterdir()) == sorted(planted)


@as_root
@pytest.mark.parametrize("name", OUTPUTS)
def test_a_pipe_of_another_user_is_refused(shared: Path, name: str) -> None:
    """A write would wait for a reader."""
    shared.chmod(0o1777)
    os.mkfifo(shared / name)
    os.chown(shared / name, NOBODY, NOBODY)
    with pytest.raises(InputError, match="is not a file, and belongs to the user `nobody`"):
        OUTPUTS[name](shared / name)


def test_a_pipe_of_this_user_is_written_to(place: Path) -> None:
    os.mkfifo(place / "pipe")
    reader = os.open(place / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    options.write("text", place / "pipe")
    assert os.read(reader, 100) == b"text"
    os.close(reader)
    options.write("text", Path("/dev/null"))
    assert Path("/dev/null").is_char_device()


def test_a_private_output_stays_private(place: Path) -> None:
    (place / "file").chmod(0o600)
    options.write("text", place / "file")
    options.write("text", place / "new")
    assert [(place / name).stat().st_mode & 0o777 for name in ("file", "new")] == [0o600, 0o644]


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_output_is_written_to_links_of_the_system(place: Path, name: str) -> None:
    """To a file that the shell opened, and to a pipe."""
    words = f"from pathlib import Path; from loadprint import options; options.write('text', Path('{name}'))"
    with (place / "file").open("wb") as opened:
        subprocess.run([sys.executable, "-c", words], stdout=opened, check=True)
    assert (place / "file").read_bytes() == b"text"
    assert Path("/dev/stdout").is_symlink()
    assert printed(sys.executable, "-c", words) == "text"


@as_root
def test_a_planted_execution_is_not_resumed(shared: Path) -> None:
    campaign = load(ROOT / "ansible/campaigns/quick.yml")
    opened = open_execution(campaign, "a" * 64, shared / "runs")
    assert opened.directory is not None
    os.chown(shared / "runs" / campaign.name, NOBODY, NOBODY)
    with pytest.raises(
        DocumentError, match="belongs to the user `nobody`, who can change it; name another directory"
    ):
        open_execution(campaign, "a" * 64, shared / "runs")
