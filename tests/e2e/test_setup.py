"""./setup in a checkout whose files were copied from another one, with its environment."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from programs import ROOT, ended, printed

IMPORTED = "import loadprint; print(loadprint.__file__)"


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A stand-in for the compiler: these tests are about .venv alone."""
    folder = tmp_path / "programs"
    folder.mkdir()
    (folder / "cargo").write_text("#!/bin/sh\n")
    (folder / "cargo").chmod(0o755)
    return folder


def checkout(place: Path) -> Path:
    """A checkout with what ./setup reads; of the 70 packages only the one that installs ours."""
    shutil.copytree(ROOT / "analysis", place / "analysis", ignore=shutil.ignore_patterns("*.egg-info"))
    shutil.copy(ROOT / "setup", place)
    (place / "target/release").mkdir(parents=True)
    for lock in (place / "analysis").glob("requirements*.lock"):
        needed = [line for line in lock.read_text().splitlines() if line.startswith("setuptools==")]
        lock.write_text("\n".join(needed) + "\n")
    return place


def set_up(place: Path, programs: Path, status: int = 0) -> None:
    ended([place / "setup"], (status,), env=os.environ | {"PATH": f"{programs}:{os.environ['PATH']}"})


def imported(place: Path) -> Path:
    """The file that the environment of a checkout imports the package from."""
    return Path(printed(place / ".venv/bin/python", "-c", IMPORTED, cwd="/").strip())


def contents(place: Path) -> dict[str, bytes]:
    """What the environment installed, but for compiled files."""
    files = [file for file in (place / ".venv").rglob("*") if file.is_file() and file.suffix != ".pyc"]
    return {str(file): file.read_bytes() for file in files}


@pytest.mark.parametrize("is_moved", [False, True], ids=["copied", "moved"])
def test_a_checkout_has_an_environment_of_its_own(tmp_path: Path, programs: Path, is_moved: bool) -> None:
    first, second = checkout(tmp_path / "first"), tmp_path / "second"
    set_up(first, programs)
    before = contents(first)
    if is_moved:
        first.rename(second)
    else:
        shutil.copytree(first, second, symlinks=True)
    set_up(second, programs)
    assert imported(second) == second / "analysis/loadprint/__init__.py"
    programs_of_it = [file for file in (second / ".venv/bin").iterdir() if file.name.startswith("loadprint")]
    assert programs_of_it
    for file in programs_of_it:
        assert str(second) in file.read_text().splitlines()[0]
    if not is_moved:
        assert contents(first) == before
        assert imported(first) == first / "analysis/loadprint/__init__.py"


def test_a_build_that_fails_ends_setup_and_leaves_the_environment_complete(
    tmp_path: Path, programs: Path
) -> None:
    """The packages are installed at the same time."""
    place = checkout(tmp_path / "checkout")
    (programs / "cargo").write_text('#!/bin/sh\n[ "$1" != build ]\n')
    set_up(place, programs, status=2)
    assert imported(place) == place / "analysis/loadprint/__init__.py"
