"""Malicious texts and documents: printable output, and limits of what they may cost."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from damage import RICH, ask, bounded
from loadprint.commands.campaign.campaign_file import load
from loadprint.configuration import document
from loadprint.configuration.document import DocumentError, compose
from loadprint.printable import printable
from loadprint.reading import bounds
from programs import ROOT, ended
from recordings import change_json, make_run, write_json, write_latencies, write_manifest
from spoiling import ALIASES, OWNED

KEPT = ROOT / "tests/recordings/v1"
RESTART = ROOT / "tests/fixtures/sysstat/restart.json"
QUICK = ROOT / "ansible/campaigns/quick.yml"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A copy of a kept run, to damage."""
    return Path(shutil.copytree(KEPT / "oltp", tmp_path / "run"))


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
    assert bounded("report", run, "-o", run.parent / "page.html").status == 0


def test_a_million_different_buckets_are_refused(run: Path) -> None:
    path = write_latencies(run, "event", [[1]]) / "load/latency.parquet"
    table = pq.read_table(path)
    more = table.take([0] * (bounds.BUCKETS + 1))
    for name, values in (("from_ns", np.arange(len(more))), ("to_ns", np.arange(len(more)) + 1)):
        more = more.set_column(table.column_names.index(name), name, pa.array(values))
    pq.write_table(more.replace_schema_metadata(table.schema.metadata), path)
    write_manifest(run)
    answer = bounded("report", run, "-o", run.parent / "page.html")
    assert "more than 1,048,576 different buckets" in answer.line


def test_millions_of_ticks_are_refused_by_their_number(run: Path) -> None:
    path = run / "server" / "ticks.parquet"
    table = pq.read_table(path)
    with pq.ParquetWriter(path, table.schema, compression="zstd") as writer:
        for _ in range(bounds.TICKS // 1_000_000 + 1):
            writer.write_table(table.take(pa.array(np.arange(1_000_000) % len(table), pa.int64())))
    write_manifest(run)
    for words in (["compare", run, KEPT / "insert"], ["report", run, "-o", run.parent / "page.html"]):
        assert "9,000,000 rows, more than the limit of 8,000,000" in bounded(*words).line


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


HOSTILE = {
    "aliases": (ALIASES, "more than 10,000 values"),
    "merged aliases": (
        "a: &a {" + ",".join(f"k{n}: 1" for n in range(900)) + "}\nb: [" + ",".join(["{<<: *a}"] * 900) + "]",
        "more than 10,000 values",
    ),
    "keys of aliases": ("a: &a [x, x]\nb: &b [*a, *a]\n? [*b, *b]\n: 1", ":3: a key is not text"),
    "values": ("a:\n" + "- x\n" * 50_000, "more than 10,000 values"),
    "size": ("a: " + "x" * 300_000, "larger than 256 KiB"),
    "nesting": ("a: " + "[" * 5000 + "]" * 5000, "nested more than 32 levels"),
    "an alias to its parent": ("a: &a [*a]", "nested more than 32 levels"),
    "an unknown tag": ("a: 1\nb: !x y", ":2: unsupported tag !x"),
    "a tag of Python": ("a: !!python/object/apply:os.system [id]", "unsupported tag"),
    "an empty number": ('a: !!float ""', "unsupported tag"),
    "digits": ("a: " + "9" * 5000, "a number of 5000 characters"),
    "hexadecimal digits": ("a: 0x" + "f" * 200_000, "a number of 200002 characters"),
    "not a character": (r'a: "\UFFFFFFFF"', "not YAML"),
    "half a character": (r'a: "\ud800"', "control character"),
    "an escape sequence": (r'a: "\e]0;owned\a"', "control character"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_yaml_is_refused_in_one_line(case: str, tmp_path: Path) -> None:
    text, expected = HOSTILE[case]
    path = tmp_path / "a.yml"
    path.write_text(text + "\n", encoding="utf-8")
    with pytest.raises(DocumentError, match=expected) as raised:
        compose(path)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 3000


def test_an_override_is_limited_too() -> None:
    campaign = document.compose(QUICK)
    for value in ("[" * 500, "!x y", "9" * 500):
        with pytest.raises(DocumentError, match="--set repeats"):
            document.override(campaign, f"repeats={value}")
    document.override(campaign, "repeats=5")
    assert campaign.data["repeats"] == 5


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("9 ** 9 ** 99", "a power above 64"),
        ("9 ** 64 ** 64 ** 64", "of a number above"),
        ("'x' * 1000000000", "needs numbers"),
        ("'%1000000000d' % 1", "needs numbers"),
        ("1.5 | round(1000000000)", "round with more than 15 digits"),
        ("'{:>1000000000}'.format(1)", "not safely callable"),
        ("'x' | center(1000000000)", "No filter named 'center'"),
        ("range(99999) | list", "No filter named 'list'"),
        ("1 }}{% for a in 'x' %}{% endfor %}{{ 1", "a statement"),
        ("1 if false", "a condition without `else`"),
        ("'inf' | float | int", "name 'inf' is not defined"),
        ("x ~ x", "a value of more than 16384 characters"),
    ],
)
def test_an_expression_of_a_campaign_computes_in_limits(
    expression: str, expected: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.yml"
    variables = f'variables:\n  x: "{"x" * 9000}"\n  y: "{{{{ {expression} }}}}"\n'
    path.write_text(variables + QUICK.read_text(encoding="utf-8"), encoding="utf-8")
    with pytest.raises(DocumentError, match=expected):
        load(path)


MANY = "[" + ", ".join(map(str, range(1, 301))) + "]"


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        (f"sides.oltp.matrix={{threads: {MANY}, a: {MANY}, b: {MANY}, c: {MANY}}}", "columns, more than the"),
        ("slices.seconds=.inf", "not a duration"),
        ("slices.seconds=1e300", "not a duration"),
        ("server.redo_capacity=999999999999999999999999", "less than or equal"),
        ("sides.oltp.name='{threads:>1000000000}'", "cannot fill in"),
    ],
)
def test_a_plan_is_limited(override: str, expected: str) -> None:
    with pytest.raises(DocumentError, match=expected):
        load(QUICK, [override])


