"""Every kind of damage to every kind of file, and the refusals whose text is documented or guards a figure.

A command reads a damaged file, or refuses it in one line with place and fix and exit status 2.
"""

from __future__ import annotations

import json
import os
import random
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
from damage import RICH, apart, ask, bounded, printable, refused
from declarations import declared
from every_table import every_table
from loadprint.reading import declared as declared_tables
from loadprint.reading.column_types import COUNTS, entities, kind, type_flaw
from loadprint.reading.queries import Store
from loadprint.reading.run_documents import ColumnMeaning, TableMeaning
from loadprint.reading.units import unit_flaw
from profiles import OLTP, document, profiled, write_stacks
from recordings import (
    SECOND,
    Host,
    Tables,
    agreed,
    change_column,
    change_json,
    change_metadata,
    change_rows,
    make_execution,
    make_matrix,
    make_run,
    read_lines,
    write_json,
    write_lines,
    write_manifest,
)
from spoiling import DAMAGES, Damage, device, fifo, flip, spoiled, truncate

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "tests/recordings/v1"
PROBES = Path(declared_tables.__file__).with_name("probes.json")
# kinds of files of recordings and of documents
RECORDED = {
    "every": (
        *("run.json", "manifest.json", "load/*.json", "server/*.json", "load/phases.jsonl"),
        *("server/ticks.parquet", "load/throughput.parquet", "server/*.parquet"),
    ),
    "latencies": ("load/latency.parquet",),
    "hidden-index": ("*.json", "load/*.json", "load/*.jsonl"),
    "pair": ("execution.json", "b3-b-r3/*/*.json", "b3-b-r3/*/*.parquet"),
    "matrix": ("execution.json", "b1-x-t32-r1/*/*.json"),
}
FORMATS = ("text", "markdown", "csv", "json")
DOCUMENTS: dict[str, tuple[str, list[str]]] = {
    "quick.yml": ("ansible/campaigns", ["campaign"]),
    "versions.yml": ("ansible/campaigns", ["campaign"]),
    "ab-thp.yml": ("docs/examples", ["ab", "plan"]),
    "qualify-quick.yml": ("docs/examples", ["qualify", "x", "y", "--spec"]),
    "dynimize.yml": ("ansible/campaigns/studies", ["study"]),
    "hammerdb_blog_sar.csv": ("docs/published", ["import", "table"]),
    "go_vs_sysbench_qps.csv": ("docs/published", ["usl"]),
    "dynimize_sample.csv": ("docs/published", ["ab", "show"]),
    "restart.json": ("tests/fixtures/sysstat", ["import", "sar"]),
    "query_range.json": ("tests/fixtures/import", ["import", "prometheus"]),
}
KINDS = [(base, pattern) for base, patterns in RECORDED.items() for pattern in patterns]
KINDS += [("documents", name) for name in DOCUMENTS]
CASES = [
    pytest.param((base, pattern), damage, draw, id=f"{base}/{pattern} {damage.__name__} {draw}")
    for base, pattern in KINDS
    for damage, draws in (DAMAGES[Path(pattern).suffix] | ({fifo: 1} if base in RECORDED else {})).items()
    for draw in range(draws)
]


def commands(base: str, bad: Path, good: Path, out: Path) -> list[list[list[Any]]]:
    """What reads a recording or a document, in every format; some are two commands."""
    if base == "documents":
        words = DOCUMENTS[bad.name][1]
        if bad.suffix == ".json":
            return [[[*words, bad, "--out", out / "run"], ["inspect", out / "run", "--format", "json"]]]
        formats = ("text", "csv") if bad.suffix == ".csv" else ()
        return [[[*words, bad, "--format", form]] for form in formats] or [[[*words, bad]]]
    report = ["report", bad, "-o", out / "page.html"]
    exported = ["export", bad, "--to", out / "fleet"]
    if base in ("hidden-index", "latencies"):  # only the report shows latencies of the whole run
        shown = [[["ab", "show", bad, "--format", form]] for form in FORMATS]
        return [*shown, [["inspect", bad]], [report]] if base == "hidden-index" else [[report]]
    if base == "matrix":
        return [*([[word, bad, "--format", form]] for word in ("sweep", "usl") for form in FORMATS), [report]]
    sides = [bad] if base == "pair" else [bad, KEPT / "insert"]
    compared = [[["compare", *sides, "--all", "--format", form]] for form in (*FORMATS, "html")]
    common = [*compared, [report], [["check", bad]], [exported, ["fleet", out / "fleet", "--format", "csv"]]]
    if base == "pair":
        junit = ["--junit", out / "junit.xml"]
        judged = [[["qualify", good, bad, "--format", form, *junit]] for form in FORMATS]
        return [*common, *judged, [["compare", f"{bad}:a", f"{good}:b", "--noise", bad]]]
    inspected = [[["inspect", bad, "--format", form]] for form in ("text", "json")]
    return [*common, *inspected, [["check", bad, "--format", "json"]]]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with the table of every probe."""

    def tables(ticks: range) -> Tables:
        return every_table(ticks) | profiled(server=OLTP)(ticks)

    run = make_run(tmp_path_factory.mktemp("good") / "run", replace(RICH, seconds=4, more=tables))
    write_stacks(run, {"server": OLTP})
    return run


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sides of three repeats each."""
    hosts = [Host(seconds=12, result=RICH.result, grown=RICH.grown)] * 3
    return make_execution(tmp_path_factory.mktemp("pair") / "x", {"a": hosts, "b": hosts}, "a")


