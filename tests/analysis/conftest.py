"""Shared parts of the analysis tests: runs to compare, and golden files."""

from __future__ import annotations

import difflib
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import qualifying
from every_table import complete_run
from loadprint.commands.qualify.measure import Reader
from loadprint.tables.table import Table
from qualifying import Base, at
from reads import table_of
from recordings import Host, make_execution

Golden = Callable[[str, str], None]
GOLDEN = Path(__file__).parent.parent / "golden" / "compare"


@pytest.fixture
def golden() -> Golden:
    """Compare text with a golden file; LOADPRINT_BLESS=1 rewrites it.

    A new row changes only the outputs that show it: the number of those that are left out is not compared.
    """

    def check(name: str, text: str) -> None:
        text = re.sub(r"\d+ more rows", "N more rows", text)
        path = GOLDEN / name
        if os.environ.get("LOADPRINT_BLESS"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        expected = path.read_text(encoding="utf-8")
        changes = "\n".join(
            difflib.unified_diff(expected.splitlines(), text.splitlines(), str(path), "now", lineterm="")
        )
        assert text == expected, f"{changes}\nrewrite with LOADPRINT_BLESS=1 ./test unit"

    return check


def oltp(k: int = 0) -> Host:
    """Repeat k of a transaction workload; repeats differ by about one percent."""
    return Host(events=100 + k, statements=2000 + 20 * k, commits=100 + k)


def insert(k: int = 0) -> Host:
    """Repeat k of an insert workload with another operation, busier and with six times the switches."""
    busy = {"user": 60 + k, "system": 14, "softirq": 6, "iowait": 10, "idle": 10 - k}
    return Host(
        events=250 + 3 * k,
        statements=1250 + 9 * k,
        commits=250 + 2 * k,
        operation="ARM transaction",
        workload="arm_insert",
        options={"scenario": "ctx5"},
        server_ticks={"utime": 60 + k, "stime": 12},
        switches=9000 + 100 * k,
        cpus={"0": busy, "1": {"user": 20, "system": 10, "idle": 70}},
    )


@pytest.fixture(scope="session")
def complete(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with every table and figure; not to be changed."""
    return complete_run(tmp_path_factory.mktemp("complete") / "run")


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Base:
    """The baseline of `qualify`: 1000 events a second, read once for all tests."""
    return Base(qualifying.execution(tmp_path_factory.mktemp("base") / "old", {"oltp": at(1000)}), Reader())


@pytest.fixture(scope="session")
def execution(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three repeats of `oltp` and `insert`, paired in blocks; not to be changed."""
    sides = {"oltp": [oltp(k) for k in (0, 1, 2)], "insert": [insert(k) for k in (0, 2, 1)]}
    return make_execution(tmp_path_factory.mktemp("two") / "execution", sides, "oltp")


@pytest.fixture
def own_execution(execution: Path, tmp_path: Path) -> Path:
    """A copy of it, to change."""
    return Path(shutil.copytree(execution, tmp_path / "execution"))


@pytest.fixture(scope="session")
def whole_table(execution: Path) -> Table:
    """Its whole comparison."""
    return table_of(execution)
