"""Queries are translated once for files of one shape, and never confused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from loadprint.errors import InputError
from loadprint.reading import translate
from loadprint.reading.queries import Query, Store, number
from loadprint.reading.query_key import key_of


def table(path: Path, ticks: list[int], values: list[float] | list[int]) -> Path:
    kind = pa.float64() if isinstance(values[0], float) else pa.uint64()
    columns = {"tick": pa.array(ticks, pa.uint32()), "value": pa.array(values, kind)}
    pq.write_table(pa.table(columns), path)
    return path


def larger(than: float) -> Query:
    return lambda t: t.filter(t.value > than).select("tick", value=number(t.value))


def test_the_same_query_of_another_file_gives_the_other_files_rows(tmp_path: Path) -> None:
    store = Store()
    first = table(tmp_path / "a.parquet", [0, 1, 2], [5, 6, 7])
    second = table(tmp_path / "b.parquet", [3, 4, 5], [50, 60, 70])
    assert store.fetch(first, larger(5))["value"].tolist() == [6.0, 7.0]
    assert store.fetch(second, larger(5))["value"].tolist() == [50.0, 60.0, 70.0]
    assert store.fetch(second, larger(55))["value"].tolist() == [60.0, 70.0]
    assert store.fetch(first, larger(5), between=(0, 1))["value"].tolist() == [6.0]
    assert store.fetch(first, larger(0), at=(0, 2))["value"].tolist() == [5.0, 7.0]


def test_a_file_of_another_type_has_its_own_translation(tmp_path: Path) -> None:
    store = Store()
    whole = table(tmp_path / "whole.parquet", [0, 1], [1, 2**63])
    broken = table(tmp_path / "broken.parquet", [0, 1], [1.5, 2.5])
    for path, wanted in ((whole, [1.0, 2.0**63]), (broken, [1.5, 2.5]), (whole, [1.0, 2.0**63])):
        result = store.fetch(path, lambda t: t.select(value=number(t.value)))["value"]
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
        Store().fetch(path, lambda t: t.select(number(ibis._.absent)))


def test_an_ibis_with_its_compiler_elsewhere_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = table(tmp_path / "a.parquet", [0], [1])
    for constant in ("PACKAGE", "TYPES"):
        with monkeypatch.context() as moved:
            moved.setattr(translate, constant, "ibis.elsewhere")
            translate._compiler.cache_clear()
            translate.data_type.cache_clear()
            with pytest.raises(InputError, match=r"^ibis .*: has no ibis\.elsewhere.*; run \./setup"):
                Store().fetch(path, larger(0))
    assert Store().fetch(path, larger(0))["value"].tolist() == [1.0]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (1, True),
        ("a", b"a"),
        (["a"], ["b"]),
        (["a"], ("a",)),
        ({"a": 1}, {"a": 2}),
        (ibis._.a.sum(), ibis._.b.sum()),
        (ibis._.a.cast("int64"), ibis._.a.cast("float64")),
        (larger(1), larger(2)),
    ],
)
def test_what_differs_in_what_it_encloses_differs(one: Any, other: Any) -> None:
    def enclosing(value: Any) -> Query:
        return lambda t: t.filter(value)

    assert key_of(enclosing(one)) == key_of(enclosing(one))
    assert key_of(enclosing(one)) != key_of(enclosing(other))


def test_values_that_cannot_be_compared_have_no_key() -> None:
    thing = object()
    assert key_of(lambda t: t.filter(thing)) is None