def test_the_runs_of_a_plan_are_limited() -> None:
    many = [f"sides.oltp.matrix={{threads: {MANY}}}", "reference=oltp-t1"]
    load(QUICK, [*many, "repeats=2"], scales=["sequential"])
    with pytest.raises(DocumentError, match="29,799 runs, more than the limit of 20,000"):
        load(QUICK, [*many, "repeats=99"], scales=["sequential"])


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
    assert expected in bounded(*command, path).line


def test_many_misprints_and_many_fits_are_limited(tmp_path: Path) -> None:
    """Each misprint was looked up in the list of all, and each N left out in turn."""
    path = tmp_path / "a.csv"
    path.write_text('metric,a,b\n"n",5,"1,234"\n' + '"m",5,"1,2"\nx,4,5\n' * 4990, encoding="utf-8")
    assert ask("import", "table", path).status == 0
    path.write_text("threads,tps\n" + "".join(f"{n},{n}\n" for n in range(1, 2001)), encoding="utf-8")
    assert "2,000 different N" in ask("usl", path).line


def test_a_key_that_is_repeated_at_the_end_of_many_is_refused(tmp_path: Path) -> None:
    """Each key was looked up in the list of all."""
    path = tmp_path / "a.json"
    keys = ",".join(f'"{key}":0' for key in range(300_000))
    path.write_text(f'{{{keys},"299999":1}}', encoding="utf-8")
    line = ask("import", "prometheus", path, "--out", tmp_path / "run").line
    assert "has the key `299999` twice in one object" in line


# ends the command as soon as it opens a file of the imported run
TERMINATED = """
import os, signal, sys
from loadprint.__main__ import main

number = int(sys.argv.pop(1))
signal.signal(signal.SIGINT, signal.default_int_handler)  # a command in the background ignores it

def ended(event, arguments):
    global number
    if number and event == "open" and "loadprint-import-" in str(arguments[0]):
        given, number = number, 0
        os.kill(os.getpid(), given)

sys.addaudithook(ended)
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_terminated_command_leaves_no_directory(tmp_path: Path, number: signal.Signals) -> None:
    """A signal while the imported run is written: its directory and DuckDB's are removed."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    words = (str(int(number)), "compare", *[str(RESTART)] * 2)
    command = [sys.executable, "-c", TERMINATED, *words]
    assert ended(command, (128 + number,), env={**os.environ, "TMPDIR": str(temporary)}) == ""
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
    output = (tmp_path / "out.json").read_text(encoding="utf-8")
    assert "secret" not in output
    printable(output)