@pytest.fixture(scope="module")
def bases(good: Path, pair: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """What is damaged: a run with all tables, a kept run, a kept experiment, repeats, a matrix, documents."""
    place = tmp_path_factory.mktemp("bases")
    (place / "documents").mkdir()
    for name, (folder, _) in DOCUMENTS.items():
        shutil.copy(ROOT / folder / name, place / "documents" / name)
    rates = {("x", n): [100 * n] for n in (1, 2, 4, 8, 16, 32)}
    made = {"every": good, "pair": pair, "matrix": make_matrix(place / "matrix", rates, "kind", "x")}
    ask("report", pair, "-o", place / "warm.html")  # imports everything once, for the processes of all cases
    kept = {"latencies": KEPT / "tproc_c", "hidden-index": KEPT / "hidden-index"}
    return made | kept | {"documents": place / "documents"}


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "damage", "draw"), CASES)
def test_a_damaged_file_is_read_or_refused_in_one_line(
    bases: dict[str, Path], tmp_path: Path, kind: tuple[str, str], damage: Damage, draw: int
) -> None:
    base, pattern = kind
    chance = random.Random(f"{base} {pattern} {damage.__name__} {draw}")
    bad, out = Path(shutil.copytree(bases[base], tmp_path / base)), tmp_path / "out"
    out.mkdir()
    file = chance.choice(sorted(bad.glob(pattern)))
    run = next((parent for parent in file.parents if (parent / "run.json").is_file()), None)
    apart(damage, file, chance)
    # a device has no checksum
    if run and damage is not device and file.name != "manifest.json" and chance.random() < 0.8:
        write_manifest(run)
    for words in chance.choice(commands(base, file if base == "documents" else bad, bases[base], out)):
        answer = bounded(*words)
        if answer.status == 2 and base in RECORDED:
            assert str(tmp_path) in answer.line or str(bases[base]) in answer.line, "names the place"
            assert "; " in answer.line, "names a fix"
            assert "out of memory" not in answer.line
    for path in out.glob("*.*"):
        printable(path.read_text(encoding="utf-8"))


Change = Callable[[Path], object]


def text(content: str) -> Change:
    return lambda path: path.write_text(content)


def value(*place: str | int, to: str) -> Change:
    """One value of a JSON file becomes this text."""
    return lambda path: path.write_text(spoiled(json.loads(path.read_text()), place, to))


def column(name: str, to: Any, kind: pa.DataType) -> Change:
    """A column of a table has this value in all rows."""
    return lambda path: change_column(path, name, lambda _: to, kind)


def unit(name: str, found: str | None, key: str = "columns") -> Change:
    def change(described: dict[str, Any]) -> None:
        described.setdefault(key, {})[name] = {"unit": found}

    return lambda path: change_metadata(path, change)


def stacks(**change: Any) -> Change:
    return lambda path: write_json(path, document(OLTP)[0] | change)


def link(path: Path) -> None:
    """The file becomes a link to the same file of the reader's, outside of the run."""
    kept = Path(tempfile.mkdtemp(dir=path.parents[2])) / path.name
    path.rename(kept)
    path.symlink_to(kept)


def lists_outside(path: Path) -> None:
    """The manifest would reveal whether a file of the reader has a certain content."""
    secret = path.parents[1] / "secret"
    secret.write_text("secret")
    manifest = json.loads(path.read_text())
    manifest["files"][f"../{secret.name}"] = {"bytes": 6, "crc32c": "00000000"}
    write_json(path, manifest)


def unlike_buckets(path: Path) -> None:
    change_rows(path, lambda row: {**row, "buckets": [1] * (1 + (row["side"] == "opened"))})


def swapped_phases(path: Path) -> None:
    begin, end = read_lines(path)
    write_lines(path, [begin, end | {"monotonic_ns": begin["monotonic_ns"] - 1}])


