"""Unusable input is refused in one line with place and fix, exit status 2, no traceback.

Each case damages one file of a run that has every table. Random damage is in test_hostile.py.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from damage import RICH, ask
from declarations import declared
from every_table import every_table
from fuzzing import spoiled
from loadprint.reading import declared as declared_tables
from loadprint.reading.column_types import COUNTS, entities, kind, type_flaw
from loadprint.reading.queries import Store
from loadprint.reading.units import unit_flaw
from profiles import OLTP, document, profiled, write_stacks
from recordings import (
    SECOND,
    Tables,
    agreed,
    change_column,
    change_json,
    change_metadata,
    change_rows,
    make_run,
    read_lines,
    write_json,
    write_lines,
)

Damage = Callable[[Path], object]
PROBES = Path(declared_tables.__file__).with_name("probes.json")


def lose(path: Path) -> None:
    path.unlink()


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:200])


def flip(path: Path) -> None:
    octets = bytearray(path.read_bytes())
    octets[len(octets) // 2] ^= 1
    path.write_bytes(octets)


def text(content: str) -> Damage:
    return lambda path: path.write_text(content)


def value(*place: str | int, to: str) -> Damage:
    """One value of a JSON file becomes this text."""
    return lambda path: path.write_text(spoiled(json.loads(path.read_text()), place, to))


def column(name: str, to: Any, kind: pa.DataType) -> Damage:
    """A column of a table has this value in all rows."""
    return lambda path: change_column(path, name, lambda _: to, kind)


def unit(name: str, found: str | None, key: str = "columns") -> Damage:
    def change(described: dict[str, Any]) -> None:
        described.setdefault(key, {})[name] = {"unit": found}

    return lambda path: change_metadata(path, change)


def stacks(**change: Any) -> Damage:
    return lambda path: write_json(path, document(OLTP)[0] | change)


def link(path: Path) -> None:
    """The file becomes a link to the same file of the reader's, outside of the run."""
    kept = Path(tempfile.mkdtemp(dir=path.parents[2])) / path.name
    path.rename(kept)
    path.symlink_to(kept)


def fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def lists_outside(path: Path) -> None:
    """The manifest would reveal whether a file of the reader has a certain content."""
    secret = path.parents[1] / "secret"
    secret.write_text("secret")
    manifest = json.loads(path.read_text())
    manifest["files"][f"../{secret.name}"] = {"bytes": 6, "crc32c": "00000000"}
    write_json(path, manifest)


def not_utf_8(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"MySQL", b"My\xffSQL"))


def not_utf_8_name(path: Path) -> None:
    """The name of a column in the footer."""
    path.write_bytes(path.read_bytes().replace(b"write_ms", b"write_m\xff"))


def unlike_buckets(path: Path) -> None:
    change_rows(path, lambda row: {**row, "buckets": [1] * (1 + (row["side"] == "opened"))})


def swapped_phases(path: Path) -> None:
    begin, end = read_lines(path)
    write_lines(path, [begin, end | {"monotonic_ns": begin["monotonic_ns"] - 1}])


