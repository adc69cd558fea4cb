"""Sides other than two scenarios of a campaign: a run with itself, a CPU set with a whole host."""

from __future__ import annotations

import shutil
from pathlib import Path

from conftest import insert, oltp
from every_table import every_table
from loadprint.metrics.gather import NO_RECORDER
from loadprint.reading.recording import read_object
from loadprint.rendering import render_text
from loadprint.tables import views
from loadprint.tables.rows import NO_DEVICE
from reads import known, table_of
from recordings import Host, change_json, make_execution, make_run, write_manifest


def test_a_run_on_two_sides_is_warned_of(tmp_path: Path) -> None:
    made = {"oltp": [oltp(k) for k in (0, 1, 2)], "insert": [insert(k) for k in (0, 1, 2)]}
    execution = make_execution(tmp_path / "x", made, "oltp")
    said = "contain the same run"
    assert not [text for text in table_of(execution).warnings if said in text]
    [warning] = [text for text in table_of(f"{execution}:oltp", f"{execution}:oltp").warnings if said in text]
    runs = ", ".join(run["id"] for run in _planned(execution, "oltp"))
    assert (
        warning == f"oltp#1 and oltp#2 contain the same runs {runs}: a run compared with itself shows nothing"
    )
    one = execution / _planned(execution, "oltp")[0]["id"]
    [warning] = [text for text in table_of(execution, one).warnings if said in text]
    assert "contain the same run b" in warning


def _planned(execution: Path, side: str) -> list[dict[str, str]]:
    return [run for run in read_object(execution / "execution.json")["runs"] if run["side"] == side]


def test_sets_are_named_in_the_order_of_the_sides(tmp_path: Path) -> None:
    """The whole host before a set: title and rows of the CPU sets show it."""
    whole = make_run(tmp_path / "whole", Host(), roles={"server": {"host": "db1"}})
    change_json(whole / "server/fingerprint.json", cpusets={})
    pinned = make_run(tmp_path / "pinned", Host())
    own = table_of(pinned, make_run(tmp_path / "other", Host()))
    [title] = [group.title for group in own.groups if group.key == "cpu_server"]
    cpus = title.partition("(")[2].rstrip(")")
    assert "|" not in cpus
    for words, order in (
        ((whole, pinned), f"whole host | {cpus}"),
        ((pinned, whole), f"{cpus} | whole host"),
    ):
        table = table_of(*words)
        [title] = [group.title for group in table.groups if group.key == "cpu_server"]
        assert title == f"CPU, server's set ({order})"
        row = known(table.row("interrupts_server"))
        assert list(row.notes) == [f"on the CPUs of each side's set: {order}"]
    interrupts = known(own.row("interrupts_server"))
    assert interrupts.notes == ()


def test_what_nobody_told_is_left_out(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / name, Host(), seed=seed) for name, seed in (("a", None), ("b", 7))]
    facts = dict(table_of(*runs).facts)
    assert facts["seed"] == "7"
    assert "None" not in render_text.render(views.usual(table_of(*runs)))


def test_a_run_without_recorder_has_one_reason_for_all_rows_of_the_host(tmp_path: Path) -> None:
    """Next to a run with every table, and alone; one footnote for each quantity were 87."""
    bare = make_run(tmp_path / "bare", Host())
    shutil.rmtree(bare / "server")
    write_manifest(bare)
    full = make_run(tmp_path / "full", Host(more=every_table))
    for words in ((bare, full), (bare, bare)):
        rows = table_of(*words).rows
        reasons = {note for row in rows for note in row.cells[0].notes if row.cells[0].value is None}
        other = {text for text in reasons if "generator" not in text and text != NO_DEVICE}
        assert NO_RECORDER in other
        assert [text for text in other if "in the recording" in text] == []
        assert len(other) < 8, sorted(other)
