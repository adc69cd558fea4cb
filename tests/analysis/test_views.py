"""Which rows are shown, of usual and of odd sides: names and widths, a run with itself, a whole host."""

from __future__ import annotations

import csv
import io
import math
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from conftest import insert, oltp
from damage import ask
from every_table import complete_host, every_table
from loadprint.metrics.gather import NO_RECORDER
from loadprint.metrics.host import SERVER_RESTARTED
from loadprint.reading.run_documents import PlannedRun
from loadprint.reading.sides import Side, read_plan
from loadprint.rendering import layout, render_text
from loadprint.rendering.footnotes import Footnotes
from loadprint.rendering.layout import Layout
from loadprint.tables import views, warnings
from loadprint.tables.rows import NO_DEVICE
from loadprint.tables.table import Table
from reads import compared, known, repeat_of, table_of
from recordings import Host, change_column, change_json, change_rows, make_execution, make_run, write_manifest

LABEL = 32


def alike(path: Path, host: Host) -> Table:
    """Two equal sides."""
    return compared(path, a=[host], b=[host])


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Three repeats of two sides with every probe."""
    sides = {
        name: [complete_host(events=events + k, switches=switches + k) for k in range(3)]
        for name, events, switches in (("old", 100, 1500), ("new", 120, 1800))
    }
    return compared(tmp_path_factory.mktemp("x") / "x", **sides)


def test_every_row_says_its_formula_and_fits(table: Table, whole_table: Table) -> None:
    rows = table.rows
    assert len({row.key for row in rows}) == len(rows)
    assert [row.label for row in rows if len(row.label) > LABEL or not row.formula] == []
    for view in (views.usual(table), views.all_of(whole_table)):
        assert max(map(len, render_text.render(view).splitlines())) <= render_text.WIDTH


def test_marks_and_values_do_not_depend_on_the_view(table: Table) -> None:
    usual, whole = views.usual(table), views.all_of(table)
    assert len(usual.rows) < len(whole.rows)
    for row in usual.rows:
        assert row.versus == known(whole.row(row.key)).versus


def test_footnotes_are_numbered_as_they_are_met_and_all_are_used(table: Table) -> None:
    text = render_text.render(views.usual(table))
    shown = views.usual(table)
    footnotes = Footnotes(shown)
    cited = [footnotes.numbers((*row.notes, *(n for c in row.cells for n in c.notes))) for row in shown.rows]
    assert list(dict.fromkeys(number for row in cited for number in row)) == list(
        range(1, len(footnotes.texts) + 1)
    )
    assert len(footnotes.texts) < len(Footnotes(table).texts)
    assert all(
        f"{number} {note}" in " ".join(text.split()) for number, note in Layout(shown).numbered_footnotes()
    )
    assert f"{len(table.rows) - len(shown.rows)} more" in text


def test_a_group_of_nothing_but_zeros_is_named_and_not_shown(tmp_path: Path) -> None:
    idle = {"vda": {"writes": 40, "write_sectors": 80}, "vdb": {}}
    quiet: dict[str, dict[str, int]] = {"veth0": {}, "lo": {}}
    table = alike(tmp_path / "x", Host(disks=idle, nics=quiet))
    assert not any(group.key.startswith("nic_") for group in table.groups)
    text = "\n".join(views.usual(table).method)
    assert "more rows with --all" in text


def test_of_an_nvme_namespace_with_multipath_only_its_paths_are_shown(tmp_path: Path) -> None:
    host = oltp()
    disks = dict.fromkeys(("vda", "nvme0n1", "nvme0c0n1", "nvme1n1"), host.disks["vda"])
    table = alike(tmp_path / "x", replace(host, disks=disks))
    shown = {group.title for group in table.groups if group.key.startswith("disk_")}
    assert shown == {"Disk vda (data, redo)", "Disk nvme0c0n1", "Disk nvme1n1"}


def test_an_interface_that_one_side_did_not_use_has_no_ratio(tmp_path: Path) -> None:
    near = replace(oltp(), nics={"veth0": {}, "lo": {"rx_bytes": 50_000, "tx_bytes": 50_000}})
    table = compared(tmp_path / "x", far=[oltp()], near=[near])
    sent = known(table.row("nic_veth0_tx"))
    assert [cell.value for cell in sent.cells] == [1_024_000, 0]
    versus = known(sent.versus[1])
    assert versus.kind == "none"
    assert "no traffic of near over veth0" in versus.notes[0]


def test_the_command_shows_the_view_that_is_asked_for(tmp_path: Path) -> None:
    runs = make_run(tmp_path / "a", oltp()), make_run(tmp_path / "b", insert())

    def rows(*words: str) -> set[str]:
        text = ask("compare", *runs, "--format", "csv", *words).out
        return {row["metric"] for row in csv.DictReader(io.StringIO(text))}

    usual, everything, per_op = rows(), rows("--all"), rows("--per-op")
    assert per_op < everything
    assert usual < everything
    assert {"server_cpu_per_operation", "server_user_per_commit"} <= per_op
    assert not any(key.startswith(("cpu_", "disk_vda", "latency")) for key in per_op)
    assert "cpu_host_utilisation" in everything - usual


def test_what_is_noted_of_every_value_stands_once_at_the_head(tmp_path: Path) -> None:
    bound = replace(oltp(), cpus={"0": dict(oltp().cpus["0"]), "1": {"user": 80, "system": 5, "idle": 15}})
    table = views.usual(compared(tmp_path / "x", free=[oltp()], bound=[bound]))
    notes = [note for note in known(table.row("operations")).cells[1].notes if "client-bound" in note]
    assert notes != []  # in the value, and so in the files that machines read
    lifted = layout.with_common_notes_at_heads(table)
    assert set(notes) <= set(lifted.sides[1].notes)
    assert not any(set(notes) & set(r.cells[1].notes) for r in lifted.rows)
    assert lifted.sides[0].notes == table.sides[0].notes


def test_statements_that_a_generator_does_not_count_are_the_servers_on_all_sides(tmp_path: Path) -> None:
    grown = {"Questions": 21 * 500 + 1, "Com_commit": 21 * 50}
    counted = replace(oltp(), grown=grown)
    silent = replace(counted, operation="new order", result={"queries": None, "commits": None})
    table = compared(tmp_path / "x", a=[counted], b=[silent])
    titles = [group.title for group in table.groups]
    assert "Cost per client statement (the server's Questions)" in titles
    assert "Cost per commit (the server's Com_commit)" in titles
    for key, wanted in (("server_cpu_per_statement", 0.12 / 500), ("server_cpu_per_commit", 0.12 / 50)):
        row = known(table.row(key))
        assert [cell.value for cell in row.cells] == pytest.approx([wanted, wanted])
        assert known(row.versus[1]).centre == pytest.approx(1)
    bought = known(table.row("statements_per_CPU-second"))
    assert bought.cells[1].value == pytest.approx(500 / 0.12)


def test_a_run_on_two_sides_is_warned_of(execution: Path) -> None:
    said = "contain the same run"
    assert not [text for text in table_of(execution).warnings if said in text]
    [warning] = [text for text in table_of(f"{execution}:oltp", f"{execution}:oltp").warnings if said in text]
    runs = ", ".join(run.id for run in _planned(execution, "oltp"))
    what = f"oltp#1 and oltp#2 contain the same runs {runs}: a run compared with itself shows nothing"
    assert warning == f"{what}; name each run on one side only"
    one = execution / _planned(execution, "oltp")[0].id
    [warning] = [text for text in table_of(execution, one).warnings if said in text]
    assert "contain the same run b" in warning


def _planned(execution: Path, side: str) -> list[PlannedRun]:
    return [run for run in read_plan(execution).runs if run.side == side]


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


def test_the_first_screen_has_the_published_rows(table: Table) -> None:
    keys = [row.key for row in views.first(table).rows]
    assert {
        "operations",
        "statements",
        "cpu_server_user",
        "switches_server",
        "interrupts_server",
        "server_cpu_per_operation",
    } <= set(keys)
    assert len(keys) + views.first(table).hidden == len(table.rows)


def test_the_first_screen_has_the_interface_of_the_load(tmp_path: Path) -> None:
    """The loopback interface only if another one carried nothing but background traffic."""
    some = {"rx_bytes": 50_000, "tx_bytes": 50_000}
    cases = {
        "veth0": {"veth0": some, "lo": some},
        "lo": {"veth0": {"rx_bytes": 500, "tx_bytes": 400}, "lo": some},
    }
    for name, nics in cases.items():
        table = alike(tmp_path / name, replace(oltp(), nics=nics))
        rows = [row.key for row in views.first(table).rows if row.key.startswith("nic_")]
        assert rows == [f"nic_{name}_{way}" for way in ("rx", "tx")]


def test_a_vlan_has_its_rows_and_the_busiest_interface_comes_first(tmp_path: Path) -> None:
    """Its name has a dot, as the names of quantities do."""
    nics = {
        name: {"rx_bytes": rate, "tx_bytes": 0} for name, rate in (("ens6", 500_000), ("bond0.42", 10**6))
    }
    table = alike(tmp_path / "x", replace(oltp(), nics=nics))
    titles = [group.title for group in table.groups if group.title.startswith("Network ")]
    assert titles == ["Network bond0.42", "Network ens6"]
    [row] = [row for row in table.rows if row.key == "nic_bond0.42_rx"]
    assert known(row.cells[0].value) == pytest.approx(10**6)


def test_the_first_screen_has_the_rows_of_one_disk_even_if_it_was_idle(tmp_path: Path) -> None:
    """Nothing of another disk fills the n/a of the one with the data."""
    busy = oltp().disks["vda"]
    disks = {"vda": {"reads": 0}, "sda": busy}
    rows = views.first(alike(tmp_path / "x", replace(oltp(), disks=disks))).rows
    assert [row.key for row in rows if row.key.startswith("disk_")] == [
        "disk_vda_read_kb",
        "disk_vda_write_kb",
    ]


@pytest.mark.parametrize("lack_it", [(1,), (0, 1)])
def test_a_row_that_all_sides_have_is_shown_before_one_that_some_have(
    tmp_path: Path, lack_it: tuple[int, ...]
) -> None:
    runs = [make_run(tmp_path / name, oltp()) for name in ("a", "b")]
    for run in (runs[place] for place in lack_it):
        change_rows(run / "server/ticks.parquet", lambda row: None if row["probe"] == "threads" else row)
    keys = [row.key for row in views.first(table_of(*runs)).rows]
    assert "switches_host" in keys
    assert "switches_server" not in keys


def test_sides_of_two_executions_have_their_own_dates(tmp_path: Path) -> None:
    runs = [
        make_run(tmp_path / name / "run", oltp(), started_realtime_ns=at * 10**18)
        for name, at in (("x", 1), ("y", 2))
    ]
    text = render_text.render(views.first(table_of(*runs)))
    assert "1 run, 2001-09-09 01:46 UTC" in text
    assert "1 run, 2033-05-18 03:33 UTC" in text


def test_the_first_screen_has_six_notes_at_most_and_numbers_no_other(table: Table) -> None:
    noted = replace(
        table,
        groups=tuple(
            replace(group, rows=tuple(replace(row, notes=(f"of {row.key}",)) for row in group.rows))
            for group in table.groups
        ),
    )
    texts = Footnotes(views.first(noted)).texts
    assert len(texts) == 6
    text = render_text.render(views.first(noted))
    assert all(note in text for note in texts)
    assert layout.raised([7]) not in text


def test_the_reasons_are_printed_on_request(tmp_path: Path) -> None:
    runs = make_run(tmp_path / "a", oltp()), make_run(tmp_path / "b", insert())
    brief, verbose, everything = (
        ask("compare", *runs, *words).out for words in ((), ("--verbose",), ("--all",))
    )
    assert "reasons: --verbose" in brief.lower()
    for line in ("pinned       yes: ", "value: arithmetic mean"):
        assert [line in text for text in (brief, verbose, everything)] == [False, True, True]
    assert len(brief.splitlines()) <= 40
    assert len(brief.splitlines()) < len(verbose.splitlines()) < len(everything.splitlines())


def test_the_first_screen_has_the_remedy_of_the_most_important_warnings(tmp_path: Path) -> None:
    """Of 300 s: a rise that is over after 95 s, a fall throughout, and ticks that were missed."""

    def rising(second: int) -> int:
        return round(200 - 40 * math.exp(-second / 30) + second * 7919 % 13 - 6)

    def falling(second: int) -> int:
        return 400 - second + second % 3

    def _disk(row: dict[str, Any]) -> str | None:
        return "not read: 3 cells" if row["probe"] == "disk" else None

    long = Host(seconds=299)
    sides = {"a": [replace(long, series=rising)] * 2, "b": [replace(long, series=falling)] * 2}
    execution = make_execution(tmp_path / "x", sides, "a")
    ticks = execution / "b1-a-r1/server/ticks.parquet"
    change_column(ticks, "missed", lambda row: 3 if row["tick"] == 5 and row["probe"] == "cpu" else 0)
    change_column(execution / "b2-b-r2/server/ticks.parquet", "reason", _disk)
    lines = render_text.render(views.first(table_of(execution))).splitlines()
    place = next(place for place, line in enumerate(lines) if line.startswith("warning"))
    assert lines[place : place + 3] == [
        "warning a never settled: lengthen warmup by 95 s",
        "        b never settled: lengthen warmup",
        "        4 more warnings: --verbose",
    ]
    assert max(map(len, lines)) <= render_text.WIDTH
    assert len(lines) <= 40
    verbose = " ".join(render_text.render(table_of(execution), reasons=True).split())
    assert "more warnings" not in verbose
    rise = "a: MSER-5 would drop the beginning of b1-a-r1 95 s, b2-a-r2 95 s; lengthen warmup by 95 s"
    assert rise in verbose
    assert "a b1-a-r1: 3 ticks missed in the window; lengthen --interval or record fewer --probes" in verbose


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        (SERVER_RESTARTED, "find the reason in the server's error log, run again"),
        ("cpu.server.user was reset 1x; counted from zero after each reset", "run again without a reset"),
        ("nic.veth0.rx_bytes wrapped 1x; the wraps are added back", "no action"),
        ("a CPU of the load set went online or offline in the window", "run again with the same CPUs online"),
        ("disk.vda.reads is not known: it fell from 9 to 5 between two readings", "run again"),
    ],
)
def test_a_warning_on_a_quantity_has_its_remedy_on_one_line(text: str, remedy: str) -> None:
    run = repeat_of({}, "r")
    run.quantities.warnings.append(text)
    [warned] = warnings.warnings([Side("a", "a", (run.run,))], [[run]], [""], [""])
    assert f": {remedy}" in warned.brief()
    assert len(warned.brief()) <= warnings.LONGEST
    assert warned.full().startswith(f"a r: {text}; {remedy}")


def test_a_warning_of_several_runs_of_a_side_is_printed_once(tmp_path: Path) -> None:
    execution = make_execution(tmp_path / "x", {"a": [oltp()] * 3, "b": [oltp()] * 3}, "a")
    for run in sorted(execution.glob("*-a-*")):
        change_column(run / "server/ticks.parquet", "reason", lambda _: "not read: 3 cells", pa.string())
    found = [text for text in table_of(execution).warnings if "probe disk" in text]
    assert len(found) == 1
    assert found[0].startswith("a b1-a-r1: ")
    assert found[0].endswith("; alike in 2 more runs; fix the reason, or leave it out with --probes")
