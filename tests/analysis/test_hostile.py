"""Damaged and malicious recordings: bounded memory, one line of error, printable text."""

from __future__ import annotations

import csv
import io
import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from damage import RICH, ask
from loadprint.printable import printable
from loadprint.reading import bounds
from recordings import (
    Host,
    agreed,
    change_column,
    change_json,
    change_rows,
    make_execution,
    make_run,
    write_latencies,
    write_manifest,
)

HERE = Path(__file__).parent
KEPT = HERE.parent / "recordings" / "v1"
MOST_KIB = 1_000_000_000 // 1024
WORKERS = 2
CASES = 160  # two minutes on two cores
FLIPS = 200
OWNED = "\x1b]0;owned\x07\x1b[2J\u202e\x85"


def peak(*words: object) -> tuple[int, str, int]:
    """Status, errors, and the most memory that a command held, in KiB.

    VmHWM starts at 0 at exec(2); ru_maxrss of getrusage(2) starts at what the parent held when it forked.
    """
    script = (
        "import re, sys; from loadprint.__main__ import main; status = main(sys.argv[1:]);"
        "most = re.search(r'VmHWM:\\s*(\\d+)', open('/proc/self/status').read());"
        "print(most[1], file=sys.stderr); sys.exit(status)"
    )
    command = [sys.executable, "-c", script, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    *errors, most = done.stderr.splitlines()
    return done.returncode, "\n".join(errors), int(most)


def bounded(*words: object) -> tuple[int, str]:
    """Status and errors of a command, whose memory must be bounded."""
    status, errors, most = peak(*words)
    assert most < MOST_KIB
    return status, errors


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A copy of a kept run, to spoil."""
    return Path(shutil.copytree(KEPT / "oltp", tmp_path / "run"))


def refused(run: Path, wanted: str, *commands: str) -> None:
    """Commands refuse a run in one line, in bounded memory, though its manifest agrees with it."""
    write_manifest(run)
    for command in commands:
        out = ["-o", run.parent / "page.html"] if command == "report" else []
        status, errors = bounded(command, run, *([KEPT / "insert"] if command == "compare" else []), *out)
        assert (status, errors.count("\n")) == (2, 0), errors
        assert wanted in errors


@pytest.mark.slow
def test_damaged_recordings(tmp_path: Path) -> None:
    """Every file of a run spoiled in many ways, and every command that reads it (fuzzing.py)."""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    workers = [
        subprocess.Popen(
            [sys.executable, HERE / "fuzzing.py", *map(str, (first, WORKERS, CASES))],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=HERE,
            env=environment,
        )
        for first in range(WORKERS)
    ]
    said = [worker.communicate()[0] for worker in workers]
    assert said == [""] * WORKERS, "\n".join(said)
    assert [worker.returncode for worker in workers] == [0] * WORKERS


@pytest.mark.slow
def test_a_cut_or_a_flipped_bit_is_refused_or_changes_no_figure(tmp_path: Path) -> None:
    """By the checksums of the manifest; every file in turn: small ones are met as often as large ones."""
    good, bad = make_run(tmp_path / "good", RICH), make_run(tmp_path / "bad", RICH)
    whole, chance = ask("compare", bad, good, "--format", "json").cells, random.Random(1)
    files = sorted(file for file in bad.rglob("*") if file.is_file())
    for number in range(FLIPS):
        file = files[number % len(files)]
        kept = file.read_bytes()
        offset = chance.randrange(len(kept))
        flipped = bytes([kept[offset] ^ 1 << number % 8])
        for damaged in (kept[:offset], kept[:offset] + flipped + kept[offset + 1 :]):
            file.write_bytes(damaged)
            answer = ask("compare", bad, good, "--format", "json")
            assert answer.status == 2 or (answer.cells == whole and len(damaged) == len(kept)), (file, offset)
        file.write_bytes(kept)


def test_without_a_manifest_the_table_reports_that_files_are_unverified(run: Path) -> None:
    (run / "manifest.json").unlink()
    assert "manifest.json is missing" in ask("compare", KEPT / "insert", run, "--verbose").out


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sides of three repeats each."""
    host = Host(seconds=12, result=RICH.result, grown=RICH.grown)
    return make_execution(tmp_path_factory.mktemp("pair") / "x", {"a": [host] * 3, "b": [host] * 3}, "a")


def without(pair: Path, tmp_path: Path, *files: str) -> Path:
    """A copy of the execution without some files, and manifests that agree."""
    copy = Path(shutil.copytree(pair, tmp_path / "x"))
    for file in files:
        (copy / file).unlink()
        write_manifest(copy / Path(file).parts[0])
    return copy


@pytest.mark.slow
def test_a_repeat_without_a_result_is_named_and_the_others_count(pair: Path, tmp_path: Path) -> None:
    spoiled = without(pair, tmp_path, "b2-b-r2/load/result.json")
    whole, actual = (ask("compare", path, "--format", "json") for path in (pair, spoiled))
    rows = [row for row in actual.cells if row[1] == "operations"]
    kept = whole.cells[rows[0]][1]["repeats"]
    assert actual.cells[rows[0]][1]["repeats"] == [kept[0], None, kept[2]]
    assert "missing in b2-b-r2, 1 of 3 repeats: load/result.json is missing" in ask("compare", spoiled).out
    assert peak("report", spoiled, "-o", tmp_path / "page.html")[0] == 0


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
    spoiled = without(pair, tmp_path, *(f"{run}/{file}" for run in ("b1-a-r1", "b3-b-r3") if file))
    answer = ask("compare", spoiled, "--format", "json")
    assert answer.status == (2 if file == "load/phases.jsonl" else 0), answer.line


@pytest.mark.parametrize(("events", "seconds"), [("1000000000000000000", "1e-17"), ("1e-17", "1e17")])
def test_values_at_the_ends_of_the_range_have_ratios_in_finite_numbers(
    pair: Path, tmp_path: Path, events: str, seconds: str
) -> None:
    spoiled = Path(shutil.copytree(pair, tmp_path / "x"))
    result = spoiled / "b2-b-r2" / "load" / "result.json"
    output = json.loads(result.read_text()) | {"events": "EVENTS", "seconds": "SECONDS"}
    result.write_text(json.dumps(output).replace('"EVENTS"', events).replace('"SECONDS"', seconds))
    write_manifest(result.parents[1])
    for form in ("json", "text"):
        assert ask("compare", spoiled, "--format", form).status == 0


def test_text_of_a_recording_is_printable_wherever_it_goes(tmp_path: Path) -> None:
    """A name that sets a terminal's title, reverses its text, or is not UTF-8."""
    made = [make_run(tmp_path / name, RICH, side=f"{name}{OWNED}") for name in ("a", "b")]
    for run in made:
        meta = json.loads((run / "run.json").read_text())
        text = json.dumps({**meta, "reason": OWNED, "workload": "SURROGATE"}).replace("SURROGATE", r"\ud800")
        (run / "run.json").write_text(text)
        write_manifest(run)
    commands: list[tuple[object, ...]] = [
        ("compare", *made, "--format", form) for form in ("text", "markdown", "csv", "json", "html")
    ]
    commands += [("inspect", made[0], "--format", form) for form in ("text", "json")]
    for words in commands:
        assert "\ufffd" in ask(*words).out


def test_an_error_is_printable_for_every_path(tmp_path: Path) -> None:
    assert ask("inspect", tmp_path / f"no{OWNED}").status == 2
    place = os.fsdecode(os.fsencode(tmp_path) + b"/\xff")
    shutil.copytree(KEPT / "oltp", place)
    for words in (("inspect", place), ("compare", place, KEPT / "insert"), ("inspect", f"{place}x")):
        done = subprocess.run(
            [sys.executable, "-m", "loadprint", *map(os.fsencode, map(str, words))],
            capture_output=True,
            check=False,
        )
        assert done.returncode in (0, 2)
        assert b"Traceback" not in done.stderr


def test_printable_text_is_left_alone() -> None:
    for text in ("", "µs – 100 % naïve 数据", "a" * 10_000):
        assert printable(text) is text
    assert printable("a\tb\nc\x1b[0m") == "a b c\ufffd[0m"


def test_a_spreadsheet_computes_nothing_of_a_csv(tmp_path: Path) -> None:
    names = ("=HYPERLINK(1)", "@SUM(1)")
    runs = [make_run(tmp_path / f"r{n}", RICH, side=name) for n, name in enumerate(names)]
    rows = list(csv.DictReader(io.StringIO(ask("compare", *runs, "--format", "csv").out)))
    assert {row["side"] for row in rows} == {f"'{name}" for name in names}
    differences = [row["difference"] for row in rows if row["difference"]]
    assert all(float(value) is not None for value in differences)
    assert not any(row["value"].startswith("'") for row in rows)


def test_markup_of_a_recording_is_text_in_markdown(tmp_path: Path) -> None:
    names = ("<img src=x onerror=alert(1)>", "[x](http://example.com)")
    runs = [make_run(tmp_path / f"r{n}", RICH, side=name) for n, name in enumerate(names)]
    output = ask("compare", *runs, "--format", "markdown").out
    assert "<img" not in output.replace("\\<img", "")
    assert "](http" not in output.replace("]\\(http", "")


def test_a_stamp_far_from_the_run_is_refused(run: Path) -> None:
    path = run / "load/throughput.parquet"
    last = pc.max(pq.read_table(path)["second"]).as_py()
    change_column(path, "monotonic_ns", lambda row: row["monotonic_ns"] + 10**18 * (row["second"] == last))
    refused(run, "is outside of phase `measure`", "report")


def test_a_tick_far_from_the_run_makes_no_larger_chart(run: Path) -> None:
    path = run / "server/ticks.parquet"
    last = pc.max(pq.read_table(path)["tick"]).as_py()
    stamps = ("start_ns", "end_ns", "intended_ns")

    def far(row: dict[str, Any]) -> dict[str, Any]:
        return row | {name: row[name] + 10**18 for name in stamps} if row["tick"] == last else row

    change_rows(path, far)
    status, errors = bounded("report", run, "-o", run.parent / "page.html")
    assert status == 0, errors


def test_many_cpus_at_a_tick_each_make_no_matrix_of_both(run: Path) -> None:
    """144 million cells of 12,000 rows."""
    path, count = run / "server/cpu.parquet", 12_000
    table = pq.read_table(path)
    more = table.take([0] * count)
    for name, values in (("tick", np.arange(count) + 1000), ("cpu", np.arange(count).astype(str))):
        field = table.schema.field(name)
        more = more.set_column(table.schema.get_field_index(name), field, pa.array(values).cast(field.type))
    pq.write_table(pa.concat_tables([table, more]), path)
    roles = json.loads((run / "run.json").read_text())["roles"]
    change_json(run / "run.json", roles={**roles, "server": {**roles["server"], "cpus": f"0-{count - 1}"}})
    status, errors = bounded("report", run, "-o", run.parent / "page.html")
    assert status == 0, errors


def test_a_million_different_buckets_are_refused(run: Path) -> None:
    path = write_latencies(run, "event", [[1]]) / "load/latency.parquet"
    table = pq.read_table(path)
    more = table.take([0] * (bounds.BUCKETS + 1))
    for name, values in (("from_ns", np.arange(len(more))), ("to_ns", np.arange(len(more)) + 1)):
        more = more.set_column(table.column_names.index(name), name, pa.array(values))
    pq.write_table(more.replace_schema_metadata(table.schema.metadata), path)
    refused(run, "more than 1,048,576 different buckets", "report")


def test_millions_of_ticks_are_refused_by_their_number(run: Path) -> None:
    path = run / "server" / "ticks.parquet"
    table = pq.read_table(path)
    with pq.ParquetWriter(path, table.schema, compression="zstd") as writer:
        for _ in range(bounds.TICKS // 1_000_000 + 1):
            writer.write_table(table.take(pa.array(np.arange(1_000_000) % len(table), pa.int64())))
    refused(run, "9,000,000 rows, more than the limit of 8,000,000", "compare", "report")


def with_long_texts(run: Path, name: str, column: str, words: int) -> Path:
    """20,000 rows of one text: of a million characters, they are 20 GB in a file of 60 kB."""
    path = run / "server" / name
    table, count = pq.read_table(path), 20_000
    long = pa.DictionaryArray.from_arrays(np.zeros(count, np.int32), pa.array(["long " * words]))
    table = table.take(pa.array(np.sort(np.arange(count) % len(table)), pa.int64()))
    others = [name for name in table.column_names if name != column]
    pq.write_table(table.select(others).append_column(column, long), path)
    return agreed(path)


@pytest.mark.parametrize("words", [200_000, 2000])
def test_long_reasons_are_cut_or_refused(run: Path, words: int) -> None:
    with_long_texts(run, "ticks.parquet", "reason", words)
    actual, errors = bounded("compare", run, KEPT / "insert")
    # whether DuckDB's own bound of memory is met depends on how many threads decode at once
    assert (actual, errors) == (0, "") or (actual == 2 and errors.count("\n") == 0)


def test_many_rows_of_text_are_the_same_as_few(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts that are fetched once each, and those that are fetched row by row."""
    from loadprint.reading import queries  # noqa: PLC0415

    def fetched() -> list[list[Any]]:
        store = queries.Store()
        rows = store.fetch(run / "server" / "ticks.parquet", "SELECT probe, reason, tick FROM t")
        return [column.tolist() for column in rows.values()]

    few = fetched()
    monkeypatch.setattr(queries, "FEW", 30)
    assert fetched() == few
