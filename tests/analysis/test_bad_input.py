"""Unusable input is reported in one line with place and fix, exit status 2, no traceback."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from loadprint.__main__ import main
from recordings import make_run, write_manifest

Spoiler = Callable[[Path], object]


def lose(name: str) -> Spoiler:
    return lambda run: (run / name).unlink()


def cut(name: str, keep: int = 200) -> Spoiler:
    return lambda run: (run / name).write_bytes((run / name).read_bytes()[:keep])


def write(name: str, text: str) -> Spoiler:
    return lambda run: (run / name).write_text(text)


def unlisted(spoil: Spoiler) -> Spoiler:
    """Spoil a file and make the manifest agree with it, so that the reader itself must notice."""
    return both(spoil, write_manifest)


def both(first: Spoiler, second: Spoiler) -> Spoiler:
    return lambda run: (first(run), second(run))


def flip(name: str) -> Spoiler:
    def change(run: Path) -> None:
        octets = bytearray((run / name).read_bytes())
        octets[len(octets) // 2] ^= 1
        (run / name).write_bytes(octets)

    return change


SPOILED: dict[str, tuple[Spoiler, str]] = {
    "run.json lost": (lose("run.json"), "contains no run.json"),
    "run.json broken": (write("run.json", '{"id": 1,\n'), "not JSON at line"),
    "run.json a list": (write("run.json", "[]"), "is not a JSON object"),
    "newer format": (unlisted(write("run.json", '{"format_version": 99}')), "format version 99"),
    "never finished": (write("server/journal", "LPJRNL"), "loadprint-collect finish"),
    "journal alone": (both(write("server/journal", "x"), lose("run.json")), "loadprint-collect finish"),
    "table cut": (cut("server/cpu.parquet"), "server/cpu.parquet"),
    "table cut, manifest agrees": (unlisted(cut("server/cpu.parquet")), "server/cpu.parquet"),
    "table empty": (unlisted(cut("server/ticks.parquet", 0)), "server/ticks.parquet"),
    "one bit": (flip("server/disk.parquet"), "checksum"),
    "run.json newer than the manifest": (
        write("run.json", '{"status": "complete"}'),
        "loadprint-collect finish",
    ),
    "file lost": (lose("server/nic.parquet"), "does not exist"),
    "no seconds": (unlisted(write("load/result.json", '{"events": 5}')), "`seconds`"),
    "no measure phase": (unlisted(write("load/phases.jsonl", "")), "phase `measure` is missing"),
    "garbled phases": (unlisted(write("load/phases.jsonl", "x\n{}\n")), "phases.jsonl line 1"),
    "manifest garbled": (write("manifest.json", '{"files": 3}'), "`files` is 3, not an object"),
    "CPUs garbled": (
        unlisted(write("run.json", '{"status": "complete", "roles": {"server": {"cpus": "a"}}}')),
        "CPU list",
    ),
}


def refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(words) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert said.err.startswith("loadprint: ")
    assert "; " in said.err, "names a fix"
    return said.err


@pytest.mark.parametrize("case", SPOILED)
def test_a_spoiled_run_directory(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spoil, expected = SPOILED[case]
    good, bad = make_run(tmp_path / "good"), make_run(tmp_path / "bad")
    spoil(bad)
    said = refused(["compare", str(good), str(bad)], capsys)
    assert expected in said
    assert str(bad) in said


def test_not_a_run_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    for name, expected in (
        ("empty", "is empty"),
        ("file", "is a file"),
        ("nowhere", "no such run directory"),
    ):
        assert expected in refused(["inspect", str(tmp_path / name)], capsys)
        # sadf reads files, which can be of sysstat
        compared = "is not an sa file" if name == "file" else expected
        assert compared in refused(["compare", str(tmp_path / name), str(tmp_path / name)], capsys)


def test_a_side_that_is_not_there_lists_those_that_are(
    execution: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "its sides are oltp, insert" in refused(
        ["compare", f"{execution}:oltq", f"{execution}:insert"], capsys
    )
    assert "no such execution" in refused(["compare", f"{execution}x:oltp", f"{execution}:insert"], capsys)
    assert "name one of oltp, insert" in refused(["compare", str(execution), "--reference", "x"], capsys)
    assert "one side" in refused(["compare", f"{execution}:oltp"], capsys)
    assert "is an execution" in refused(["inspect", str(execution)], capsys)


def test_an_execution_that_lists_nothing(execution: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (execution / "execution.json").write_text(json.dumps({"sides": {"a": {}}}))
    assert "execution.json" in refused(["compare", str(execution)], capsys)


def test_an_output_that_cannot_be_written(execution: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "with -o" in refused(["compare", str(execution), "-o", str(execution / "no" / "x.txt")], capsys)
