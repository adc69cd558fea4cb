"""Campaigns of other kinds on a real server: a matrix, equal load, an external generator."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from programs import LOADPRINT, printed, read

from . import campaigns
from .campaigns import rows
from .machine import look, settled


def run_of(runs: Path, side: str) -> Path:
    return next(runs.glob(f"*/2*/b1-{side}-r1"))


def test_a_matrix_is_swept_and_printed_as_pivot_tables(tmp_path: Path) -> None:
    short = {"ceilings_parts": ["network"], "ceilings_seconds": 1, "ceilings_repeats": 1}
    measured = {"campaign_set": ["ceilings=true"], **short}
    output = campaigns.run("matrix", tmp_path, "campaign_scale=wider", json.dumps(measured))
    assert set(campaigns.statuses(tmp_path)) == {
        f"b1-{scenario}-t{threads}-r1" for scenario in ("simple", "ctx5") for threads in (1, 3)
    }
    result = read(run_of(tmp_path, "ctx5-t3") / "load" / "result.json")
    assert (result["threads"], result["options"]["scenario"]) == (3, "ctx5")
    # the run ended with its events, not with its time
    assert result["events"] == 40000
    assert "Speed-up against 1 connection" in output
    assert "Best connection count on" in output
    execution = run_of(tmp_path, "ctx5-t3").parent
    # measured before the first run, by the way that its load takes
    ceilings = read(execution / "ceilings.json")["ceilings"]
    assert {entry["quantity"] for entry in ceilings} >= {"nic.veth.rx_bytes", "nic.veth.tx_bytes"}
    throughput = json.loads(printed(LOADPRINT, "sweep", execution, "--format", "json"))["pivots"][0]
    assert (throughput["rows"], throughput["columns"]) == (["1", "3"], ["simple", "ctx5"])
    assert all(cell > 0 for row in throughput["cells"] for cell in row)


def test_two_sides_on_two_servers_run_in_one_execution(tmp_path: Path) -> None:
    machine_before = look()
    two = {"campaign_set": ["sides.oltp.server.source=package", "repeats=1", "canary=false"]}
    campaigns.run("tiny", tmp_path, json.dumps(two))
    assert settled(machine_before) == []
    versions = {}
    for side, flavour in (("oltp", "mariadb"), ("insert", "mysql")):
        run = read(run_of(tmp_path, side) / "run.json")
        versions[side] = read(run_of(tmp_path, side) / "load" / "server.json")["variables"]["version"]
        assert run["versions"]["server"].startswith(f"{flavour} {versions[side].partition('-')[0]}")
    assert "MariaDB" in versions["oltp"]
    assert "MariaDB" not in versions["insert"]
    execution = read(run_of(tmp_path, "oltp").parent / "execution.json")
    assert {key: server["obtained"]["flavour"] for key, server in execution["servers"].items()} == {
        "main": "mysql",
        "package": "mariadb",
    }
    # the campaign asked for the difference
    assert "varied" in campaigns.reasons(tmp_path)


def test_equal_load_holds_half_of_the_slower_sides_maximum(tmp_path: Path) -> None:
    output = campaigns.run("equal_load", tmp_path)
    reached = {}
    for side, flush in (("durable", "1"), ("relaxed", "2")):
        folder = run_of(tmp_path, side)
        result = read(folder / "load" / "result.json")
        reached[side] = result["events"] / result["seconds"]
        # a side's own server setting reached the server
        variables = read(folder / "load" / "server.json")["variables"]
        assert variables["innodb_flush_log_at_trx_commit"] == flush
    for side in reached:
        folder = run_of(tmp_path, f"{side}@50")
        run, result = read(folder / "run.json"), read(folder / "load" / "result.json")
        assert run["drive"]["maximum"] == min(reached.values())
        assert run["drive"]["rate"] == result["rate"] == run["parameters"]["rate"]
        assert abs(result["rate"] - min(reached.values()) / 2) <= 0.5
        assert result["mode"] == "open"
    # others count another operation, and get half of what they reached alone: TPROC-C its new orders
    for side in ("jdbc", "tproc_c"):
        alone = read(run_of(tmp_path, side) / "load" / "result.json")
        folder = run_of(tmp_path, f"{side}@50")
        run, result = read(folder / "run.json"), read(folder / "load" / "result.json")
        assert run["drive"]["slowest"] == side
        assert run["drive"]["maximum"] == alone["events"] / alone["seconds"]
        # three seconds on a busy host: a rate in another unit would be half or twice as high
        assert 0.5 < result["events"] / result["seconds"] / run["drive"]["rate"] < 1.5
    # what the sides' own settings mean for a commit
    varied = "varied       durability: commit redo synced, binlog synced | redo written"
    assert varied in campaigns.reasons(tmp_path)
    assert "durable@50" in output


def scraped_between_our_ticks(folder: Path, mode: str) -> None:
    """Hold node_exporter's CPU time against ours before the scrape began and after it was taken."""
    cpu, ticks, scrape = (f"'{folder}/server/{table}.parquet'" for table in ("cpu", "ticks", "scrape"))
    actual = rows(
        f"WITH read AS (SELECT tick, sum(value) AS value FROM {scrape} WHERE endpoint = 'node_exporter'"
        f"  AND metric LIKE 'node_cpu_seconds_total{{%mode=\"{mode}\"}}' GROUP BY tick),"
        f" began AS (SELECT u.tick, max(t.tick) AS before FROM {scrape} u JOIN {ticks} t"
        "  ON t.realtime_ns <= u.timestamp_ns"
        "  WHERE u.endpoint = 'node_exporter' AND u.metric = 'up' GROUP BY u.tick)"
        f' SELECT read.value, b."{mode}", a."{mode}" FROM read JOIN began USING (tick)'
        f" JOIN {cpu} b ON b.tick = began.before AND b.cpu = 'all'"
        f" JOIN {cpu} a ON a.tick = read.tick + 1 AND a.cpu = 'all' ORDER BY read.tick"
    )
    assert len(actual) >= 2
    # The kernel counts in hundredths of a second; `all` is rounded apart from the CPUs that make it up.
    slack = os.cpu_count() or 1
    assert all(before - slack <= value * 100 <= after + slack for value, before, after in actual), actual
    assert actual[-1][0] > actual[0][0]