UINTS, INTS = pa.list_(pa.uint64()), pa.list_(pa.int64())
TICKS, BLOCK, TCP, PROCESS = (
    f"server/{name}.parquet" for name in ("ticks", "ebpf_block", "ebpf_tcp", "process")
)
RESULT, STACKS, PROFILE = "load/result.json", "server/stacks.json", "server/profile.parquet"
# figures would be wrong without these refusals, or their text answers a known mistake; the manifest agrees
REFUSED: list[tuple[str, Change, str]] = [
    ("run.json", text('{"format_version": 99}'), "format version 99"),
    ("run.json", value("format_version", to='"1"'), "`format_version` is text, not an integer"),
    ("run.json", value("roles", "server", "cpus", to='"0-99999999999"'), "is not a CPU list"),
    (RESULT, text('{"events": 5}'), "`seconds`"),
    (RESULT, value("events", to="NaN"), "NaN is not a number"),
    (RESULT, value("events", to="-5"), "`events` is -5, not a non-negative number"),
    (RESULT, value("events", to="5e-324"), "too small"),
    (RESULT, value("seconds", to="1" + "0" * 20), "an integer of 21 digits"),
    (RESULT, value("latency_ms", "p95", to="1e999"), "is too large"),
    ("load/phases.jsonl", text(""), "phase `measure` is missing"),
    ("load/phases.jsonl", swapped_phases, "ends before its start"),
    ("load/phases.jsonl", text("x\n{}\n"), "phases.jsonl line 1"),
    (TICKS, column("tick", 0.5, pa.float64()), "column `tick` is a real number, not an integer"),
    (TCP, column("port", 3306.5, pa.float64()), "column `port` is a real number, not text"),
    (TCP, column("port", None, pa.string()), "column `port` is not text in every row"),
    (TCP, unlike_buckets, "another number of buckets in some row"),
    (BLOCK, column("buckets", [-1], INTS), "is not a count in some row"),
    (BLOCK, column("buckets", [2**63], UINTS), "is not a count in some row"),
    (BLOCK, column("buckets", [1, None], UINTS), "is null in some row"),
    ("server/disk.parquet", unit("writes", "furlong"), "`writes` has the unit `furlong`, which is not known"),
    ("server/disk.parquet", unit("writes", None), "column `writes` has no unit"),
    (PROCESS, unit("utime", "kB"), "has the unit `kB`, expected `tick`"),
    ("server/mysql.parquet", unit("Innodb_row_lock_time", "B", "metrics"), "has the unit `B`, expected `ms`"),
    ("load/throughput.parquet", unit("latency_p95_ms", "s"), "has the unit `s`, expected `ms`"),
    (PROFILE, column("samples", None, pa.int64()), "`samples` is not a count in every row"),
    (PROFILE, column("stack", "9999", pa.string()), "nodes that are not in stacks.json"),
    (STACKS, stacks(nodes=[[-1, 0], [-2, 0]]), "`nodes[1]`: its parent is not an earlier node"),
    (STACKS, stacks(nodes=[[-1, 10_000]]), "`nodes[0]`: its frame is not in `frames`"),
    (STACKS, stacks(nodes=[[-1, 0], [0]]), "`nodes` is not a list of pairs of integers"),
    (STACKS, stacks(frames=[[99, "main"]]), "`frames[0]`: its module is not in `modules`"),
    (STACKS, stacks(frequency_hz=0), "`frequency_hz` is missing or 0"),
]
LINK = "is a link to a file outside of the run directory"
# the manifest does not
UNVERIFIED: list[tuple[str, Change, str]] = [
    ("run.json", Path.unlink, "contains no run.json"),
    ("run.json", text('{"status": "complete"}'), "loadprint-collect finish"),
    ("server/journal", text("LPJRNL"), "loadprint-collect finish"),
    ("server/nic.parquet", Path.unlink, "does not exist"),
    *((name, link, LINK) for name in ("run.json", "server/cpu.parquet", "server")),
    ("manifest.json", lists_outside, "is in manifest.json and outside of the run directory"),
]


@pytest.fixture
def bad(good: Path, tmp_path: Path) -> Path:
    """A copy to damage."""
    return Path(shutil.copytree(good, tmp_path / "bad"))


@pytest.mark.parametrize(("name", "change", "expected"), REFUSED)
def test_a_change_is_refused(good: Path, bad: Path, name: str, change: Change, expected: str) -> None:
    change(bad / name)
    agreed(bad / name)
    line = refused("compare", bad, good)
    assert expected in line
    assert str(bad / name) in line or str(bad) in line


@pytest.mark.parametrize(("name", "change", "expected"), UNVERIFIED)
def test_a_file_that_the_manifest_does_not_describe_is_refused(
    good: Path, bad: Path, name: str, change: Change, expected: str
) -> None:
    change(bad / name)
    line = refused("compare", bad, good)
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
    assert "loadprint-collect finish" in refused("compare", bad, good)


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
    for side, run in (("", "b1-insert-r1"), (":oltp", "b1-oltp-r1")):
        line = refused("inspect", f"{execution}{side}")
        assert "is an execution, or a side of one, of several runs; give one run" in line
        assert f"{execution}/{run}" in line


