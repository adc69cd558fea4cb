"""Ceilings: from the outputs of tools on a real host to ceilings.json, its table, and shares of values."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import insert, oltp
from damage import ask
from loadprint.commands.ceilings import claims
from loadprint.commands.ceilings.ceilings_text import RENDERERS, summarise
from loadprint.commands.ceilings.gather_outputs import gather, write
from loadprint.commands.ceilings.outputs import MEASURES
from loadprint.commands.operands import resolve
from loadprint.comparison.compare_sides import compare
from loadprint.errors import InputError
from loadprint.rendering import render_csv, render_json, render_text
from loadprint.tables import views
from loadprint.tables.ceilings import Ceiling, read
from loadprint.tables.table import Table
from programs import read as read_json
from reads import known
from recordings import change_json, make_execution, write_json

WRITES = {
    "quantity": "disk.data.write_sectors",
    "value": 4_096_000,
    "tool": "fio 3.33",
    "command": "fio --rw=write --bs=1M",
    "date": "2026-11-20",
    "claimed": 8_192_000,
}
SENT = {"quantity": "nic.*.tx_bytes", "value": 10_240_000, "tool": "iperf3 3.12", "date": "2026-11-20"}
OTHER_HOST = {**SENT, "quantity": "nic.veth0.rx_bytes", "host": "elsewhere"}
MEMORY = {"quantity": "memory.read_bytes", "value": 2e10, "tool": "stream 5.10", "date": "2026-11-20"}

SWITCHES = {"quantity": "host.ctxt", "value": 1, "tool": "perf", "date": "2026-11-20"}
SPOILED = ({"row": "no"}, {"values": [1, "2"]}, {"label": 3}, {"latency_s": [1]}, {"depth": "four"})


@pytest.fixture
def execution(tmp_path: Path) -> Path:
    """One repeat of two sides: ceilings need no statistics."""
    return make_execution(tmp_path / "execution", {"oltp": [oltp()], "insert": [insert()]}, "oltp")


def table_of(execution: Path, *entries: dict[str, Any], given: tuple[Ceiling, ...] | None = None) -> Table:
    if entries:
        write_json(execution / "ceilings.json", {"format_version": 1, "ceilings": list(entries)})
    sides, declared = resolve([str(execution)])
    return compare(sides, declared, given_ceilings=given)


def test_a_row_shows_its_share_of_the_ceiling(execution: Path) -> None:
    table = table_of(execution, WRITES, SENT, OTHER_HOST, MEMORY)
    written, sent, received = (
        known(table.row(key)) for key in ("disk_vda_write_kb", "nic_veth0_tx", "nic_veth0_rx")
    )
    # 1600 sectors of 512 B are 819,200 B/s; the other side writes as much
    assert [cell.of_ceiling for cell in written.cells] == pytest.approx([0.2, 0.2])
    assert [cell.of_claimed for cell in written.cells] == pytest.approx([0.1, 0.1])
    assert [cell.of_ceiling for cell in sent.cells] == pytest.approx([0.1, 0.1])
    assert [cell.of_claimed for cell in sent.cells] == [None, None]
    assert [cell.of_ceiling for cell in received.cells] == [None, None]
    note = written.notes[-1]
    assert "4,000 kB/s, measured 2026-11-20 by fio 3.33" in note
    assert "limit is 8,000 kB/s" in note
    assert dict(table.facts)["ceilings"] == "no row shows memory.read_bytes"
    # waits and sizes have no share of a ceiling, which is a rate
    waits = known(table.row("disk_vda_w_await"))
    assert waits.cells[0].of_ceiling is None


def test_the_share_stands_below_its_row_and_in_the_files(execution: Path) -> None:
    table = views.usual(table_of(execution, WRITES))
    lines = render_text.render(table).splitlines()
    place = next(n for n, line in enumerate(lines) if line.startswith("  written"))
    assert lines[place + 1].split() == ["of", "its", "ceiling", "%", "20.0", "20.0"]
    assert lines[place + 2].split() == ["of", "the", "vendor's", "limit", "%", "10.0", "10.0"]
    assert max(map(len, lines)) <= render_text.WIDTH
    rows = list(csv.DictReader(io.StringIO(render_csv.render(table))))
    shown = [row["of_ceiling"] for row in rows if row["metric"] == "disk_vda_write_kb"]
    assert [float(share) for share in shown] == pytest.approx([0.2, 0.2])
    assert '"of_ceiling": 0.2' in render_json.render(table)


def test_a_row_with_a_ceiling_is_in_every_view(execution: Path) -> None:
    whole = {**SENT, "quantity": "host.ctxt", "value": 8000}
    assert views.usual(table_of(execution)).row("switches_host") is None
    row = known(views.usual(table_of(execution, whole)).row("switches_host"))
    assert row.cells[0].of_ceiling == pytest.approx(0.5)


def test_a_list_given_by_hand_stands_in_for_the_file(execution: Path) -> None:
    given = (Ceiling("disk.vda.write_sectors", 819_200.0, "dd", "2026-11-20"),)
    row = known(table_of(execution, WRITES, given=given).row("disk_vda_write_kb"))
    assert row.cells[0].of_ceiling == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("document", "what"),
    [
        ({}, "`ceilings` is missing"),
        ({"ceilings": {}}, "`ceilings` is an object, not a list"),
        ({"format_version": 2, "ceilings": []}, "format version 2"),
        ({"ceilings": [7]}, "`ceilings[0]` is 7, not an object"),
        ({"ceilings": [SENT, {**SENT, "value": 0}]}, "`ceilings[1].value`: Input should be greater than 0"),
        ({"ceilings": [{**SENT, "value": "10 MB/s"}]}, "value` is text, not a number"),
        ({"ceilings": [{**SENT, "value": True}]}, "value` is a boolean, not a number"),
        ({"ceilings": [{**SENT, "claimed": -1}]}, "claimed`: Input should be greater than 0"),
        ({"ceilings": [{**SENT, "date": None}]}, "date` is null, not text"),
        ({"ceilings": [{**SENT, "tool": ""}]}, "tool`: String should have at least 1 character"),
        ({"ceilings": [{**SENT, "host": 4}]}, "host` is 4, not text"),
        ({"ceilings": [SENT, SENT]}, "`nic.*.tx_bytes` occurs twice"),
        *(({"ceilings": [{**SENT, "value": value}]}, "not a number") for value in (math.inf, math.nan)),
        ('{"ceilings": [{"value": 1e999}]}', "too large"),
        *(({"ceilings": [SWITCHES | spoiled]}, "`ceilings[0].") for spoiled in SPOILED),
    ],
)
def test_a_spoiled_file_says_which_entry(tmp_path: Path, document: dict[str, Any] | str, what: str) -> None:
    path = tmp_path / "ceilings.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    with pytest.raises(InputError) as caught:
        read(path)
    assert what in str(caught.value)
    assert "ceilings.json" in str(caught.value)


ROOT = Path(__file__).parents[2]
OUTPUTS = ROOT / "tests" / "fixtures" / "ceilings"
sys.path.insert(0, str(ROOT / "ansible" / "filter_plugins"))


@pytest.fixture
def outputs(tmp_path: Path) -> Path:
    """A copy that may be spoiled."""
    shutil.copytree(OUTPUTS, tmp_path / "outputs")
    return tmp_path / "outputs"


def entries(directory: Path) -> dict[str, dict[str, Any]]:
    return {entry["id"]: entry for entry in gather(directory)["ceilings"]}


def missing(directory: Path) -> dict[str, str]:
    return {entry["id"]: entry["reason"] for entry in gather(directory)["missing"]}


def test_a_pipe_in_place_of_an_output_does_not_block(outputs: Path) -> None:
    output = next(path for path in sorted(outputs.iterdir()) if path.name != "steps.json")
    output.unlink()
    os.mkfifo(output)
    with pytest.raises(InputError, match="is not a regular file"):
        gather(outputs)


def test_every_measure_is_found_with_its_repeats(outputs: Path) -> None:
    result = entries(outputs)
    assert set(result) == set(MEASURES)
    assert missing(outputs) == {}
    for name, entry in result.items():
        assert len(entry["values"]) == 3, name
        assert entry["value"] == max(entry["values"]), name
        assert entry["unit"] == MEASURES[name].unit


def test_figures_are_those_that_the_tools_printed(outputs: Path) -> None:
    result = entries(outputs)

    def job(name: str) -> dict[str, Any]:
        document: dict[str, Any] = json.loads((outputs / name).read_text())["jobs"][0]
        return document

    assert result["read_bandwidth"]["values"] == [
        job(f"read_bandwidth.{n}")["read"]["bw_bytes"] for n in (1, 2, 3)
    ]
    assert result["flushes"]["values"][1] == job("flushes.2")["write"]["iops"]
    received = json.loads((outputs / "send_bandwidth.1").read_text())["end"]["sum_received"]
    assert result["send_bandwidth"]["values"][0] == pytest.approx(received["bits_per_second"] / 8)
    # of these three the text is read by a person here: MiB/s, events/s, half round trips in µs
    memory = next(line for line in (outputs / "memory_read.1").read_text().splitlines() if "MiB/sec" in line)
    printed = float(memory.partition("(")[2].partition(" ")[0])
    assert result["memory_read"]["values"][0] == pytest.approx(printed * 1048576)
    pipes = [line.split() for line in (outputs / "switches.3").read_text().splitlines()]
    assert len(pipes) == 2, "one line a CPU"
    assert result["switches"]["values"][2] == pytest.approx(sum(2 * float(n) / float(s) for n, s in pipes))
    best = result["round_trips"]["values"].index(result["round_trips"]["value"]) + 1
    text = (outputs / f"round_trips.{best}").read_text()
    half = float(text.partition("Summary: Latency is ")[2].split()[0])
    assert result["round_trips"]["latency_s"]["mean"] == pytest.approx(2 * half / 1e6)
    # one after the other: the rate is about one over the mean
    assert result["round_trips"]["value"] * result["round_trips"]["latency_s"]["mean"] == pytest.approx(
        1, rel=0.1
    )


def test_the_best_depth_is_kept_and_all_are_recorded(outputs: Path) -> None:
    entry = entries(outputs)["read_iops"]
    assert set(entry["depths"]) == {"4", "16"}
    assert entry["depths"][str(entry["depth"])] == entry["values"]
    assert max(sorted(values)[1] for values in entry["depths"].values()) == sorted(entry["values"])[1]
    assert f"--iodepth={entry['depth']}" in entry["command"]


SOCKPERF = """[Valid Duration] RunTime=2 sec; SentMessages=100
avg-latency=3
percentile 50.000 = {}
percentile 99.000 = {}
"""
FIO = '{"jobs": [{"read": {"bw_bytes": 5, "clat_ns": {"percentile": {"50.000000": %d, "99.000000": %d}}}}]}'


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("round_trips", "sockperf: ERROR: Can`t connect socket (errno=111)\n", "errno=111"),
        ("read_bandwidth", "{", "fio: read_bandwidth.1: "),
        ("flushes", '{"jobs": []}', "not an output of the tool"),
        ("flushes", '{"jobs": [{"error": 28}]}', "error 28"),
        ("flushes", "", "fio: flushes.1: "),
        ("cpu_events", "FATAL: no such option\n", "no such option"),
        ("switches", "100000 1.5\n100000 \n", "the time of a CPU is missing"),
        ("round_trips", SOCKPERF.format(50, 2), "p50 exceeds p99"),
        ("round_trips", SOCKPERF.format(-1, 2), "no figure"),
        ("read_bandwidth", FIO % (900, 700), "p50 exceeds p99"),
        ("read_bandwidth", FIO % (-5, 700), "one is negative"),
        ("memory_read", "0.00 MiB transferred (0.00 MiB/sec)\n", "completed no operation"),
        ("send_bandwidth.failed", '{\n "error": "unable to connect to server"\n}\n', "unable to connect"),
        ("cpu_events.failed", "Killed\n", "sysbench: Killed"),
    ],
)
def test_what_cannot_be_read_is_missing_with_its_reason(
    outputs: Path, name: str, content: str, reason: str
) -> None:
    measure, _, failed = name.partition(".")
    for place in (name,) if failed else (f"{name}.{n}" for n in (1, 2, 3)):
        (outputs / place).write_text(content)
    assert measure not in entries(outputs)
    assert reason in missing(outputs)[measure]


def test_a_repeat_without_a_figure_is_not_counted(outputs: Path) -> None:
    (outputs / "round_trips.2").write_text("sockperf: No messages were received from the server.\n")
    entry = entries(outputs)["round_trips"]
    assert len(entry["values"]) == 2
    (reason,) = entry["failed"]
    assert reason.startswith("sockperf: round_trips.2: ")
    assert "No messages were received" in reason


def test_a_file_that_is_not_a_repeat_is_ignored_and_a_null_step_refused(outputs: Path) -> None:
    result = entries(outputs)
    shutil.copy(outputs / "flushes.1", outputs / "flushes.1.bak")
    shutil.copy(outputs / "flushes.1", outputs / "flushes.1~")
    assert entries(outputs) == result
    change_json(outputs / "steps.json", steps=[*read_json(outputs / "steps.json")["steps"], None])
    with pytest.raises(InputError, match="is null, not an object"):
        entries(outputs)


def test_a_left_out_step_has_its_reason(outputs: Path) -> None:
    steps = [step for step in read_json(outputs / "steps.json")["steps"] if step["tool"] != "perf"]
    left_out = {"switches": "host has no perf"}
    change_json(outputs / "steps.json", steps=steps, left_out=left_out)
    assert missing(outputs) == left_out


def test_the_table_shows_claims_next_to_measured_values(outputs: Path) -> None:
    place = outputs.parent / "ceilings.json"
    write(gather(outputs), place)
    assert place.stat().st_mode & 0o777 == 0o600
    summary = summarise(outputs.parent)
    text = RENDERERS["text"](summary)
    assert max(map(len, text.splitlines())) <= render_text.WIDTH, text
    line = next(line for line in text.splitlines() if line.startswith("random reads"))
    entry = entries(outputs)["read_iops"]
    assert "3,000" in line.split()
    assert f"{100 * entry['value'] / 3000:,.0f}" == line.split()[-1]
    rows = list(csv.DictReader(io.StringIO(RENDERERS["csv"](summary))))
    assert {row["quantity"] for row in rows} >= {"disk.data.reads", "nic.veth.tx_bytes", "host.ctxt"}
    document = json.loads(RENDERERS["json"](summary))
    assert len(document["ceilings"]) == len(MEASURES)
    assert all(0 <= entry["spread"] < 1 for entry in document["ceilings"])
    assert "random reads" in RENDERERS["markdown"](summary)


def test_compare_expects_no_row_of_a_measurement_without_one(outputs: Path) -> None:
    place = outputs.parent / "ceilings.json"
    write(gather(outputs), place)
    result = {ceiling.quantity: ceiling for ceiling in read(place).ceilings}
    assert result["disk.data.writes"].row
    assert not result["cpu.events"].row
    assert result["disk.data.reads"].claimed == 3000


def test_a_file_written_by_hand_is_shown_too(tmp_path: Path) -> None:
    write_json(tmp_path / "ceilings.json", {"ceilings": [SENT]})
    assert "nic.*.tx_bytes" in ask("ceilings", tmp_path).out


@pytest.mark.parametrize(
    ("claim", "value"),
    [
        ({"read_iops": 3000}, 3000),
        ({"write_iops": "16,000 IOPS"}, 16000),
        ({"flushes": "2.5 kIOPS"}, 2500),
        ({"write_bandwidth": "125 MB/s"}, 125e6),
        ({"memory_read": "1 GiB/s"}, 2**30),
        ({"send_bandwidth": "12.5 Gbit/s"}, 12.5e9 / 8),
    ],
)
def test_a_claim_is_read_in_its_unit(claim: dict[str, object], value: float) -> None:
    assert list(claims.read(claim).values()) == [pytest.approx(value)]


@pytest.mark.parametrize(
    "claim",
    [
        {"iops": 3000},
        {"send_bandwidth": 10},  # of what?
        {"read_iops": "125 MB/s"},
        {"read_iops": 0},
        {"read_iops": -5},
        {"read_iops": True},
        {"read_iops": "many"},
        {"read_iops": "1e999"},
        {"read_iops": None},
    ],
)
def test_an_unusable_claim_is_refused(claim: dict[str, object]) -> None:
    with pytest.raises(InputError, match=r"ceilings_claimed\."):
        claims.read(claim)


def test_steps_without_their_tool_are_left_out_and_one_cpu_is_measured_once() -> None:
    import ceilings as plugin  # type: ignore[import-not-found]  # noqa: PLC0415  a plugin of Ansible: found by its path

    programs = {tool: f"/usr/bin/{tool}" for tool in ("fio", "iperf3", "sockperf", "sysbench", "perf")}
    settings = {
        "parts": list(plugin.MEASURES),
        "seconds": 1,
        "depths": [4, 16],
        "file": "/data/fio",
        "file_bytes": 1 << 26,
        "cpus": "0-1,4",
        "threads": 2,
        "address": "198.18.0.1",
        "port": 33307,
        "streams": 4,
        "programs": {"server": programs, "load": {"iperf3": "/opt/iperf3"}},
    }
    steps = {step["id"]: step for step in plugin.ceiling_steps(settings)}
    assert {step["measure"] for step in steps.values()} == {*MEASURES, "layout"} - {"round_trips"}
    assert steps["send_bandwidth"]["argv"][0] == "/opt/iperf3"
    assert steps["switches"]["argv"][-3:] == ["0", "1", "4"]
    hosts = {"server": "db", "load": "gen"}
    left_out = plugin.ceiling_left_out(settings, hosts, {})
    assert left_out == {"round_trips": "gen has no sockperf and no package of it"}
    alone = {step["id"] for step in plugin.ceiling_steps({**settings, "threads": 1})}
    assert set(steps) - alone == {"memory_read_all", "memory_write_all", "cpu_events_all"}
    reasons = plugin.ceiling_left_out(settings, hosts, {"storage": "no device"})
    assert {name for name, reason in reasons.items() if reason == "no device"} == set(
        plugin.MEASURES["storage"]
    )
