"""From the tools' outputs, as they printed them on a real host, to ceilings.json and its table."""

from __future__ import annotations

import csv
import io
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from loadprint.__main__ import main
from loadprint.commands.ceilings import ceilings_text, claims
from loadprint.commands.ceilings.ceilings_text import summarise
from loadprint.commands.ceilings.gather_outputs import gather, write
from loadprint.commands.ceilings.outputs import MEASURES, READERS
from loadprint.errors import InputError
from loadprint.tables.ceilings import read

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


def test_every_measure_is_found_with_its_repeats(outputs: Path) -> None:
    result = entries(outputs)
    assert set(result) == set(READERS) == set(MEASURES)
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
    plan = json.loads((outputs / "steps.json").read_text(encoding="utf-8"))
    plan["steps"].append(None)
    (outputs / "steps.json").write_text(json.dumps(plan), encoding="utf-8")
    with pytest.raises(InputError, match="is null, not an object"):
        entries(outputs)


def test_a_left_out_step_has_its_reason(outputs: Path) -> None:
    plan = json.loads((outputs / "steps.json").read_text())
    plan["steps"] = [step for step in plan["steps"] if step["tool"] != "perf"]
    plan["left_out"] = {"switches": "host has no perf"}
    (outputs / "steps.json").write_text(json.dumps(plan))
    assert missing(outputs) == {"switches": "host has no perf"}


def test_the_table_shows_claims_next_to_measured_values(outputs: Path) -> None:
    place = outputs.parent / "ceilings.json"
    write(gather(outputs), place)
    assert place.stat().st_mode & 0o777 == 0o600
    summary = summarise(outputs.parent)
    text = ceilings_text.text(summary)
    assert max(map(len, text.splitlines())) <= ceilings_text.WIDTH, text
    line = next(line for line in text.splitlines() if line.startswith("random reads"))
    entry = entries(outputs)["read_iops"]
    assert "3,000" in line.split()
    assert f"{100 * entry['value'] / 3000:,.0f}" == line.split()[-1]
    rows = list(csv.DictReader(io.StringIO(ceilings_text.as_csv(summary))))
    assert {row["quantity"] for row in rows} >= {"disk.data.reads", "nic.veth.tx_bytes", "host.ctxt"}
    document = json.loads(ceilings_text.as_json(summary))
    assert len(document["ceilings"]) == len(MEASURES)
    assert all(0 <= entry["spread"] < 1 for entry in document["ceilings"])
    assert "random reads" in ceilings_text.markdown(summary)


def test_compare_expects_no_row_of_a_measurement_without_one(outputs: Path) -> None:
    place = outputs.parent / "ceilings.json"
    write(gather(outputs), place)
    result = {ceiling.quantity: ceiling for ceiling in read(place)}
    assert result["disk.data.writes"].row
    assert not result["cpu.events"].row
    assert result["disk.data.reads"].claimed == 3000


def test_a_file_written_by_hand_is_shown_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = {
        "ceilings": [{"quantity": "nic.*.tx_bytes", "value": 5e8, "tool": "iperf3", "date": "2026-11-20"}]
    }
    (tmp_path / "ceilings.json").write_text(json.dumps(document))
    assert main(["ceilings", str(tmp_path)]) == 0
    assert "nic.*.tx_bytes" in capsys.readouterr().out


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


@pytest.mark.parametrize(
    "spoiled", [{"row": "no"}, {"values": [1, "2"]}, {"label": 3}, {"latency_s": [1]}, {"depth": "four"}]
)
def test_a_spoiled_addition_is_refused(tmp_path: Path, spoiled: dict[str, Any]) -> None:
    entry = {"quantity": "host.ctxt", "value": 1, "tool": "perf", "date": "2026-11-20"}
    (tmp_path / "ceilings.json").write_text(json.dumps({"ceilings": [{**entry, **spoiled}]}))
    with pytest.raises(InputError, match=r"ceiling 1"):
        read(tmp_path / "ceilings.json")


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
