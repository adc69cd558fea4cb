"""The main job on a real server: the table it prints, what is in the runs, and that nothing is left."""

from __future__ import annotations

import json
import os
import re
from itertools import pairwise
from pathlib import Path

import pytest
from programs import LOADPRINT, printed, read

from . import campaigns
from .campaigns import lines, rows
from .machine import Machine, look, settled

# Of the server, where ./test could not obtain the one that the campaign names.
SOURCE = os.environ.get("LOADPRINT_TEST_SERVER_SOURCE", "rootfs")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, Machine]:
    runs = tmp_path_factory.mktemp("runs")
    before = look()
    output = campaigns.run("tiny", runs, f"mysql_source={SOURCE}", f"server_data_root={data(runs)}")
    return runs, output, before


def data(runs: Path) -> Path:
    """Another directory for the servers' data."""
    return runs.with_name("data")


def test_nothing_is_left(finished: tuple[Path, str, Machine]) -> None:
    runs, _, before = finished
    assert settled(before) == []
    assert list(data(runs).iterdir()) == []
    execution = next(runs.glob("tiny/2*"))
    assert sorted(path.name for path in execution.iterdir() if path.is_dir()) == sorted(
        campaigns.statuses(runs)
    )


def test_the_table_has_the_rows_of_the_published_one(finished: tuple[Path, str, Machine]) -> None:
    _, output, _ = finished
    rows = ("%usr", "%sys", "%iowait", "await", "received", "sent", "context switches", "interrupts")
    assert not [row for row in rows if row not in output], output
    table = output[output.index("\ntiny · ") : output.index("\ntiny is complete")].splitlines()
    assert max(map(len, table)) <= 100, table


def test_the_report_lies_beside_the_runs(finished: tuple[Path, str, Machine]) -> None:
    runs, output, _ = finished
    page = next(runs.glob("tiny/2*")) / "report.html"
    assert f"its report: {page}" in output
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_the_host_is_checked_first(finished: tuple[Path, str, Machine]) -> None:
    runs, output, _ = finished
    kept = read(next(runs.glob("tiny/2*")) / "check.json")
    assert kept["subjects"]
    assert kept["passed"]
    assert f"{len(kept['passed'])} rules passed" in output


def test_statement_counts_are_the_servers_own(finished: tuple[Path, str, Machine]) -> None:
    runs, _, _ = finished
    seen = 0
    for folder in runs.glob("tiny/2*/*oltp*/load"):
        result, server = read(folder / "result.json"), read(folder / "server.json")
        begin, end = server["status_begin"], server["status_end"]
        events, errors = result["events"], result["errors"]
        sent = {"Com_select": 14, "Com_update": 2}
        sent |= dict.fromkeys(("Com_insert", "Com_delete", "Com_begin", "Com_commit"), 1)
        grown = {name: int(end[name]) - int(begin[name]) for name in sent}
        # a transaction restarts after a deadlock, with up to this number of further statements
        most = {name: number * (events + errors) for name, number in sent.items()}
        # the recorder's own SELECTs are the server's too; it counts them itself
        most["Com_select"] += own_selects(folder.parent / "server" / "mysql.parquet")
        assert errors <= events / 100
        assert all(sent[name] * events <= grown[name] <= most[name] for name in sent), (result, grown)
        for name, number in (("reads", 14), ("writes", 4), ("others", 2)):
            assert number * events <= result[name] <= number * (events + errors), (name, result)
        assert result["commits"] == events
        seen += 1
    assert seen == 2


def own_selects(table: Path) -> int:
    """How many SELECTs the MySQL probe sent at most while the run was recorded, the last perhaps in vain."""
    query = f"SELECT value FROM '{table}' WHERE metric = 'loadprint.com_select' ORDER BY tick"
    counted = [int(value) for (value,) in rows(query)]
    return counted[-1] - counted[0] + max(after - before for before, after in pairwise(counted))


def test_every_run_is_whole(finished: tuple[Path, str, Machine]) -> None:
    runs, _, _ = finished
    for folder in runs.glob("tiny/2*/b*"):
        inspected = json.loads(printed(LOADPRINT, "inspect", folder, "--format", "json"))
        run = read(folder / "run.json")
        assert run["status"] == "complete"
        assert run["placement"]["server"]["outside_allowed"] == 0, run["placement"]
        assert run["placement"]["load"]["outside_ran"] == 0, run["placement"]
        assert inspected


def test_the_server_was_asked_with_least_privilege(finished: tuple[Path, str, Machine]) -> None:
    runs, _, _ = finished
    folders = list(runs.glob("tiny/2*/b*"))
    assert len(folders) == 4
    for folder in folders:
        ticks, table = f"'{folder}/server/ticks.parquet'", f"'{folder}/server/mysql.parquet'"
        statuses = rows(f"SELECT DISTINCT status FROM {ticks} WHERE probe = 'mysql'")
        # a server that is slow to answer is read at a later tick
        assert ("ok",) in statuses
        assert {status for (status,) in statuses} <= {"ok", "skipped"}
        metrics = {metric for (metric,) in rows(f"SELECT DISTINCT metric FROM {table}")}
        assert {"Questions", "loadprint.queries"} <= metrics
        if SOURCE == "rootfs":
            assert "Innodb_redo_log_checkpoint_lsn" in metrics
            # the configuration turns it on
            assert "innodb_metrics.buffer_flush_adaptive_total_pages" in metrics
            assert "innodb_metrics.log_lsn_checkpoint_age" in metrics
        assert not [metric for metric in metrics if metric.startswith("loadprint.refused.")]
    # the passwords went with the data
    assert not list(runs.glob("tiny/2*/account"))


def test_every_run_has_its_canaries(finished: tuple[Path, str, Machine]) -> None:
    runs, output, _ = finished
    for folder in runs.glob("tiny/2*/b*"):
        canaries = lines(folder / "server" / "canary.jsonl")
        assert [canary["label"] for canary in canaries] == ["before", "after"]
        phases = lines(folder / "load" / "phases.jsonl")
        assert canaries[0]["end_monotonic_ns"] < phases[0]["monotonic_ns"]
        assert canaries[1]["begin_monotonic_ns"] > phases[-1]["monotonic_ns"]
        run = read(folder / "run.json")
        cpus = ",".join(map(str, canaries[0]["cpus"]))
        assert cpus == run["roles"]["server"]["cpus"], "on the server's CPUs"
        assert [part["name"] for part in canaries[0]["parts"]] == ["cpu", "memory", "syscall", "fsync"]
        assert all("reason" not in part for canary in canaries for part in canary["parts"]), canaries
        manifest = read(folder / "manifest.json")["files"]
        assert "server/canary.jsonl" in manifest
    trust = " ".join(output[output.index("\ntrust ") :].split())
    # a few runs do not give every part of the canary a limit
    assert re.search(r"disturbed (no\b|\d+ of|not checked \([a-z])", trust), trust
