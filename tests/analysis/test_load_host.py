"""Several load hosts act as one generator, and two hosts without CPU sets use all of their CPUs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
from damage import ask
from host_recordings import measure_clock, split
from loadprint.__main__ import main
from loadprint.judging import client, separation
from loadprint.metrics.gather import Measured
from loadprint.reading.queries import Store
from loadprint.series.series import run_series
from reads import measured
from recordings import Host, change_json, change_metadata, change_rows, make_execution, make_run


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
        assert main([str(word) for word in words]) == 0, words
    text = " ".join(ask("compare", path, "--format", "text").out.split())
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
    series = run_series(result.run, Store(), ["interrupts"])["interrupts.server"]
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

    text = " ".join(ask("compare", run, other, "--format", "text").out.split())

    assert f"no eBPF run: {reason}; other: " in text
    assert "no eBPF" not in ask("compare", other, make_run(tmp_path / "third"), "--format", "text").out