def test_an_external_generator_is_recorded_with_its_children_next_to_exporters(tmp_path: Path) -> None:
    machine_before = look()
    output = campaigns.run("external", tmp_path)
    assert (
        "side absent is left out: the load's host has no loadprint-no-such-program; it does not exist"
        in output
    )
    assert set(campaigns.statuses(tmp_path)) == {"b1-native-r1", "b1-sysbench-r1"}
    assert settled(machine_before) == []
    for side in ("native", "sysbench"):
        server = run_of(tmp_path, side) / "server"
        scrape = server / "scrape.parquet"
        up = rows(
            f"SELECT endpoint, count(*) FROM '{scrape}' WHERE metric = 'up' AND value = 1"
            " GROUP BY 1 ORDER BY 1"
        )
        # one that does not answer within an interval is down for that tick
        assert [name for name, _ in up] == ["mysqld_exporter", "node_exporter"]
        assert all(count >= 2 for _, count in up), up
        scraped_between_our_ticks(server.parent, "user")
        scraped_between_our_ticks(server.parent, "system")
        # mysqld_exporter is logged in, with the recorder's account
        assert (1.0,) in rows(f"SELECT DISTINCT value FROM '{scrape}' WHERE metric = 'mysql_up'")
        questions = rows(
            f"SELECT value FROM '{scrape}' WHERE metric = 'mysql_global_status_questions' ORDER BY tick"
        )
        assert questions[-1] > questions[0]
    folder = run_of(tmp_path, "sysbench")
    run, result = read(folder / "run.json"), read(folder / "load" / "result.json")
    assert run["generator"] == result["generator"] == "sysbench"
    assert result["events"] > 0
    query = f"SELECT DISTINCT comm FROM '{folder}/server/process.parquet' WHERE role = 'load'"
    assert {("loadprint-load",), ("sysbench",)} <= set(rows(query))
    assert run["placement"]["load"]["outside_ran"] == 0, run["placement"]


def test_a_campaign_ends_when_its_answer_is_precise(tmp_path: Path) -> None:
    row = "statements, all clients"
    asked = {"precision": "80%", "within": "20min", "campaign_set": [f'rows=["{row}"]']}
    output = campaigns.run("turns", tmp_path, json.dumps(asked))
    plan = read(campaigns.newest(tmp_path) / "execution.json")
    assert re.fullmatch(r"precision [\d.]+ % after 5 starts", plan["ended_by"])
    assert len(plan["runs"]) == len(campaigns.complete(tmp_path)) == 2 * 5
    assert re.search(f"^ended +{re.escape(plan['ended_by'])}$", output, re.MULTILINE)
