"""Runs of several hosts: clocks that differ, drift or are set, several load hosts, hosts without CPU sets."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from damage import ask
from loadprint.errors import InputError
from loadprint.judging import client, separation
from loadprint.metrics.gather import Measured
from loadprint.reading.recording import open_run
from loadprint.tables.clocks_line import clocks_text
from reads import measured, quantities
from recordings import (
    FIRST,
    MEASURE,
    REALTIME,
    SECOND,
    Host,
    Rows,
    change_column,
    change_json,
    change_lines,
    change_metadata,
    change_rows,
    make_execution,
    make_run,
    write_json,
    write_lines,
    write_manifest,
    write_table,
)

BOOT = "99999999-8888-7777-6666-555555555551"
MILLI = 1_000_000
AHEAD = 300 * SECOND


def split(path: Path, host: Host | None = None, **meta: Any) -> Path:
    """Write a run whose load's host recorded a copy of the load's half of `make_run`.

    Its CLOCK_MONOTONIC is AHEAD of the server's, its CLOCK_REALTIME is right.
    """
    roles = {"server": {"host": "db1"}, "load": {"host": "load1"}}
    run = make_run(path, host, roles=roles, placement={"verified": True}, **meta)
    change_json(run / "server/fingerprint.json", cpusets={})
    fingerprint = json.loads((run / "server/fingerprint.json").read_text())
    role = run / "load"
    write_json(role / "fingerprint.json", fingerprint | {"host": "load1", "boot_id": BOOT})
    tables = ("cpu", "process", "threads", "ticks")
    for name in tables:
        table = pq.read_table(run / "server" / f"{name}.parquet")
        described = json.loads(table.schema.metadata[b"loadprint"])
        rows = table.to_pylist()
        if name in ("process", "threads"):
            rows = [row for row in rows if row["role"] != "server"]
        if name == "ticks":
            rows = [row for row in rows if row["probe"] in tables]
        write_table(role / f"{name}.parquet", rows, described | {"role": "load", "boot_id": BOOT})
    change_rows(role / "ticks.parquet", lambda row: _later(row, AHEAD))
    change_lines(
        role / "phases.jsonl",
        lambda line: line | {"monotonic_ns": line["monotonic_ns"] + AHEAD, "boot_id": BOOT},
    )
    write_manifest(run)
    return run


def _later(row: dict[str, Any], by: int) -> dict[str, Any]:
    return {**row, **{name: row[name] + by for name in ("intended_ns", "start_ns", "end_ns")}}


def test_the_cost_is_that_of_the_servers_recorder(tmp_path: Path) -> None:
    """Each host has a recorder; that of the load's host here uses a whole core."""
    run = split(tmp_path / "run")
    change_rows(
        run / "load/process.parquet",
        lambda row: row | {"stime": 100 * row["stime"]} if row["role"] == "recorder" else row,
    )
    write_manifest(run)
    assert quantities(run).values["process.recorder.cpu"].rate == pytest.approx(0.01)


def skew(run: Path, seconds: float) -> None:
    """Set the clock of the load's host wrong by some seconds: every realtime stamp that it wrote."""
    by, role = round(seconds * SECOND), run / "load"
    change_lines(role / "phases.jsonl", lambda line: line | {"realtime_ns": line["realtime_ns"] + by})
    change_column(role / "ticks.parquet", "realtime_ns", lambda row: row["realtime_ns"] + by)


def measure_clock(
    run: Path,
    *,
    ahead: float = 0.0,
    drift: float = 0.0,
    server_step: float = 0.0,
    load_step: float = 0.0,
) -> None:
    """Write clock.jsonl of the load's host: half a second before `measure`, and 21 seconds later.

    `ahead`: its CLOCK_REALTIME - the server's, in seconds. `drift`: how much faster its clocks run. The steps
    are of either CLOCK_REALTIME between the two readings, in seconds.
    """
    lines = []
    for at, seconds in (("before", -0.25), ("after", 21.25)):
        server, late = round(seconds * SECOND), at == "after"
        load = round(seconds * (1 + drift) * SECOND)
        steps = round((ahead + load_step * late) * SECOND), round(server_step * late * SECOND)
        realtime = [
            REALTIME + MEASURE - FIRST + since + by for since, by in zip((load, server), steps, strict=True)
        ]
        lines.append(
            {
                "at": at,
                "boot_id": BOOT,
                "monotonic_ns": MEASURE + AHEAD + load,
                "realtime_ns": realtime[0],
                "server_realtime_ns": realtime[1],
                "bound_ns": MILLI // 5,
            }
        )
    write_lines(run / "load" / "clock.jsonl", lines)
    write_manifest(run)


ALIGNED = "aligned on the monotonic clock"
KEYS = ("cpu.server.user", "nic.veth0.tx_bytes", "threads.server.voluntary_ctxt_switches", "load.events")


def figures(run: Measured) -> list[float]:
    return [run.quantities.values[key].rate for key in KEYS]


def growing(path: Path) -> Path:
    """A run of two hosts whose server works harder every second, so that a wrong window has other figures."""
    run = split(path)
    return change_column(run / "server/nic.parquet", "tx_bytes", lambda row: 1000 * row["tick"] ** 2)


