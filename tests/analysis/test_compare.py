"""Whole comparisons against golden outputs, and what a cell may claim."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import Golden, insert, oltp
from loadprint.commands.operands import resolve
from loadprint.commands.registry import COMMANDS
from loadprint.judging.findings import Verdict
from loadprint.rendering import render_csv, render_json, render_markdown, render_text
from loadprint.tables import views
from loadprint.tables.table import Row, Table, Versus
from reads import compared, known, table_of
from recordings import Host, change_json, change_metadata, change_rows, make_execution, make_run


def row(table: Table, key: str) -> Row:
    return known(table.row(key))


def versus(table: Table, key: str) -> Versus:
    return next(v for v in row(table, key).versus if v is not None)


def verdict(table: Table, key: str) -> Verdict:
    return next(verdict for verdict in table.verdicts if verdict.key == key)


def test_text(whole_table: Table, golden: Golden) -> None:
    text = render_text.render(views.all_of(whole_table), reasons=True)
    assert max(map(len, text.splitlines())) <= render_text.WIDTH
    golden("three_repeats.txt", text)


def test_the_first_screen(whole_table: Table, golden: Golden) -> None:
    text = render_text.render(views.first(whole_table))
    lines = text.splitlines()
    assert max(map(len, lines)) <= render_text.WIDTH
    assert len(lines) <= 40
    golden("first_screen.txt", text)


def test_markdown_and_csv(whole_table: Table, golden: Golden) -> None:
    golden("three_repeats.md", render_markdown.render(views.usual(whole_table)))
    golden("three_repeats.csv", render_csv.render(views.all_of(whole_table)))


def test_json(whole_table: Table, golden: Golden) -> None:
    """The first row of each group: the values of all rows are in the other formats."""
    document = json.loads(render_json.render(views.shown(whole_table, only_costs=True)))
    for group in document["groups"]:
        del group["rows"][1:]
    golden("costs.json", json.dumps(document, indent=1, ensure_ascii=False) + "\n")


def test_one_repeat_has_no_interval_and_no_verdict(tmp_path: Path, golden: Golden) -> None:
    table = compared(tmp_path / "x", oltp=[oltp(), oltp(1)], insert=[insert()])
    ratios = [v for group in table.groups for r in group.rows for v in r.versus if v]
    assert all(v.low is None and v.mark == "" for v in ratios)
    golden("few_repeats.txt", render_text.render(views.first(table), reasons=True))


def test_the_same_operation_carries_verdicts_and_ratios(tmp_path: Path, golden: Golden) -> None:
    slower = [replace(oltp(k), events=80 + k, server_ticks={"utime": 14 + k, "stime": 3}) for k in (0, 1, 2)]
    table = compared(tmp_path / "x", old=[oltp(k) for k in (0, 1, 2)], new=slower)
    assert versus(table, "operations").mark == "worse"
    assert versus(table, "server_cpu_per_operation").mark == "worse"
    assert versus(table, "disk_vda_reads").mark == "="
    assert table.row("server_cpu_per_statement") is None
    golden("same_operation.txt", render_text.render(views.usual(table)))


def test_three_sides_take_a_table_each(tmp_path: Path, golden: Golden) -> None:
    sides = {name: [oltp(k + n) for k in (0, 1, 2)] for n, name in enumerate(("base", "first", "second"))}
    table = compared(tmp_path / "x", **sides)
    text = render_text.render(views.shown(table, only_costs=True))
    assert max(map(len, text.splitlines())) <= render_text.WIDTH
    golden("three_sides.txt", text)


def test_the_reference_can_be_named(execution: Path, whole_table: Table) -> None:
    back = table_of(execution, reference="insert")
    a, b = versus(whole_table, "statements").centre, versus(back, "statements").centre
    assert a is not None
    assert b == pytest.approx(1 / a)
    assert back.sides[0].name == "oltp"


def test_missing_repeats_have_their_reasons_and_the_others_are_compared(own_execution: Path) -> None:
    change_json(own_execution / "b2-oltp-r2/run.json", status="failed", reason="the server died: signal 9")
    (own_execution / "b3-oltp-r3/run.json").unlink()
    (own_execution / "b2-insert-r2/load/result.json").write_text("{")
    table = table_of(own_execution)
    assert table.sides[0].missing == (
        ("b2-oltp-r2", "failed: the server died: signal 9"),
        ("b3-oltp-r3", "its run.json is missing"),
    )
    assert "the server died" in dict(table.facts)["repeats"]
    ((run, reason),) = table.sides[1].missing
    assert (run, "result.json" in reason) == ("b2-insert-r2", True)
    assert all(cell.value is not None for cell in row(table, "operations").cells)


def test_a_missing_probe_says_why(own_execution: Path) -> None:
    listed = {"name": "threads", "status": "unavailable", "reason": "no right to read /proc/900/task"}
    for path in own_execution.glob("b*/server/ticks.parquet"):
        change_rows(path, lambda row: None if row["probe"] == "threads" else row)
        change_metadata(path, lambda described: described.update(probes=[listed]))
    table = table_of(own_execution)
    switches = row(table, "switches_server")
    assert switches.cells[0].value is None
    assert "no right to read" in "; ".join(switches.cells[0].notes)


def test_a_client_bound_side_is_warned_of_and_has_no_verdict(tmp_path: Path) -> None:
    busy = {"0": dict(oltp().cpus["0"]), "1": {"user": 80, "system": 5, "idle": 15}}
    slower = [replace(oltp(k), events=50 + k, cpus=busy) for k in (0, 1, 2)]
    table = compared(tmp_path / "x", a=[oltp(k) for k in (0, 1, 2)], b=slower)
    bound = verdict(table, "client-bound")
    assert bound.answer == "yes"
    assert "a no: busiest thread 33 %" in bound.text
    assert "b yes: its CPUs 85 % (limit 80 %)" in bound.text
    assert versus(table, "operations").mark == "*"
    for row in table.rows:
        said = ["client-bound" in "; ".join(cell.notes) for cell in row.cells]
        assert said == [False, row.cells[1].value is not None], row.key


def test_a_side_that_drifts_never_settled_and_inserts_are_exempt(tmp_path: Path) -> None:
    def falling(second: int) -> int:
        return 200 - 4 * second + second % 3

    for make, warned in ((oltp, True), (insert, False)):
        steady = [make(k) for k in (0, 1, 2)]
        drifting = [replace(run, series=falling) for run in steady]
        table = compared(tmp_path / make.__name__, a=steady, b=drifting)
        assert any(text.startswith("b never settled") for text in table.warnings) == warned


def test_settings_that_differ_are_told_material_or_harmless(tmp_path: Path) -> None:
    relaxed = Host(variables={"innodb_flush_log_at_trx_commit": "2", "port": "3307"})
    a, b = make_run(tmp_path / "a"), make_run(tmp_path / "b", relaxed)
    table = table_of(a, b)
    assert table.verdicts[0].key == "comparable"
    output = "durability: commit redo synced | redo written, synced every 1 s"
    assert (table.verdicts[0].answer, table.verdicts[0].text) == ("no", output)
    assert dict(table.facts)["differs"] == output
    assert dict(table.facts)["harmless"] == "differ without effect: port"


def test_connections_that_share_threads_are_told_and_material(tmp_path: Path) -> None:
    a, b = make_run(tmp_path / "a"), make_run(tmp_path / "b")
    assert "connections" not in dict(table_of(a, b).facts)
    change_json(b / "load/result.json", connections="multiplexed", workers=2)
    facts = dict(table_of(a, b).facts)
    assert facts["connections"] == "a thread; b multiplexed on 2 workers"
    assert facts["differs"] == "load generator: connections thread | multiplexed on 2 workers"
    assert verdict(table_of(a, b), "comparable").answer == "with reserve"


def test_hosts_without_separate_cores_are_not_separated(tmp_path: Path) -> None:
    cores = [{"cpu": cpu, "package": 0, "core": 0, "siblings": "0-1"} for cpu in (0, 1)]
    runs = [make_run(tmp_path / name) for name in ("a", "b")]
    for run in runs:
        change_json(run / "server/fingerprint.json", cpus={"model": "Test CPU", "list": cores})
    actual = verdict(table_of(*runs), "pinned")
    assert actual.answer == "not separated"
    assert actual.text.endswith("load CPU 1 is a hardware thread of one of the server's cores")
    # the number of a core repeats on each die of a package
    cores = [{**cpu, "siblings": str(cpu["cpu"])} for cpu in cores]
    for run in runs:
        change_json(run / "server/fingerprint.json", cpus={"model": "Test CPU", "list": cores})
    assert "hardware thread" not in verdict(table_of(*runs), "pinned").text


def test_the_compare_path_imports_no_heavy_library(execution: Path, tmp_path: Path) -> None:
    loaded = _loaded("compare", str(execution), "-o", str(tmp_path / "out.txt"))
    assert (tmp_path / "out.txt").stat().st_size
    assert {"numpy", "duckdb"} <= loaded
    heavy = {"ibis", "pandas", "statsmodels", "arch", "lmfit", "matplotlib", "jinja2"}
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


def test_sides_of_two_executions_keep_their_plans_and_the_reference(tmp_path: Path) -> None:
    """Their names get numbers; what the campaign varies and the reference go by the planned ones."""
    sides = {"on": [Host()], "off": [Host()]}
    words = [str(make_execution(tmp_path / name, sides, "off")) for name in ("first", "second")]
    resolved, reference = resolve(words)
    assert [side.name for side in resolved] == ["on#1", "off#2", "on#3", "off#4"]
    assert [side.plan.label for side in resolved] == ["ON", "OFF", "ON", "OFF"]
    assert reference == "off#2"


def test_the_method_names_the_sides_that_it_holds_for(tmp_path: Path) -> None:
    sides = {name: [Host()] * repeats for name, repeats in (("a", 4), ("b", 4), ("c", 3), ("d", 2))}
    method = "\n".join(table_of(make_execution(tmp_path / "x", sides, "a")).method)
    assert "b: each block ran every side once" in method
    assert "c: runs are not paired (not the same blocks" in method
    assert "d: fewer than three repeats have no intervals" in method
