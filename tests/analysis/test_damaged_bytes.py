"""Truncated recordings, and flipped bits: one line of error, or unchanged figures."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from damage import RICH, ask
from recordings import make_run, write_manifest

pytestmark = pytest.mark.slow

CUTS, CUTS_VOUCHED_FOR = 1000, 20
FLIPS, FLIPS_VOUCHED_FOR = 300, 10


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A good run, and one to damage."""
    parent = tmp_path_factory.mktemp("damaged")
    return make_run(parent / "good", RICH), make_run(parent / "bad", RICH)


def _sample(run: Path, count: int, seed: int) -> Iterator[tuple[Path, int]]:
    """Files and offsets: every file in turn, so that small ones are met as often as large ones."""
    chance = random.Random(seed)
    files = sorted(file for file in run.rglob("*") if file.is_file())
    for number in range(count):
        file = files[number % len(files)]
        yield file, chance.randrange(file.stat().st_size)


@contextmanager
def _replaced(file: Path, octets: bytes, vouched_for: Path | None = None) -> Iterator[None]:
    """The file with other content, and a manifest that agrees with it where `vouched_for` is its run."""
    kept = file.read_bytes()
    manifest = vouched_for / "manifest.json" if vouched_for else None
    listed = manifest.read_bytes() if manifest else b""
    file.write_bytes(octets)
    if vouched_for:
        write_manifest(vouched_for)
    try:
        yield
    finally:
        file.write_bytes(kept)
        if manifest:
            manifest.write_bytes(listed)


def test_a_recording_cut_off_anywhere_is_refused(runs: tuple[Path, Path]) -> None:
    good, bad = runs
    for file, offset in _sample(bad, CUTS, seed=1):
        with _replaced(file, file.read_bytes()[:offset]):
            answer = ask("compare", bad, good)
        assert answer.status == 2, (file, offset)
        assert str(bad) in answer.line


def test_what_a_manifest_vouches_for_is_refused_or_changes_no_figure(runs: tuple[Path, Path]) -> None:
    good, bad = runs
    whole = ask("compare", bad, good, "--format", "json").cells
    for file, offset in _sample(bad, CUTS_VOUCHED_FOR, seed=2):
        if file.name == "manifest.json":
            continue
        with _replaced(file, file.read_bytes()[:offset], bad):
            answer = ask("compare", bad, good, "--format", "json")
        assert answer.status == 2 or answer.cells == whole, (file, offset)


def test_a_flipped_bit_is_refused_or_changes_no_figure(runs: tuple[Path, Path]) -> None:
    good, bad = runs
    whole = ask("compare", bad, good, "--format", "json").cells
    for number, (file, offset) in enumerate(_sample(bad, FLIPS, seed=3)):
        octets = bytearray(file.read_bytes())
        octets[offset] ^= 1 << number % 8
        with _replaced(file, bytes(octets)):
            answer = ask("compare", bad, good, "--format", "json")
        assert answer.status == 2 or answer.cells == whole, (file, offset)


def test_a_flipped_bit_that_nothing_vouches_against_gives_finite_figures_or_one_line(
    runs: tuple[Path, Path],
) -> None:
    good, bad = runs
    for number, (file, offset) in enumerate(_sample(bad, FLIPS_VOUCHED_FOR, seed=4)):
        octets = bytearray(file.read_bytes())
        octets[offset] ^= 1 << number % 8
        with _replaced(file, bytes(octets), None if file.name == "manifest.json" else bad):
            ask("compare", bad, good, "--format", "json")
            ask("inspect", bad, "--format", "json")


def test_without_a_manifest_the_table_reports_that_files_are_unverified(
    runs: tuple[Path, Path], tmp_path: Path
) -> None:
    good, bad = runs
    shutil.copytree(bad, tmp_path / "bad")
    (tmp_path / "bad" / "manifest.json").unlink()
    answer = ask("compare", good, tmp_path / "bad")
    assert "manifest.json is missing" in answer.out