def test_an_output_that_cannot_be_written(execution: Path) -> None:
    assert "name another file" in refused("compare", execution, "-o", execution / "no" / "x.txt")


def test_an_execution_names_no_run_elsewhere(own_execution: Path) -> None:
    value("runs", 0, "id", to='"../elsewhere"')(own_execution / "execution.json")
    assert "execution.json" in refused("compare", own_execution)


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
    assert "fewer than two ticks" in refused("compare", bad, good)


def test_different_hosts_are_reported_before_any_number(good: Path, bad: Path) -> None:
    change_json(bad / "server/fingerprint.json", host="db2", cpus={"model": "Other CPU", "list": []})
    answer = ask("compare", good, bad)
    assert answer.status == 0
    assert "Other CPU" in answer.out.partition("Throughput")[0]


@pytest.mark.slow
def test_a_cut_or_a_flipped_bit_is_refused_or_changes_no_figure(tmp_path: Path) -> None:
    """By the checksums of the manifest."""
    good, bad = make_run(tmp_path / "good", RICH), make_run(tmp_path / "bad", RICH)
    whole, chance = ask("compare", bad, good, "--format", "json").cells, random.Random(1)
    for file in sorted(file for file in bad.rglob("*") if file.is_file()):
        kept = file.read_bytes()
        for damage in (truncate, flip, flip):
            damage(file, chance)
            answer = ask("compare", bad, good, "--format", "json")
            assert answer.status == 2 or (answer.cells == whole and damage is flip), file
            file.write_bytes(kept)


def test_without_a_manifest_the_table_reports_that_files_are_unverified(bad: Path) -> None:
    (bad / "manifest.json").unlink()
    assert "manifest.json is missing" in ask("compare", KEPT / "insert", bad, "--verbose").out


def without(pair: Path, tmp_path: Path, *files: str) -> Path:
    """A copy of the execution without some files, and manifests that agree."""
    copy = Path(shutil.copytree(pair, tmp_path / "x"))
    for file in files:
        (copy / file).unlink()
        write_manifest(copy / Path(file).parts[0])
    return copy


def test_a_repeat_without_a_result_is_named_and_the_others_count(pair: Path, tmp_path: Path) -> None:
    copy = without(pair, tmp_path, "b2-b-r2/load/result.json")
    whole, actual = (ask("compare", path, "--format", "json") for path in (pair, copy))
    rows = [row for row in actual.cells if row[1] == "operations"]
    kept = whole.cells[rows[0]][1]["repeats"]
    assert actual.cells[rows[0]][1]["repeats"] == [kept[0], None, kept[2]]
    assert "missing in b2-b-r2, 1 of 3 repeats: load/result.json is missing" in ask("compare", copy).out


@pytest.mark.parametrize(
    "file",
    [
        *("load/result.json", "load/server.json", "load/phases.jsonl", "load/throughput.parquet"),
        *("server/fingerprint.json", "server/ticks.parquet", "server/cpu.parquet", "server/process.parquet"),
        *("server/disk.parquet", "manifest.json"),
    ],
)
def test_one_repeat_of_each_side_lacks_a_file(pair: Path, tmp_path: Path, file: str) -> None:
    """The first repeat of a side, whose facts stand for it, and another one of the other side lack it."""
    copy = without(pair, tmp_path, *(f"{run}/{file}" for run in ("b1-a-r1", "b3-b-r3") if file))
    answer = ask("compare", copy, "--format", "json")
    assert answer.status == (2 if file == "load/phases.jsonl" else 0), answer.line


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
        return  # this process has read the former content
    assert json.loads(PROBES.read_text(encoding="utf-8")) == json.loads(json.dumps(written))
    for probe in declared():
        assert set(probe.entities) <= {*entities(probe.name, TableMeaning()), "pid", "tid"}
        assert not entities(probe.name, TableMeaning()) & probe.columns.keys()
        columns = {name: ColumnMeaning(unit=unit) for name, unit in probe.units.items()}
        assert not unit_flaw(probe.name, TableMeaning(columns=columns))


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
    assert type_flaw("cpu", TableMeaning(), [(name, kind(of)) for name, of in types.items()]) == ""
    assert kind(pa.list_(pa.opaque(pa.uint64(), "type", "vendor"))) == COUNTS
    assert "is struct<a: int64>" in type_flaw(
        "cpu", TableMeaning(), [("x", kind(pa.opaque(pa.struct([("a", pa.int64())]), "type", "vendor")))]
    )


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
