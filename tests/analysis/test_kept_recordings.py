"""Recordings of every format version still open and compare, with our reader and without it."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from loadprint.__main__ import main

KEPT = sorted((Path(__file__).parents[1] / "recordings").glob("v*"))


@pytest.mark.parametrize("version", KEPT, ids=lambda path: path.name)
def test_kept_recordings_compare(version: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["compare", str(version / "oltp"), str(version / "insert"), "--format", "csv"]
    assert main(words) == 0
    table = capsys.readouterr().out
    assert len(table.splitlines()) > 60
    assert "switches_server" in table


@pytest.mark.parametrize("version", KEPT, ids=lambda path: path.name)
def test_every_table_opens_without_our_code(version: Path) -> None:
    tables = sorted(version.glob("*/*/*.parquet"))
    assert len(tables) > 20
    for table in tables:
        result = duckdb.execute(f"SELECT count(*) FROM '{table}'").fetchall()
        assert result[0][0] > 0, table
