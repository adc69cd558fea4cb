"""Several load hosts act as one generator, and two hosts without CPU sets use all of their CPUs."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from damage import ask
from host_recordings import delay, measure_clock, split
from loadprint.__main__ import main
from loadprint.judging import client, separation
from loadprint.metrics.gather import Measured, gather
from loadprint.metrics.quantities import Quantity
from loadprint.reading.merge_loads import merged
from loadprint.reading.queries import Store
from loadprint.reading.recording import open_run
from loadprint.series.series import run_series
from loadprint.series.throughput import intervals
from recordings import Host, make_execution, make_run, write_json, write_manifest

KEPT = Path(__file__).parents[1] / "recordings/v1/oltp"
OPEN = {"mode": "open", "rate": 100, "achieved_rate": 99.5, "backlog_max": 7, "backlog_end": 2}


def three(path: Path, host: Host | None = None) -> Path:
    run = split(path, 3, host)
    for number in (1, 2, 3):
        measure_clock(run, number)
    return run


def read(run: Path) -> Measured:
    return gather(open_run(run), Store())


def rate(run: Measured, name: str) -> float:
    return run.quantities.values[name].rate


def test_counts_rates_and_processors_are_added(tmp_path: Path) -> None:
    host = Host(result=OPEN | {"errors_by_code": {"1213": 21}})
    one, all_three = read(split(tmp_path / "one", 1, host)), read(three(tmp_path / "three", host))

    for name in ("load.events", "load.queries", "load.rate", "load.achieved_rate", "load.backlog_max"):
        assert rate(all_three, name) == pytest.approx(3 * rate(one, name)), name
    for name in ("load.errors.1213", "process.load.cpu", "cpu.load.user", "cpu.load.cores"):
        assert rate(all_three, name) == pytest.approx(3 * rate(one, name)), name
    for name in ("threads.load.busiest", "latency.mean", "cpu.server.user", "load.seconds"):
        assert rate(all_three, name) == pytest.approx(rate(one, name)), name
    assert (all_three.run.result or {})["threads"] == 12
    series = [run_series(each.run, Store(), ["cpu.load.user"])["cpu.load.user"] for each in (one, all_three)]
    assert series[1].values == pytest.approx(3 * series[0].values)


def test_the_latency_logs_are_added_exactly(tmp_path: Path) -> None:
    """Intervals of a real log, dealt to three hosts, have the quantiles that the log's writer reported."""
    reported = json.loads((KEPT / "load" / "result.json").read_text())
    lines = (KEPT / "load" / "latency.hlog").read_text().splitlines(keepends=True)
    results = {}
    for number, role in enumerate(("load", "load-2", "load-3")):
        (tmp_path / role).mkdir()
        dealt = [line for place, line in enumerate(lines) if line.startswith("#") or place % 3 == number]
        (tmp_path / role / "latency.hlog").write_text("".join(dealt))
        results[role] = reported

    result = merged(tmp_path, results) or {}

    for name in ("p50", "p95", "p99", "p999", "max", "min", "mean"):
        assert result["latency_ms"][name] == pytest.approx(reported["latency_ms"][name], rel=1e-9), name
    assert result["events"] == 3 * reported["events"]

    (tmp_path / "load-2" / "latency.hlog").unlink()
    without = merged(tmp_path, results) or {}
    assert without["latency_ms"]["p99"] is None, "never a mean of quantiles"
    assert without["latency_ms"]["mean"] == pytest.approx(reported["latency_ms"]["mean"])


def test_throughput_is_added_on_the_servers_clock(tmp_path: Path) -> None:
    run = three(tmp_path / "run", Host(series=lambda second: 100))
    delay(run, 2, 0.1)
    delay(run, 3, 2)

    reported = intervals(open_run(run), Store())

    assert reported is not None
    # their first whole seconds begin at 0, 0.1 and 2
    assert reported.rates("events")[:4].tolist() == pytest.approx([190, 200, 300, 300])
    measured = read(run)
    assert measured.window is not None
    assert measured.window.seconds == pytest.approx(23)


def test_the_load_host_at_its_limit_is_named(tmp_path: Path) -> None:
    run = read(three(tmp_path / "run"))
    assert client.bound([run]).text.startswith("load1: busiest thread 33 % of a CPU, its CPUs 28 %")
    busy = replace(run.loads[1].quantities, values={**run.loads[1].quantities.values})
    busy.values["threads.load.busiest"] = Quantity(0.97)
    bound = client.bound(
        [replace(run, loads=(run.loads[0], replace(run.loads[1], quantities=busy), run.loads[2]))]
    )

    assert bound.answer == "yes"
    assert bound.text.startswith("load2: busiest thread 97 % of a CPU (limit 90 %)")
    assert "load1" not in bound.text


