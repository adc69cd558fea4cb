"""Invalid values in the JSON files of a recording are named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from damage import ask, light_execution, spoiled

RUN = "b2-b-r2"
FILES = {
    "run": f"{RUN}/run.json",
    "result": f"{RUN}/load/result.json",
    "server": f"{RUN}/load/server.json",
    "fingerprint": f"{RUN}/server/fingerprint.json",
    "phases": f"{RUN}/load/phases.jsonl",
    "canary": f"{RUN}/server/canary.jsonl",
    "execution": "execution.json",
}


@pytest.fixture(scope="module")
def execution(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An execution to damage."""
    return light_execution(tmp_path_factory.mktemp("json") / "execution")


@pytest.mark.parametrize(
    ("name", "place", "text", "expected"),
    [
        ("result", ("events",), "NaN", "NaN is not a number"),
        ("result", ("events",), "-5", "`events` is -5, not a non-negative number"),
        ("result", ("seconds",), "1" + "0" * 400, "an integer of 401 digits"),
        ("result", ("latency_ms", "p95"), '"fast"', "`latency_ms.p95` is text"),
        ("result", ("latency_ms", "p95"), "1e999", "is too large"),
        ("result", ("transactions",), "[]", "`transactions` is a list, not an object"),
        ("server", ("variables",), "[" * 5000 + "]" * 5000, "nested too deep"),
        ("fingerprint", ("cpus", "list", 0), "3", "`cpus.list[0]` is 3, not an object"),
        ("run", ("roles", "server", "cpus"), '"0-99999999999"', "is not a CPU list"),
        ("run", ("format_version",), '"1"', "`format_version` is text, not a number"),
    ],
)
def test_what_is_wrong_is_named(
    execution: Path, name: str, place: tuple[str, ...], text: str, expected: str
) -> None:
    path = execution / FILES[name]
    kept = path.read_text()
    path.write_text(spoiled(json.loads(kept), place, text))
    try:
        answer = ask("compare", execution / RUN, execution / "b1-a-r1")
    finally:
        path.write_text(kept)
    assert answer.status == 2
    assert expected in answer.line


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (("runs",), "{}"),
        (("runs", 0, "id"), '"../elsewhere"'),
        (("runs", 0, "id"), "7"),
        (("sides",), "[]"),
        (("sides", "a"), "[]"),
        (("sides", "a", "fraction"), '"much"'),
        (("campaign",), "0"),
    ],
)
def test_an_execution_of_another_shape(execution: Path, place: tuple[object, ...], text: str) -> None:
    path = execution / "execution.json"
    kept = path.read_text()
    document = json.loads(kept)
    document["sides"]["a"]["fraction"] = None
    path.write_text(spoiled(document, place, text))
    try:
        for command in ("compare", "sweep"):
            answer = ask(command, execution)
            assert answer.status == 2
            assert "execution.json" in answer.line
    finally:
        path.write_text(kept)


def test_text_that_is_not_utf_8(execution: Path) -> None:
    path = execution / FILES["server"]
    kept = path.read_bytes()
    path.write_bytes(kept[:40] + b"\xff\xfe" + kept[40:])
    try:
        assert "not UTF-8" in ask("compare", execution / RUN, execution / "b1-a-r1").line
    finally:
        path.write_bytes(kept)


def test_phases_out_of_order(execution: Path) -> None:
    path = execution / FILES["phases"]
    kept = path.read_text()
    begin, end = (json.loads(line) for line in kept.splitlines())
    swapped = {**end, "monotonic_ns": begin["monotonic_ns"] - 1}
    try:
        path.write_text(json.dumps(begin) + "\n" + json.dumps(swapped) + "\n")
        assert "ends before its start" in ask("compare", execution / RUN, execution / "b1-a-r1").line
        path.write_text(json.dumps(end) + "\n" + json.dumps(begin) + "\n")
        assert ask("inspect", execution / RUN, "--format", "json").status == 0
    finally:
        path.write_text(kept)
