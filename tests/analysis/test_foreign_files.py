"""A received run directory names no file of its reader, and nothing in it blocks."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from loadprint.__main__ import main
from recordings import make_run

Plant = Callable[[Path, Path], None]


def replaced_by_link(name: str) -> Plant:
    """The file of the run becomes a link to the same file of the reader's."""

    def plant(run: Path, outside: Path) -> None:
        kept = outside / Path(name).name
        shutil.move(run / name, kept)
        (run / name).symlink_to(kept)

    return plant


def replaced_by_fifo(name: str) -> Plant:
    def plant(run: Path, _outside: Path) -> None:
        (run / name).unlink()
        os.mkfifo(run / name)

    return plant


def listed_outside(run: Path, outside: Path) -> None:
    """The manifest would reveal whether a file of the reader has a certain content."""
    (outside / "secret").write_text("secret")
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["files"]["../outside/secret"] = {"bytes": 6, "crc32c": "00000000"}
    (run / "manifest.json").write_text(json.dumps(manifest))


LINK, OTHER = "is a link to a file outside of the run directory", "is not a regular file"
PLANTED: dict[str, tuple[Plant, str]] = {
    "run.json": (replaced_by_link("run.json"), LINK),
    "a table": (replaced_by_link("server/cpu.parquet"), LINK),
    "a role": (replaced_by_link("server"), LINK),
    "FIFO for run.json": (replaced_by_fifo("run.json"), OTHER),
    "FIFO for a table": (replaced_by_fifo("server/cpu.parquet"), OTHER),
    "FIFO for the phases": (replaced_by_fifo("load/phases.jsonl"), OTHER),
    "manifest": (listed_outside, "is in manifest.json and outside of the run directory"),
}


@pytest.mark.parametrize("case", PLANTED)
def test_what_leads_out_of_a_run_or_blocks_is_refused(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plant, expected = PLANTED[case]
    good, run = make_run(tmp_path / "good"), make_run(tmp_path / "run")
    (tmp_path / "outside").mkdir()
    plant(run, tmp_path / "outside")
    assert main(["compare", str(good), str(run)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert expected in printed.err


def test_links_inside_of_a_run_and_to_an_unfinished_journal_are_accepted(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    (run / "server/cpu.parquet").rename(run / "cpu")
    (run / "server/cpu.parquet").symlink_to("../cpu")
    (run / "server/journal").symlink_to("/dev/shm/loadprint-1-2-x/journal")
    assert main(["inspect", str(run)]) == 0
