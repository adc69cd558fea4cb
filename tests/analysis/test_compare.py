"""Whole comparisons against golden outputs, and what a cell may claim."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import insert, oltp
from loadprint.commands.operands import resolve
from loadprint.commands.registry import COMMANDS
from loadprint.comparison.compare_sides import compare
from loadprint.judging.findings import Verdict
from loadprint.rendering import render_csv, render_json, render_markdown, render_text
from loadprint.tables import views
from loadprint.tables.table import Row, Table, Versus
from recordings import Host, make_execution, make_run, write_json, write_manifest

Golden = Callable[[str, str], None]


def table_of(*words: Path | str, reference: str | None = None) -> Table:
    """The whole comparison; the command applies views to it."""
    sides, declared = resolve([str(word) for word in words])
    return compare(sides, reference or declared)


def row(table: Table, key: str) -> Row:
    actual = table.row(key)
    assert actual is not None
    return actual


def versus(table: Table, key: str) -> Versus:
    actual = next(v for v in row(table, key).versus if v is not None)
    return actual


def verdict(table: Table, key: str) -> Verdict:
    return next(each for each in table.verdicts if each.key == key)


def test_text(execution: Path, golden: Golden) -> None:
    text = render_text.render(views.usual(table_of(execution)))
    assert max(map(len, text.splitlines())) <= render_text.WIDTH
    golden("three_repeats.txt", text)


def test_markdown(execution: Path, golden: Golden) -> None:
    golden("three_repeats.md", render_markdown.render(views.usual(table_of(execution))))


def test_csv(execution: Path, golden: Golden) -> None:
    text = render_csv.render(views.all_of(table_of(execution)))
    golden("three_repeats.csv", text)
    rows = {(r["metric"], r["side"]): r for r in csv.DictReader(io.StringIO(text))}
    assert float(rows["disk_vda_write_kb", "oltp"]["value"]) == pytest.approx(1600 * 512)
    assert float(rows["latency_mean", "oltp"]["value"]) == pytest.approx(0.010)


def test_json(execution: Path, golden: Golden) -> None:
    text = render_json.render(views.shown(table_of(execution), only_costs=True))
    assert json.loads(text)["reference"] == "oltp"
    golden("costs.json", text)


def test_one_repeat_has_no_interval_and_no_verdict(tmp_path: Path, golden: Golden) -> None:
    execution = make_execution(tmp_path / "x", {"oltp": [oltp(), oltp(1)], "insert": [insert()]}, "oltp")
    table = table_of(execution)
    compared = [v for group in table.groups for r in group.rows for v in r.versus if v]
    assert all(v.low is None and v.mark == "" for v in compared)
    golden("few_repeats.txt", render_text.render(views.usual(table)))


def test_the_same_operation_carries_verdicts_and_ratios(tmp_path: Path, golden: Golden) -> None:
    slower = [replace(oltp(k), events=80 + k, server_ticks={"utime": 14 + k, "stime": 3}) for k in (0, 1, 2)]
    execution = make_execution(tmp_path / "x", {"old": [oltp(k) for k in (0, 1, 2)], "new": slower}, "old")
    table = table_of(execution)
    assert versus(table, "operations").mark == "worse"
    assert versus(table, "server_cpu_per_operation").mark == "worse"
    assert versus(table, "disk_vda_reads").mark == "~"
    assert table.row("server_cpu_per_statement") is None
    golden("same_operation.txt", render_text.render(views.usual(table)))


def test_three_sides_take_a_table_each(tmp_path: Path, golden: Golden) -> None:
    sides = {name: [oltp(k + n) for k in (0, 1, 2)] for n, name in enumerate(("base", "first", "second"))}
    table = table_of(make_execution(tmp_path / "x", sides, "base"))
    text = render_text.render(views.shown(table, only_costs=True))
    assert max(map(len, text.splitlines())) <= render_text.WIDTH
    golden("three_sides.txt", text)


def test_different_operations_have_values_and_no_ratio(execution: Path) -> None:
    table = table_of(execution)
    actual = versus(table, "server_cpu_per_operation")
    assert (actual.kind, actual.centre) == ("none", None)
    assert "different operations" in "; ".join(actual.notes)
    assert row(table, "server_cpu_per_operation").cells[0].value == pytest.approx(0.12 / 101, rel=1e-3)
    assert versus(table, "server_cpu_per_commit").kind == "ratio"


def test_the_reference_can_be_named(execution: Path) -> None:
    ahead, back = table_of(execution), table_of(execution, reference="insert")
    a, b = versus(ahead, "statements").centre, versus(back, "statements").centre
    assert a is not None
    assert b == pytest.approx(1 / a)
    assert back.sides[0].name == "oltp"


def test_percentages_differ_in_points(execution: Path) -> None:
    assert versus(table_of(execution), "cpu_server_iowait").points == pytest.approx(-10.0)


def test_a_base_of_zero_and_a_zero_repeat(tmp_path: Path) -> None:
    quiet = [replace(oltp(k), disks={"vda": {"writes": 10}}) for k in (0, 1, 2)]
    patchy = [
        replace(oltp(k), disks={"vda": {"writes": 10, "reads": 9 * k, "read_sectors": 8}}) for k in (0, 1, 2)
    ]
    table = table_of(make_execution(tmp_path / "x", {"quiet": quiet, "patchy": patchy}, "quiet"))
    assert versus(table, "disk_vda_read_kb").kind == "inf"
    assert versus(table, "disk_vda_flushes").kind == "?"
    back = table_of(tmp_path / "x", reference="patchy")
    actual = versus(back, "disk_vda_reads")
    assert actual.kind == "difference"
    assert actual.centre == pytest.approx(-9.0)
    wait = row(table, "disk_vda_r_await")
    assert wait.cells[0].value is None
    assert "nothing to divide by" in "; ".join(wait.cells[0].notes)


def test_missing_repeats_are_listed_with_their_reasons(execution: Path) -> None:
    failed = execution / "b2-oltp-r2" / "run.json"
    write_json(
        failed, json.loads(failed.read_text()) | {"status": "failed", "reason": "the server died: signal 9"}
    )
    for file in sorted((execution / "b3-oltp-r3").rglob("*"), reverse=True):
        file.unlink() if file.is_file() else file.rmdir()
    table = table_of(execution)
    assert table.sides[0].missing == (
        ("b2-oltp-r2", "failed: the server died: signal 9"),
        ("b3-oltp-r3", "its run.json is missing"),
    )
    assert "the server died" in dict(table.facts)["repeats"]


def test_a_spoiled_repeat_is_missing_and_the_others_are_compared(execution: Path) -> None:
    (execution / "b2-oltp-r2" / "load" / "result.json").write_text("{")
    table = table_of(execution)
    assert [run for run, _ in table.sides[0].missing] == ["b2-oltp-r2"]
    assert "result.json" in table.sides[0].missing[0][1]
    assert row(table, "operations").cells[0].value is not None


def test_a_missing_probe_says_why(execution: Path) -> None:
    for run in execution.glob("b*"):
        path = run / "server" / "ticks.parquet"
        ticks = pq.read_table(path)
        kept = pa.Table.from_pylist(
            [row for row in ticks.to_pylist() if row["probe"] != "threads"], ticks.schema
        )
        described = json.loads(ticks.schema.metadata[b"loadprint"])
        described["probes"] = [
            {"name": "threads", "status": "unavailable", "reason": "no right to read /proc/900/task"}
        ]
        pq.write_table(kept.replace_schema_metadata({"loadprint": json.dumps(described)}), path)
        write_manifest(run)
    table = table_of(execution)
    switches = row(table, "switches_server")
    assert switches.cells[0].value is None
    assert "no right to read" in "; ".join(switches.cells[0].notes)


def test_a_client_bound_side_is_warned_of_and_has_no_verdict(tmp_path: Path) -> None:
    busy = {"0": dict(oltp().cpus["0"]), "1": {"user": 80, "system": 5, "idle": 15}}
    sides = {
        "a": [oltp(k) for k in (0, 1, 2)],
        "b": [replace(oltp(k), events=50 + k, cpus=busy) for k in (0, 1, 2)],
    }
    table = table_of(make_execution(tmp_path / "x", sides, "a"))
    bound = verdict(table, "client-bound")
    assert bound.answer == "yes"
    assert "a no: busiest thread 33 %" in bound.text
    assert "b yes: its CPUs 85 % (limit 80 %)" in bound.text
    assert versus(table, "operations").mark == "*"
    for each in (each for group in table.groups for each in group.rows):
        said = ["client-bound" in "; ".join(cell.notes) for cell in each.cells]
        assert said == [False, each.cells[1].value is not None], each.key


def test_a_side_that_drifts_never_settled_and_inserts_are_exempt(tmp_path: Path) -> None:
    def falling(second: int) -> int:
        return 200 - 4 * second + second % 3

    sides = {"a": [oltp(k) for k in (0, 1, 2)], "b": [replace(oltp(k), series=falling) for k in (0, 1, 2)]}
    table = table_of(make_execution(tmp_path / "x", sides, "a"))
    assert any(text.startswith("b never settled") for text in table.warnings)
    inserts = {
        "a": [insert(k) for k in (0, 1, 2)],
        "b": [replace(insert(k), series=falling) for k in (0, 1, 2)],
    }
    assert not any(
        "settled" in text for text in table_of(make_execution(tmp_path / "y", inserts, "a")).warnings
    )


def test_settings_that_differ_are_told_material_or_harmless(tmp_path: Path) -> None:
    relaxed = Host(variables={"innodb_flush_log_at_trx_commit": "2", "port": "3307"})
    a, b = make_run(tmp_path / "a"), make_run(tmp_path / "b", relaxed)
    table = table_of(a, b)
    assert table.verdicts[0].key == "comparable"
    told = "durability: commit redo synced | redo written, synced every 1 s"
    assert (table.verdicts[0].answer, table.verdicts[0].text) == ("no", told)
    assert dict(table.facts)["differs"] == told
    assert dict(table.facts)["harmless"] == "differ without effect: port"


def test_connections_that_share_threads_are_told_and_material(tmp_path: Path) -> None:
    a, b = make_run(tmp_path / "a"), make_run(tmp_path / "b")
    assert "connections" not in dict(table_of(a, b).facts)
    result = b / "load" / "result.json"
    shared = {"connections": "multiplexed", "workers": 2}
    write_json(result, json.loads(result.read_text()) | shared)
    write_manifest(b)
    facts = dict(table_of(a, b).facts)
    assert facts["connections"] == "a thread; b multiplexed on 2 workers"
    assert facts["differs"] == "load generator: connections thread | multiplexed on 2 workers"
    assert verdict(table_of(a, b), "comparable").answer == "with reserve"


def test_hosts_without_separate_cores_are_not_separated(tmp_path: Path) -> None:
    for name in ("a", "b"):
        path = make_run(tmp_path / name)
        fingerprint = json.loads((path / "server" / "fingerprint.json").read_text())
        fingerprint["cpus"]["list"][1]["core"] = 0
        write_json(path / "server" / "fingerprint.json", fingerprint)
        write_manifest(path)
    actual = verdict(table_of(tmp_path / "a", tmp_path / "b"), "pinned")
    assert actual.answer == "not separated"
    assert actual.text.endswith("load CPU 1 is a hardware thread of one of the server's cores")


def test_the_compare_path_imports_no_heavy_library(execution: Path) -> None:
    loaded = _loaded("compare", str(execution), "-o", str(execution / "out.txt"))
    assert (execution / "out.txt").stat().st_size
    assert {"numpy", "duckdb"} <= loaded
    heavy = {"ibis", "pandas", "statsmodels", "arch", "lmfit", "matplotlib", "pydantic", "jinja2"}
    assert not loaded & heavy


def test_help_loads_every_command_and_no_library() -> None:
    loaded = _loaded("--help")
    assert {f"loadprint.commands.{module.partition(':')[0]}" for module in COMMANDS.values()} <= loaded
    assert not loaded & {"numpy", "scipy", "duckdb", "ibis", "pyarrow", "pydantic", "yaml", "jinja2", "rich"}


def _loaded(*words: str) -> set[str]:
    """Modules that a command has loaded when it is done."""
    code = (
        "import atexit, sys; from loadprint.__main__ import main;"
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr)); main(sys.argv[1:])"
    )
    command = [sys.executable, "-c", code, *words]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stderr.split())
