"""Columns of another type or unit than their name promises are refused in one line, in every table."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from damage import ask
from every_table import declared, every_table
from loadprint.reading.column_types import is_entity, type_flaw
from loadprint.reading.units import unit_of
from recordings import Host, make_run, write_manifest

KEPT = Path(__file__).parents[1] / "recordings" / "v1"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with the table of every probe, and no manifest."""
    made = make_run(tmp_path_factory.mktemp("every") / "run", Host(seconds=4, more=every_table))
    (made / "manifest.json").unlink()
    return made


def test_every_declared_entity_is_text() -> None:
    """The declarations of the probes are in docs/metrics.md. Numbers in `pid` and `tid` are accepted."""
    entities = {(probe.name, name) for probe in declared() for name in probe.entities}
    assert {name for probe, name in entities if not is_entity(probe, name)} == {"pid", "tid"}
    assert not [name for probe in declared() for name in probe.columns if is_entity(probe.name, name)]


def test_a_run_with_every_table_is_readable(run: Path) -> None:
    for command in (["compare", run, run], ["inspect", run]):
        assert ask(*command).status == 0, command


COLUMNS: list[tuple[str, str, Any, pa.DataType, str]] = [
    ("ebpf_tcp", "port", 3306.5, pa.float64(), "column `port` is DOUBLE, not text"),
    ("ebpf_tcp", "port", None, pa.string(), "column `port` is not text in every row"),
    ("ebpf_block", "buckets", 1, pa.uint64(), "column `buckets` is UBIGINT, not a list of integers"),
    ("ebpf_block", "buckets", ["a"], pa.list_(pa.string()), "column `buckets` is VARCHAR[], not a list"),
    ("ebpf_block", "buckets", [-1], pa.list_(pa.int64()), "column `buckets` is not a count in some row"),
    ("ebpf_block", "buckets", [2**63], pa.list_(pa.uint64()), "column `buckets` is not a count in some row"),
    ("ebpf_block", "buckets", [1, None], pa.list_(pa.uint64()), "column `buckets` is null in some row"),
    ("cpu", "user", {"a": 1}, pa.struct([("a", pa.int64())]), "is STRUCT(a BIGINT), not text or a number"),
    ("cpu", "user", b"\xff", pa.binary(), "column `user` is BLOB, not text or a number"),
    ("ebpf_states", "threads", 4, pa.int64(), "column `threads` is BIGINT, not text"),
    ("ticks", "reason", 4, pa.int64(), "column `reason` is BIGINT, not text"),
    ("ticks", "tick", 0.5, pa.float64(), "column `tick` is DOUBLE, not an integer"),
    ("ticks", "start_ns", "a", pa.string(), "column `start_ns` is VARCHAR, not an integer"),
]


@pytest.mark.parametrize("case", COLUMNS, ids=lambda case: f"{case[0]}.{case[1]}: {case[3]}")
def test_a_column_of_another_type_is_refused(run: Path, case: tuple[str, str, Any, pa.DataType, str]) -> None:
    name, column, value, kind, expected = case
    path = run / "server" / f"{name}.parquet"
    kept = path.read_bytes()
    table = pq.read_table(path)
    place = table.schema.get_field_index(column)
    pq.write_table(table.set_column(place, column, pa.array([value] * len(table), kind)), path)
    try:
        answer = ask("compare", run, run)
    finally:
        path.write_bytes(kept)
    assert answer.status == 2
    assert f"{name}.parquet: " in answer.line
    assert expected in answer.line


def test_rows_with_different_numbers_of_buckets_are_refused(run: Path) -> None:
    path = run / "server" / "ebpf_tcp.parquet"
    kept = path.read_bytes()
    table = pq.read_table(path)
    rows = [[1] * (1 + row % 2) for row in range(len(table))]
    place = table.schema.get_field_index("buckets")
    pq.write_table(table.set_column(place, "buckets", pa.array(rows, pa.list_(pa.uint64()))), path)
    try:
        answer = ask("compare", run, run)
    finally:
        path.write_bytes(kept)
    assert re.search("another number of buckets in some row", answer.line)


def test_later_columns_are_accepted() -> None:
    assert type_flaw("cpu", [("tick", "UINTEGER"), ("later", "VARCHAR"), ("more", "DECIMAL(18,2)")]) == ""
    assert type_flaw("cpu", [("tick", "UINTEGER"), ("none", '"NULL"')]) == ""


def test_the_unit_of_every_declared_column_is_known() -> None:
    """The declarations of the probes are in docs/metrics.md."""
    declarations = {(probe.name, name): unit for probe in declared() for name, unit in probe.units.items()}
    assert {place: unit_of(*place) for place in declarations} == declarations


@pytest.mark.parametrize(
    ("recording", "table", "key", "name", "found", "expected"),
    [
        ("oltp", "server/disk", "columns", "write_sectors", "B", "sector"),
        ("oltp", "server/pressure", "columns", "total_us", "ms", "us"),
        ("oltp", "server/process", "columns", "rss", "kB", "page"),
        ("oltp", "server/threads", "columns", "on_cpu_ns", "us", "ns"),
        ("oltp", "server/tcp", "metrics", "Tcp.RetransSegs", "kB", "1"),
        ("oltp", "load/throughput", "columns", "latency_p95_ms", "s", "ms"),
        ("hidden-index", "server/mysql", "metrics", "Innodb_row_lock_time", "s", "ms"),
    ],
)
def test_another_unit_is_refused(  # noqa: PLR0917
    tmp_path: Path, recording: str, table: str, key: str, name: str, found: str, expected: str
) -> None:
    """The reader would compute with the wrong factor: a cell of sectors in bytes was 512 times too large."""
    run = tmp_path / "run"
    shutil.copytree(KEPT / recording, run)
    path = run / f"{table}.parquet"
    read = pq.read_table(path)
    described = json.loads(read.schema.metadata[b"loadprint"])
    assert described[key][name]["unit"] == expected
    described[key][name]["unit"] = found
    pq.write_table(read.replace_schema_metadata({"loadprint": json.dumps(described)}), path)
    write_manifest(run)
    for command in (["compare", run, run], ["report", run, "--out", tmp_path / "report.html"]):
        answer = ask(*command)
        assert answer.status == 2, command
        expected_line = f"{path}: {key[:-1]} `{name}` has the unit `{found}`, expected `{expected}`"
        assert expected_line in answer.line, command
