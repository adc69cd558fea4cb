"""Deep stacks: quadratic in their depth, a recording of 300 kB would become 320 MB of text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from loadprint.reading import bounds
from recordings import Host, Rows, make_run, write_json, write_manifest
from test_hostile import bounded, peak

FORMATS = ("folded", "pprof", "speedscope")


def forest(path: Path, chains: int, depth: int, names: Sequence[str] = ("f",)) -> Path:
    """A run with a sample at every node of some chains of calls."""
    count = chains * depth

    def sampled(_: range) -> dict[str, tuple[Rows, dict[str, str]]]:
        rows: Rows = [
            {"tick": 3, "role": "server", "stack": str(node), "samples": 1} for node in range(count)
        ]
        return {"profile": (rows, {"shape": "table"})}

    make_run(path, Host(seconds=4, more=sampled))
    tree = {"event": "cpu-clock", "frequency_hz": 99, "lost": 0, "modules": [{"path": "/m"}]}
    nodes = [[node - 1 if node % depth else -1, node % len(names)] for node in range(count)]
    write_json(path / "server/stacks.json", tree | {"frames": [[0, name] for name in names], "nodes": nodes})
    write_manifest(path)
    return path


@pytest.mark.parametrize("form", FORMATS)
def test_a_stack_deeper_than_the_recorder_stores_is_refused(form: str, tmp_path: Path) -> None:
    run = forest(tmp_path / "run", 1, 20_000)
    assert (run / "server/stacks.json").stat().st_size < 340_000
    status, errors = bounded("stacks", run, "--format", form)
    assert (status, errors.count("\n")) == (2, 0), errors
    assert "a stack of 20,000 frames, more than the limit of 512" in errors
    for command in (["compare", run, run], ["report", run, "-o", tmp_path / "page.html"]):
        assert peak(*command)[0] == 2


def test_deepest_stacks_within_the_limit_are_written(tmp_path: Path) -> None:
    run = forest(tmp_path / "run", 20, bounds.STACK_DEPTH)
    for form in FORMATS:
        status, errors = bounded("stacks", run, "--format", form, "-o", tmp_path / form)
        assert (status, errors) == (0, "")
    lines = (tmp_path / "folded").read_text().splitlines()
    assert max(line.count(";") for line in lines) == bounds.STACK_DEPTH - 1


def test_long_names_of_deep_stacks_are_refused_as_text(tmp_path: Path) -> None:
    """60,000 stacks of 256 names of 8000 characters would be 120 GB."""
    run = forest(tmp_path / "run", 117, bounds.STACK_DEPTH, ["x" * 8000])
    status, errors = bounded("stacks", run)
    assert status == 2
    assert "the names in its stacks have 14,668 MiB" in errors
    assert peak("stacks", run, "--format", "pprof", "-o", tmp_path / "a.pb.gz")[0] == 0
    status, errors = bounded("export", run, "--to", tmp_path / "fleet")
    assert status == 2
    assert "the names in its stacks" in errors


def test_more_frames_than_memory_are_refused(tmp_path: Path) -> None:
    run = forest(tmp_path / "run", 200, bounds.STACK_DEPTH)
    status, errors, _ = peak("stacks", run, "--format", "speedscope")
    assert status == 2
    assert "its stacks have 26,265,600 frames, more than the limit of 16,000,000" in errors