@pytest.mark.parametrize("named", [True, False], ids=["by run.json", "by the parts"])
def test_a_missing_load_host_is_reported_in_one_line(tmp_path: Path, named: bool) -> None:
    run, other = three(tmp_path / "run"), three(tmp_path / "other")
    shutil.rmtree(run / "load-2")
    if not named:
        write_json(run / "run.json", json.loads((run / "run.json").read_text()) | {"roles": {}})
    write_manifest(run)

    for words in (("compare", run, other), ("report", run, "-o", tmp_path / "report.html"), ("check", run)):
        answer = ask(*words)
        assert answer.status == 2, words
        assert "load-2/result.json: is missing: the run has 3 load hosts" in answer.line, words
    assert "load-2/result.json is missing: the run has 3 load hosts" in ask("inspect", run).out


def test_hosts_that_ran_different_workloads_are_refused(tmp_path: Path) -> None:
    run = three(tmp_path / "run")
    path = run / "load-3" / "result.json"
    write_json(path, json.loads(path.read_text()) | {"workload": "tproc_c"})
    write_manifest(run)
    answer = ask("compare", run, three(tmp_path / "other"))
    assert answer.status == 2
    assert "load-3/result.json: `workload` is tproc_c, that of load is oltp_read_write" in answer.line


def test_every_command_accepts_such_runs(tmp_path: Path) -> None:
    cells = {name: {"cell": {"threads": 4, "workload": name}} for name in ("a", "b")}
    path = make_execution(tmp_path / "campaign", {"a": [Host()], "b": [Host()]}, "a", cells)
    for run in ("b1-a-r1", "b1-b-r1"):
        meta = json.loads((path / run / "run.json").read_text())
        shutil.rmtree(path / run)
        three(path / run)
        made = json.loads((path / run / "run.json").read_text())
        write_json(path / run / "run.json", meta | {"roles": made["roles"]})
        write_manifest(path / run)

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
    assert "load1 within 0.2 ms of db1, drift under 19 ppm; aligned; load2" in text
    assert "client-bound no: load1: busiest thread" in text


def test_hosts_without_cpu_sets_use_all_of_their_cpus(tmp_path: Path) -> None:
    run = split(tmp_path / "run")
    for name in ("interrupts", "softirqs"):
        path = run / "server" / f"{name}.parquet"
        table = pq.read_table(path)
        # the recorder's sum of a set is only there if it was given one
        pq.write_table(table.filter([value != "server" for value in table["cpus"].to_pylist()]), path)
    measure_clock(run)

    result = read(run)

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
    path = run / "server" / "interrupts.parquet"
    table = pq.read_table(path)
    pq.write_table(table.filter([value in ("0", "1") for value in table["cpus"].to_pylist()]), path)
    write_manifest(run)
    assert rate(read(run), "interrupts.server") == 900


def test_cpu_sets_on_hosts_are_checked_as_before(tmp_path: Path) -> None:
    run = split(tmp_path / "run")
    meta = json.loads((run / "run.json").read_text())
    meta["roles"]["server"]["cpus"] = "0"
    write_json(run / "run.json", meta)
    write_manifest(run)
    assert separation.pinned([read(run)]).text.endswith("; checked during the run: no thread ran elsewhere")


def test_missing_ebpf_is_one_line_of_the_header(tmp_path: Path) -> None:
    run, other = make_run(tmp_path / "run"), make_run(tmp_path / "other")
    path = run / "server" / "ticks.parquet"
    table = pq.read_table(path)
    described = json.loads(table.schema.metadata[b"loadprint"])
    reason = "/sys/kernel/btf/vmlinux: no such file; eBPF probes need Linux 5.8 or newer"
    described["probes"] += [
        {"name": name, "status": "unavailable", "reason": reason} for name in ("ebpf_sched", "ebpf_block")
    ]
    pq.write_table(table.replace_schema_metadata({"loadprint": json.dumps(described)}), path)
    write_manifest(run)

    text = " ".join(ask("compare", run, other, "--format", "text").out.split())

    assert f"no eBPF run: {reason}; other: " in text
    assert "no eBPF" not in ask("compare", other, make_run(tmp_path / "third"), "--format", "text").out