UINTS, INTS, TEXTS = (pa.list_(kind) for kind in (pa.uint64(), pa.int64(), pa.string()))
STRUCT = pa.struct([("a", pa.int64())])
PAIRS = "`nodes` is not a list of pairs of integers"
# the manifest agrees with the file
DAMAGED: list[tuple[str, Damage, str]] = [
    ("run.json", text('{"format_version": 99}'), "format version 99"),
    ("run.json", value("format_version", to='"1"'), "`format_version` is text, not a number"),
    ("run.json", value("roles", "server", "cpus", to='"a"'), "CPU list"),
    ("run.json", value("roles", "server", "cpus", to='"0-99999999999"'), "is not a CPU list"),
    ("load/result.json", text('{"events": 5}'), "`seconds`"),
    ("load/result.json", value("events", to="NaN"), "NaN is not a number"),
    ("load/result.json", value("events", to="-5"), "`events` is -5, not a non-negative number"),
    ("load/result.json", value("events", to="5e-324"), "too small"),
    ("load/result.json", value("seconds", to="1" + "0" * 400), "an integer of 401 digits"),
    ("load/result.json", value("seconds", to="1" + "0" * 20), "an integer of 21 digits"),
    ("load/result.json", value("latency_ms", "p95", to='"fast"'), "`latency_ms.p95` is text"),
    ("load/result.json", value("latency_ms", "p95", to="1e999"), "is too large"),
    ("load/result.json", value("transactions", to="[]"), "`transactions` is a list, not an object"),
    ("load/server.json", value("variables", to="[" * 5000 + "]" * 5000), "nested too deep"),
    ("load/server.json", not_utf_8, "not UTF-8"),
    ("load/phases.jsonl", text(""), "phase `measure` is missing"),
    ("load/phases.jsonl", text("x\n{}\n"), "phases.jsonl line 1"),
    ("load/phases.jsonl", swapped_phases, "ends before its start"),
    ("server/fingerprint.json", value("cpus", "list", 0, to="3"), "`cpus.list[0]` is 3, not an object"),
    ("server/cpu.parquet", cut, "server/cpu.parquet"),
    ("server/ticks.parquet", text(""), "server/ticks.parquet"),
    ("server/ticks.parquet", column("tick", None, pa.uint32()), "ticks.parquet"),
    (
        "server/ticks.parquet",
        column("tick", 0.5, pa.float64()),
        "column `tick` is a real number, not an integer",
    ),
    ("server/ticks.parquet", column("probe", 5, pa.int64()), "ticks.parquet"),
    ("server/ticks.parquet", column("start_ns", "a", pa.string()), "is text, not an integer"),
    ("server/ticks.parquet", column("reason", 4, pa.int64()), "column `reason` is an integer, not text"),
    ("server/ebpf_sched.parquet", column("role", None, pa.string()), "ebpf_sched.parquet"),
    ("server/ebpf_sched.parquet", column("buckets", None, UINTS), "ebpf_sched.parquet"),
    ("server/threads.parquet", column("role", None, pa.string()), "threads.parquet"),
    (
        "server/ebpf_tcp.parquet",
        column("port", 3306.5, pa.float64()),
        "column `port` is a real number, not text",
    ),
    ("server/ebpf_tcp.parquet", column("port", None, pa.string()), "column `port` is not text in every row"),
    ("server/ebpf_tcp.parquet", unlike_buckets, "another number of buckets in some row"),
    ("server/ebpf_block.parquet", column("buckets", 1, pa.uint64()), "is an integer, not a list of integers"),
    ("server/ebpf_block.parquet", column("buckets", ["a"], TEXTS), "not a list of integers"),
    ("server/ebpf_block.parquet", column("buckets", [-1], INTS), "is not a count in some row"),
    ("server/ebpf_block.parquet", column("buckets", [2**63], UINTS), "is not a count in some row"),
    ("server/ebpf_block.parquet", column("buckets", [1, None], UINTS), "is null in some row"),
    ("server/cpu.parquet", column("user", {"a": 1}, STRUCT), "is struct<a: int64>, not text or a number"),
    ("server/cpu.parquet", column("user", b"\xff", pa.binary()), "is binary, not text or a number"),
    (
        "server/ebpf_states.parquet",
        column("threads", 4, pa.int64()),
        "column `threads` is an integer, not text",
    ),
    ("server/disk.parquet", unit("writes", "furlong"), "`writes` has the unit `furlong`, which is not known"),
    ("server/disk.parquet", not_utf_8_name, "cannot be read ("),
    ("server/disk.parquet", unit("writes", None), "column `writes` has no unit"),
    ("server/process.parquet", unit("utime", "kB"), "has the unit `kB`, expected `tick`"),
    ("server/pressure.parquet", unit("total_us", "kB"), "has the unit `kB`, expected `us`"),
    ("server/mysql.parquet", unit("Innodb_row_lock_time", "B", "metrics"), "has the unit `B`, expected `ms`"),
    ("load/throughput.parquet", unit("latency_p95_ms", "s"), "has the unit `s`, expected `ms`"),
    ("server/profile.parquet", column("samples", None, pa.int64()), "`samples` is not a count in every row"),
    ("server/profile.parquet", column("stack", "9999", pa.string()), "nodes that are not in stacks.json"),
    ("server/stacks.json", stacks(nodes=[[0, 0]]), "`nodes[0]`: its parent is not an earlier node"),
    ("server/stacks.json", stacks(nodes=[[-1, 0], [-2, 0]]), "`nodes[1]`: its parent is not an earlier node"),
    ("server/stacks.json", stacks(nodes=[[-1, 10_000]]), "`nodes[0]`: its frame is not in `frames`"),
    ("server/stacks.json", stacks(nodes=[[-1]]), PAIRS),
    ("server/stacks.json", stacks(nodes=[[-1, 0], [0]]), PAIRS),
    ("server/stacks.json", stacks(nodes=[[-1, 0.5]]), PAIRS),
    ("server/stacks.json", stacks(nodes=[[-1, None]]), PAIRS),
    ("server/stacks.json", stacks(nodes={"a": 1}), PAIRS),
    ("server/stacks.json", stacks(nodes=[[-1, 1 << 63]]), PAIRS),
    ("server/stacks.json", stacks(frames=[[99, "main"]]), "`frames[0]`: its module is not in `modules`"),
    ("server/stacks.json", stacks(frames=[["main", 0]]), "`frames[0]` is not a module and a symbol"),
    ("server/stacks.json", stacks(frames={}), "`frames` is an object, not a list"),
    ("server/stacks.json", stacks(modules=["mysqld"]), "`modules[0]` is text, not an object"),
    ("server/stacks.json", stacks(frequency_hz=0), "`frequency_hz` is missing or 0"),
    ("server/stacks.json", stacks(frequency_hz=-1), "`frequency_hz` is -1, not a non-negative number"),
]
LINK, OTHER = "is a link to a file outside of the run directory", "is not a regular file"
# the manifest does not
UNVERIFIED: list[tuple[str, Damage, str]] = [
    ("run.json", lose, "contains no run.json"),
    ("run.json", text('{"id": 1,\n'), "not JSON at line"),
    ("run.json", text("[]"), "is not a JSON object"),
    ("run.json", text('{"status": "complete"}'), "loadprint-collect finish"),
    ("server/journal", text("LPJRNL"), "loadprint-collect finish"),
    ("server/cpu.parquet", cut, "server/cpu.parquet"),
    ("server/disk.parquet", flip, "checksum"),
    ("server/nic.parquet", lose, "does not exist"),
    ("manifest.json", text('{"files": 3}'), "`files` is 3, not an object"),
    # nothing leads out of a run, and nothing blocks
    *((name, link, LINK) for name in ("run.json", "server/cpu.parquet", "server")),
    *((name, fifo, OTHER) for name in ("run.json", "server/cpu.parquet", "load/phases.jsonl")),
    ("manifest.json", lists_outside, "is in manifest.json and outside of the run directory"),
]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with the table of every probe."""

    def tables(ticks: range) -> Tables:
        return every_table(ticks) | profiled(server=OLTP)(ticks)

    run = make_run(tmp_path_factory.mktemp("good") / "run", replace(RICH, seconds=4, more=tables))
    write_stacks(run, {"server": OLTP})
    return run


@pytest.fixture
def bad(good: Path, tmp_path: Path) -> Path:
    """A copy to damage."""
    return Path(shutil.copytree(good, tmp_path / "bad"))


def refused(*words: object) -> str:
    answer = ask(*words)
    assert answer.status == 2
    assert "; " in answer.line, "names a fix"
    return answer.line


def test_a_run_with_every_table_is_readable(good: Path) -> None:
    for command in (["compare", good, good], ["inspect", good]):
        assert ask(*command).status == 0, command


@pytest.mark.parametrize(("name", "damage", "expected"), DAMAGED)
def test_a_damaged_file_is_refused(good: Path, bad: Path, name: str, damage: Damage, expected: str) -> None:
    damage(bad / name)
    agreed(bad / name)
    line = refused("compare", good, bad)
    assert expected in line
    assert str(bad / name) in line or str(bad) in line


@pytest.mark.parametrize(("name", "damage", "expected"), UNVERIFIED)
def test_a_file_that_the_manifest_does_not_describe_is_refused(
    good: Path, bad: Path, name: str, damage: Damage, expected: str
) -> None:
    manifest = (bad / "manifest.json").read_bytes()
    damage(bad / name)
    if name != "manifest.json":
        (bad / "manifest.json").write_bytes(manifest)
    line = refused("compare", good, bad)
    assert expected in line
    assert str(bad) in line


def test_links_inside_of_a_run_and_to_an_unfinished_journal_are_accepted(bad: Path) -> None:
    (bad / "server/cpu.parquet").rename(bad / "cpu")
    (bad / "server/cpu.parquet").symlink_to("../cpu")
    (bad / "server/journal").symlink_to("/dev/shm/loadprint-1-2-x/journal")
    assert ask("inspect", bad).status == 0


def test_a_journal_alone_is_not_finished(good: Path, bad: Path) -> None:
    (bad / "server/journal").write_text("x")
    (bad / "run.json").unlink()
    assert "loadprint-collect finish" in refused("compare", good, bad)


def test_not_a_run_directory(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    for name, expected in (
        ("empty", "is empty"),
        ("file", "is a file"),
        ("nowhere", "no such run directory"),
    ):
        assert expected in refused("inspect", tmp_path / name)
        # sadf reads files, which can be of sysstat
        compared = "is not an sa file" if name == "file" else expected
        assert compared in refused("compare", tmp_path / name, tmp_path / name)


def test_a_side_that_is_not_there_lists_those_that_are(execution: Path) -> None:
    assert "its sides are oltp, insert" in refused("compare", f"{execution}:oltq", f"{execution}:insert")
    assert "no such execution" in refused("compare", f"{execution}x:oltp", f"{execution}:insert")
    assert "name one of oltp, insert" in refused("compare", execution, "--reference", "x")
    assert "one side" in refused("compare", f"{execution}:oltp")
    assert "is an execution" in refused("inspect", execution)


def test_an_output_that_cannot_be_written(execution: Path) -> None:
    assert "name another file" in refused("compare", execution, "-o", execution / "no" / "x.txt")


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (("runs",), "{}"),
        (("runs", 0, "id"), '"../elsewhere"'),
        (("runs", 0, "id"), "7"),
        (("sides",), "[]"),
        (("sides", "oltp"), "[]"),
        (("sides", "oltp", "fraction"), '"much"'),
        (("campaign",), "0"),
        ((), '{"sides": {"a": {}}}'),
    ],
)
def test_an_execution_of_another_shape(execution: Path, place: tuple[str | int, ...], text: str) -> None:
    path = execution / "execution.json"
    described = json.loads(path.read_text())
    described["sides"]["oltp"]["fraction"] = None
    path.write_text(spoiled(described, place, text))
    for command in ("compare", "sweep"):
        assert "execution.json" in refused(command, execution)


def test_phases_in_another_order_are_inspected(bad: Path) -> None:
    path = bad / "load/phases.jsonl"
    write_lines(path, reversed(read_lines(path)))
    assert ask("inspect", bad, "--format", "json").status == 0


def test_zero_operations_give_no_cost_and_no_ratio(tmp_path: Path) -> None:
    nothing = replace(RICH, events=0, statements=0, commits=0, series=lambda second: 0)
    runs = make_run(tmp_path / "good", RICH), make_run(tmp_path / "bad", nothing)
    answer = ask("compare", *runs, "--format", "json")
    busy, idle = answer.cells["cost_operation", "server_cpu_per_operation"]
    assert busy["value"] is not None
    assert idle["value"] is None
    footnotes = json.loads(answer.out)["footnotes"]
    assert "nothing to divide by" in footnotes[idle["notes"][0] - 1]


@pytest.mark.parametrize("seconds", [0, -1])
def test_one_sample_or_none_is_refused(good: Path, bad: Path, seconds: int) -> None:
    path = bad / "load" / "phases.jsonl"
    begin, end = read_lines(path)
    end["monotonic_ns"] = begin["monotonic_ns"] + (seconds + 1) * SECOND + 1
    write_lines(path, [begin, end])
    agreed(path)
    assert "fewer than two ticks" in refused("compare", good, bad)


def test_different_hosts_are_reported_before_any_number(good: Path, bad: Path) -> None:
    change_json(bad / "server/fingerprint.json", host="db2", cpus={"model": "Other CPU", "list": []})
    answer = ask("compare", good, bad)
    assert answer.status == 0
    assert "Other CPU" in answer.out.partition("Throughput")[0]


def test_the_declared_tables_are_those_of_the_probes() -> None:
    """docs/metrics.md is printed from the probes. Numbers in `pid` and `tid` are accepted."""
    written = {
        probe.name: {
            "shape": probe.shape,
            "entity": probe.entities,
            "columns": {name: f"{unit} {probe.kinds[name]}" for name, unit in probe.units.items()},
        }
        for probe in declared()
    }
    if os.environ.get("LOADPRINT_BLESS"):
        PROBES.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
    assert json.loads(PROBES.read_text(encoding="utf-8")) == json.loads(json.dumps(written))
    for probe in declared():
        assert set(probe.entities) <= {*entities(probe.name, {}), "pid", "tid"}
        assert not entities(probe.name, {}) & probe.columns.keys()
        columns = {name: {"unit": unit} for name, unit in probe.units.items()}
        assert not unit_flaw(probe.name, {"columns": columns})


def test_later_columns_are_accepted() -> None:
    types: dict[str, pa.DataType] = {
        "tick": pa.uint32(),
        "later": pa.string(),
        "more": pa.decimal128(18, 2),
        "none": pa.null(),
        "json": pa.json_(),
        "uuid": pa.uuid(),
        "flag": pa.bool8(),
        "own": pa.opaque(pa.dictionary(pa.int32(), pa.string()), "type", "vendor"),
    }
    assert type_flaw("cpu", {}, [(name, kind(of)) for name, of in types.items()]) == ""
    assert kind(pa.list_(pa.opaque(pa.uint64(), "type", "vendor"))) == COUNTS
    assert "is struct<a: int64>" in type_flaw("cpu", {}, [("x", kind(pa.opaque(STRUCT, "type", "vendor")))])


@pytest.mark.parametrize(
    ("later", "stored", "read"),
    [
        (pa.json_(), "{}", "{}"),
        (pa.uuid(), bytes(16), str(UUID(int=0))),
        (pa.bool8(), 1, 1),
        (pa.opaque(pa.string(), "type", "vendor"), "a", "a"),
    ],
)
def test_an_extension_type_is_read_as_its_storage(
    later: pa.BaseExtensionType, stored: Any, read: Any, good: Path, bad: Path
) -> None:
    path = bad / "server/cpu.parquet"
    table = pq.read_table(path)
    values = pa.array([stored] * len(table), later.storage_type)
    table = table.append_column("later", pa.ExtensionArray.from_storage(later, values))
    user = table["user"].combine_chunks()
    counts = pa.opaque(user.type, "type", "vendor")
    place = table.column_names.index("user")
    table = table.set_column(place, "user", pa.ExtensionArray.from_storage(counts, user))
    pq.write_table(table, path)
    agreed(path)
    assert ask("compare", good, bad).status == 0
    assert Store().fetch(path, "SELECT later FROM t LIMIT 1")["later"].tolist() == [read]
