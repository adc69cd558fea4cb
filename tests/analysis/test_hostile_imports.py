"""Damaged and malicious files to import: bounded memory, one line of error, printable text."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from damage import ask, finite
from loadprint.printable import UNSAFE
from recordings import write_json
from test_hostile import MOST_KIB, OWNED, peak


def limited(*words: object) -> tuple[int, str, str]:
    """Status, output and errors of a command in a separate process."""
    command = [sys.executable, "-m", "loadprint", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("words", [["import", "prometheus", "/dev/zero"], ["usl", "/dev/zero"]])
def test_a_device_without_end_is_refused(words: list[str], tmp_path: Path) -> None:
    out = ["--out", tmp_path / "run"] if words[0] == "import" else []
    status, errors, most = peak(*words, *out)
    assert (status, errors) == (2, errors)
    assert "not text: a NUL" in errors
    assert most < MOST_KIB


MATRIX = {"status": "success", "data": {"resultType": "matrix", "result": []}}


@pytest.mark.parametrize(
    "values",
    [
        '[["1e300", "1"], [2, "1"]]',
        "[[1e17, 1], [2, 1]]",
        '[["inf", "1"]]',
        '[[-5, "1"], [2, "1"]]',
        '[[1, "1"], [2, "' + "9" * 400 + '"]]',
        '{"a": 1}',
        "[" * 100_000,
    ],
)
def test_a_hostile_answer_of_prometheus(values: str, tmp_path: Path) -> None:
    text = json.dumps(MATRIX).replace(
        "[]", '[{"metric": {"__name__": "up", "x": "\\ud800"}, "values": VALUES}]'
    )
    (tmp_path / "a.json").write_text(text.replace("VALUES", values))
    ask_import("prometheus", tmp_path)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("number-of-cpus", [1]),
        ("nodename", {"x": OWNED}),
        ("statistics", [{"timestamp": {"date": "9999-12-31", "time": "00:00:01", "interval": 1}}] * 2),
        ("statistics", [{"timestamp": {"date": "2026-01-01", "time": "00:00:01", "interval": 10**18}}]),
        ("comments", [{"comment": {"date": "2026-01-01", "time": "00:00:01", "com": OWNED}}]),
    ],
)
def test_a_hostile_output_of_sadf(key: str, value: Any, tmp_path: Path) -> None:
    every = [
        {
            "timestamp": {"date": "2026-01-01", "time": f"00:00:{second:02}", "interval": 1},
            "cpu-load": [{"cpu": "all", "usr": "x", "sys": 1e18}],
            "disk": [{"disk-device": OWNED, "tps": [], "await": 1.0}],
        }
        for second in (1, 2, 3)
    ]
    host: dict[str, Any] = {"nodename": "h", "number-of-cpus": 2, "statistics": every, key: value}
    write_json(tmp_path / "a.json", {"sysstat": {"hosts": [host]}})
    ask_import("sar", tmp_path)


def ask_import(kind: str, folder: Path) -> None:
    """An import is a run that `inspect` shows, or one line."""
    status, out, err = limited("import", kind, folder / "a.json", "--out", folder / "run")
    assert UNSAFE.search((out + err).replace("\n", "")) is None
    if status == 0:
        finite(json.loads(ask("inspect", folder / "run", "--format", "json").out))
    else:
        assert (status, out, err.count("\n")) == (2, "", 1)


def test_a_hostile_printed_table(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    for cell in ("1e999999999", "9" * 5000, "1e-400", "9," + "9" * 5000, OWNED, "=1+1"):
        path.write_text(f"metric,old,new\nx,{cell},1\ny,2,3\nz,4,5\nw,4,5\n", encoding="utf-8")
        for form in ("text", "markdown", "csv", "json"):
            answer = ask("import", "table", path, "--format", form)
            assert UNSAFE.search(answer.out.replace("\n", "")) is None


@pytest.mark.parametrize("command", [["import", "table"], ["usl"]], ids=" ".join)
@pytest.mark.parametrize(
    ("lines", "columns", "expected"),
    [
        (300_000, 2, "has 300,001 lines, more than the limit of 10,000"),
        (10, 20_000, "cells, more than the limit of 100,000"),
    ],
)
def test_a_large_csv_file_is_refused(
    command: list[str], lines: int, columns: int, expected: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.csv"
    heads = ",".join(["threads", *(f"tps{n}" for n in range(columns))])
    rows = "".join(f"{n % 64 + 1}{',5' * columns}\n" for n in range(lines))
    path.write_text(f"{heads}\n{rows}", encoding="utf-8")
    status, errors, most = peak(*command, path)
    assert status == 2
    assert expected in errors
    assert most < MOST_KIB


def test_many_misprints_and_many_fits_are_limited(tmp_path: Path) -> None:
    """Each misprint was looked up in the list of all, and each N left out in turn."""
    path = tmp_path / "a.csv"
    path.write_text("metric,a,b\n" + '"m",5,"1,2"\nx,4,5\n' * 4990, encoding="utf-8")
    assert peak("import", "table", path)[0] == 0
    path.write_text("threads,tps\n" + "".join(f"{n},{n}\n" for n in range(1, 2001)), encoding="utf-8")
    status, errors, _ = peak("usl", path)
    assert status == 2
    assert "2,000 different N" in errors


def test_a_terminated_command_leaves_no_directory(tmp_path: Path) -> None:
    """SIGTERM while the imported run is read: its directory and DuckDB's are removed."""
    every = [
        {
            "timestamp": {
                "date": "2026-01-01",
                "time": f"{n // 3600:02}:{n // 60 % 60:02}:{n % 60:02}",
                "interval": 1,
            },
            "cpu-load": [{"cpu": "all", "usr": 1.0, "sys": 1.0, "idle": 98.0}],
        }
        for n in range(1, 20_000)
    ]
    write_json(
        tmp_path / "a.json",
        {"sysstat": {"hosts": [{"nodename": "h", "number-of-cpus": 2, "statistics": every}]}},
    )
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    for number in (signal.SIGTERM, signal.SIGINT):
        with subprocess.Popen(
            [sys.executable, "-m", "loadprint", "compare", *[str(tmp_path / "a.json")] * 2],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": str(temporary)},
        ) as process:
            while not list(temporary.glob("loadprint-import-*")):
                assert process.poll() is None
                time.sleep(0.001)
            process.send_signal(number)
            _, errors = process.communicate()
        assert process.returncode == 128 + number
        assert errors == ""
        assert list(temporary.iterdir()) == []


def test_outputs_of_tools_name_no_file_elsewhere(tmp_path: Path) -> None:
    """A step called ../x would have read ../x.failed."""
    (tmp_path / "x.failed").write_text("a secret")
    steps = tmp_path / "steps"
    steps.mkdir()
    plan: dict[str, Any] = {"host": "h", "date": "d", "nic": "n", "tools": {}, "claimed": {}}
    plan |= {"steps": [{"id": "../x", "measure": "read_iops", "tool": f"fio{OWNED}", "depth": 1, "argv": []}]}
    write_json(steps / "steps.json", plan)
    assert ask("ceilings", "--gather", steps, "-o", tmp_path / "out.json").status == 0
    told = (tmp_path / "out.json").read_text(encoding="utf-8")
    assert "secret" not in told
    assert UNSAFE.search(told.replace("\n", "")) is None