@pytest.mark.parametrize("seconds", [4, -4, 12])
def test_a_wrong_clock_of_the_load_changes_nothing_if_the_offset_was_measured(
    tmp_path: Path, seconds: int
) -> None:
    right, wrong = growing(tmp_path / "right"), growing(tmp_path / "wrong")
    measure_clock(right)
    skew(wrong, seconds)
    measure_clock(wrong, ahead=seconds)

    expected, result = measured(right), measured(wrong)

    assert figures(result) == pytest.approx(figures(expected), rel=1e-9)
    assert result.window
    assert expected.window
    assert result.window.ends("cpu") == expected.window.ends("cpu")
    way = "ahead of" if seconds > 0 else "behind"
    assert clocks_text([result]) == (
        f"load1 {abs(seconds)},000 ms {way} db1 ± 0.2 ms, drift under 19 ppm; aligned"
    )
    for key, series in result.quantities.series.items():
        assert series.seconds == pytest.approx(expected.quantities.series[key].seconds)


def test_without_a_measured_offset_the_header_and_the_comparability_report_it(tmp_path: Path) -> None:
    run = growing(tmp_path / "run")
    skew(run, 4)

    assert clocks_text([measured(run)]) == (
        "the offset between load1 and db1 is not known: clock.jsonl is missing; taken as 0"
    )
    other = growing(tmp_path / "measured")
    measure_clock(other)
    comparable = ask("compare", run, other, "--verbose").out
    assert "run has no record of the offset between its hosts' clocks" in " ".join(comparable.split())


def test_the_drift_is_followed(tmp_path: Path) -> None:
    run = growing(tmp_path / "run")
    measure_clock(run, ahead=-0.0003, drift=50e-6)

    assert clocks_text([measured(run)]) == "load1 0.31 ms behind db1 ± 0.2 ms, drift 50 ppm; aligned"


@pytest.mark.parametrize(
    ("steps", "text"),
    [
        *(
            ({"server_step": step}, f"db1's clock was set by {shown} s during the run; {ALIGNED}")
            for step, shown in ((60, "+60"), (-60, "−60"), (-3, "−3"))
        ),
        ({"load_step": 60}, "load1's clock was set by +60 s during the run"),
    ],
)
def test_a_step_of_a_clock_changes_no_rate_and_is_reported(
    tmp_path: Path, steps: dict[str, int], text: str
) -> None:
    plain, stepped = growing(tmp_path / "plain"), growing(tmp_path / "stepped")
    measure_clock(plain)
    set_clock(stepped, steps.get("server_step", 0))
    measure_clock(stepped, **steps)

    result = measured(stepped)

    assert figures(result) == pytest.approx(figures(measured(plain)), rel=1e-9)
    assert text in clocks_text([result])


