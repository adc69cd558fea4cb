"""Queries of files with other rows, types and names."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from loadprint.errors import InputError
from loadprint.reading.queries import Store


def table(path: Path, ticks: list[int], values: list[float] | list[int]) -> Path:
    kind = pa.float64() if isinstance(values[0], float) else pa.uint64()
    columns = {"tick": pa.array(ticks, pa.uint32()), "value": pa.array(values, kind)}
    pq.write_table(pa.table(columns), path)
    return path


def larger(than: float) -> str:
    return f"SELECT tick, value::DOUBLE AS value FROM t WHERE value > {than}"


def test_the_same_query_of_another_file_gives_the_other_files_rows(tmp_path: Path) -> None:
    store = Store()
    first = table(tmp_path / "a.parquet", [0, 1, 2], [5, 6, 7])
    second = table(tmp_path / "b.parquet", [3, 4, 5], [50, 60, 70])
    assert store.fetch(first, larger(5))["value"].tolist() == [6.0, 7.0]
    assert store.fetch(second, larger(5))["value"].tolist() == [50.0, 60.0, 70.0]
    assert store.fetch(second, larger(55))["value"].tolist() == [60.0, 70.0]
    assert store.fetch(first, larger(5), between=(0, 1))["value"].tolist() == [6.0]
    assert store.fetch(first, larger(0), at=(0, 2))["value"].tolist() == [5.0, 7.0]


def test_whole_numbers_and_fractions_are_doubles(tmp_path: Path) -> None:
    store = Store()
    whole = table(tmp_path / "whole.parquet", [0, 1], [1, 2**63])
    broken = table(tmp_path / "broken.parquet", [0, 1], [1.5, 2.5])
    for path, wanted in ((whole, [1.0, 2.0**63]), (broken, [1.5, 2.5]), (whole, [1.0, 2.0**63])):
        result = store.fetch(path, "SELECT value::DOUBLE AS value FROM t")["value"]
        assert result.tolist() == wanted
        assert result.dtype == "float64"


def test_names_with_signs_of_patterns_and_quotes_are_one_file(tmp_path: Path) -> None:
    store = Store()
    for name in ("it's.parquet", "run[1].parquet", "a*.parquet", "b?.parquet"):
        path = table(tmp_path / name, [0], [len(name)])
        table(tmp_path / "ab.parquet", [0], [0])
        assert store.fetch(path, larger(0))["value"].tolist() == [float(len(name))]


def test_a_missing_column_is_an_error(tmp_path: Path) -> None:
    path = table(tmp_path / "a.parquet", [0], [1])
    with pytest.raises(InputError, match=r"a\.parquet: cannot be read"):
        Store().fetch(path, "SELECT absent FROM t")