def test_a_step_on_one_host_is_reported(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    set_clock(run, 60)

    assert clocks_text([measured(run)]) == (
        "db1's clock was set by +60 s during the run; rates are on the monotonic clock"
    )
    assert clocks_text([measured(make_run(tmp_path / "calm"))]) == ""


def test_a_late_read_in_the_background_is_no_step(tmp_path: Path) -> None:
    """The recorder stores a late read at the next tick, with the stamps of the read."""
    run = growing(tmp_path / "run")

    def late(row: dict[str, Any]) -> dict[str, Any]:
        if row["probe"] == "nic" and row["tick"] in (9, 14, 15):
            return {**row, **{name: row[name] - round(1.02 * SECOND) for name in ("start_ns", "end_ns")}}
        return row

    change_rows(run / "server/ticks.parquet", late)

    assert measured(run).quantities.series["nic.veth0.tx_bytes"].seconds[0] == pytest.approx(0, abs=0.01)
    assert "was set" not in clocks_text([measured(run)])


def test_a_broken_reading_of_the_clocks_is_refused_with_its_line(tmp_path: Path) -> None:
    run = growing(tmp_path / "run")
    measure_clock(run)
    path = run / "load" / "clock.jsonl"
    before, after = path.read_text().splitlines()
    path.write_text(f"{before}\n{after[:40]}\n")
    assert len(open_run(run).exchanges) == 1  # a crash cut off the last line

    path.write_text(json.dumps(json.loads(before) | {"bound_ns": "0.2 ms"}) + f"\n{after}\n")
    with pytest.raises(InputError, match=r"clock.jsonl line 1: is not a reading of two clocks"):
        open_run(run)


def set_clock(run: Path, seconds: int) -> None:
    """Set the clock of the server at tick 9."""
    by = seconds * SECOND
    path = run / "server/ticks.parquet"
    change_column(path, "realtime_ns", lambda row: row["realtime_ns"] + (by if row["tick"] >= 9 else 0))


def rate(run: Measured, name: str) -> float:
    return run.quantities.values[name].rate


def test_a_run_of_several_load_hosts_is_refused(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", roles={name: {"host": name} for name in ("server", "load", "load-2")})
    answer = ask("compare", run, make_run(tmp_path / "other"))
    assert answer.status == 2
    assert "run: has several load hosts; use loadprint of the version that recorded it" in answer.line


def test_every_command_accepts_such_runs(tmp_path: Path) -> None:
    cells = {name: {"cell": {"threads": 4, "workload": name}} for name in ("a", "b")}
    path = make_execution(tmp_path / "campaign", {"a": [Host()], "b": [Host()]}, "a", cells)
    for run in ("b1-a-r1", "b1-b-r1"):
        meta = json.loads((path / run / "run.json").read_text())
        shutil.rmtree(path / run)
        measure_clock(split(path / run, side=meta["side"], block=1, repeat=1))

    for words in (
        ("inspect", path / "b1-a-r1"),
        ("check", path),
        ("report", path, "-o", tmp_path / "report.html"),
        ("export", path, "--to", tmp_path / "exported"),
        ("fleet", tmp_path / "exported"),
        ("sweep", path),
    ):
        assert ask(*words).status == 0, words
    text = " ".join(ask("compare", path, "--verbose").out.split())
    assert "comparable yes" in text
    assert "load1 within 0.2 ms of db1, drift under 19 ppm; aligned" in text
    assert "client-bound no: busiest thread" in text


def test_hosts_without_cpu_sets_use_all_of_their_cpus(tmp_path: Path) -> None:
    run = split(tmp_path / "run")
    for name in ("interrupts", "softirqs"):
        # the recorder's sum of a set is only there if it was given one
        change_rows(run / f"server/{name}.parquet", lambda row: None if row["cpus"] == "server" else row)
    measure_clock(run)

    result = measured(run)

    assert result.server_cpus == result.load_cpus == (0, 1)
    assert rate(result, "interrupts.server") == 900
    series = result.quantities.series["interrupts.server"]
    assert np.allclose(series.values, 900)
    assert client.bound([result]).answer == "no"
    pinned = separation.pinned([result])
    assert (pinned.answer, pinned.text) == (
        "yes",
        "server and load ran on separate hosts, each on all of its CPUs",
    )


def test_interrupts_have_values_where_only_the_cpus_are_recorded(tmp_path: Path) -> None:
    run = split(tmp_path / "run")
    change_rows(run / "server/interrupts.parquet", lambda row: row if row["cpus"] in ("0", "1") else None)
    assert rate(measured(run), "interrupts.server") == 900


def test_cpu_sets_on_hosts_are_checked_as_before(tmp_path: Path) -> None:
    run = split(tmp_path / "run")
    change_json(run / "run.json", roles={"server": {"host": "db1", "cpus": "0"}, "load": {"host": "load1"}})
    assert separation.pinned([measured(run)]).text.endswith(
        "; checked during the run: no thread ran elsewhere"
    )


def test_missing_ebpf_is_one_line_of_the_header(tmp_path: Path) -> None:
    run, other = make_run(tmp_path / "run"), make_run(tmp_path / "other")
    reason = "/sys/kernel/btf/vmlinux: no such file; eBPF probes need Linux 5.8 or newer"
    off = [{"name": name, "status": "unavailable", "reason": reason} for name in ("ebpf_sched", "ebpf_block")]
    change_metadata(run / "server/ticks.parquet", lambda described: described["probes"].extend(off))

    text = " ".join(ask("compare", run, other, "--verbose").out.split())

    assert f"no eBPF run: {reason}; other: " in text
    assert "no eBPF" not in ask("compare", other, make_run(tmp_path / "third"), "--verbose").out


def sockets(ticks: list[int], role: str, waiting: int) -> Rows:
    return [
        {
            "tick": t,
            "role": role,
            "namespace": space,
            "tcp_tw": (waiting + t) * (space == "1"),
            "active_opens": 5 * t,
        }
        for t in ticks
        for space in ("1", "2")
    ]


def test_the_sockets_of_both_hosts_are_read_over_their_own_ticks(tmp_path: Path) -> None:
    """The load's host reads them at every second tick; a role has two network namespaces."""
    columns = {"tcp_tw": {"unit": "1", "kind": "gauge"}, "active_opens": {"unit": "1", "kind": "counter"}}
    described = {"shape": "table", "entity": ["role", "namespace"], "columns": columns}
    host = Host(more=lambda ticks: {"sockets": (sockets(list(ticks), "server", 100), described)})
    run = split(tmp_path / "run", host)
    place = run / "load" / "ticks.parquet"
    table = pq.read_table(place)
    rows = table.to_pylist()
    read = [row | {"probe": "sockets"} for row in rows if row["probe"] == "cpu" and row["tick"] % 2 == 0]
    write_table(place, rows + read, json.loads(table.schema.metadata[b"loadprint"]))
    of_load = sockets([row["tick"] for row in read], "load", 1000)
    write_table(run / "load" / "sockets.parquet", of_load, described | {"role": "load", "probe": "sockets"})
    write_manifest(run)
    found = measured(run).quantities
    assert found.values["sockets.server.time_wait"].rate == 100 + 21
    assert found.values["sockets.load.time_wait"].rate == 1000 + 20
    assert found.values["sockets.load.active_opens"].rate == pytest.approx(2 * 5)
