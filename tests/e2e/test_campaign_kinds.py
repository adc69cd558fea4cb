"""Campaigns of other kinds on a real server: a matrix, equal load, a guest generator."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import duckdb

from . import LOADPRINT, campaigns

HERE = Path(__file__).parent


def run_of(runs: Path, side: str) -> Path:
    return next(runs.glob(f"*/2*/b1-{side}-r1"))


def read(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text()))


def test_a_matrix_is_swept_and_printed_as_pivot_tables(tmp_path: Path) -> None:
    done = campaigns.run(tmp_path, "campaign_scale=wider", campaign=HERE / "matrix.yml")
    assert done.returncode == 0, done.stdout
    assert set(campaigns.statuses(tmp_path)) == {
        f"b1-{scenario}-t{threads}-r1" for scenario in ("simple", "ctx5") for threads in (1, 3)
    }
    result = read(run_of(tmp_path, "ctx5-t3") / "load" / "result.json")
    assert (result["threads"], result["options"]["scenario"]) == (3, "ctx5")
    assert "Speed-up against 1 connections" in done.stdout
    assert "Best connection count on" in done.stdout
    execution = run_of(tmp_path, "ctx5-t3").parent
    told = subprocess.run(
        [LOADPRINT, "sweep", execution, "--format", "json"], capture_output=True, text=True, check=True
    )
    throughput = json.loads(told.stdout)["pivots"][0]
    assert (throughput["rows"], throughput["columns"]) == (["1", "3"], ["simple", "ctx5"])
    assert all(cell > 0 for row in throughput["cells"] for cell in row)


def test_equal_load_holds_half_of_the_slower_sides_maximum(tmp_path: Path) -> None:
    done = campaigns.run(tmp_path, campaign=HERE / "equal_load.yml")
    assert done.returncode == 0, done.stdout
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
    assert "innodb_flush_log_at_trx_commit 1 | 2" in done.stdout
    assert "durable@50" in done.stdout


def test_a_guest_is_recorded_with_its_children(tmp_path: Path) -> None:
    done = campaigns.run(tmp_path, campaign=HERE / "guest.yml")
    assert done.returncode == 0, done.stdout
    folder = run_of(tmp_path, "sysbench")
    run, result = read(folder / "run.json"), read(folder / "load" / "result.json")
    assert run["generator"] == result["generator"] == "sysbench"
    assert result["events"] > 0
    query = f"SELECT DISTINCT comm FROM '{folder}/server/process.parquet' WHERE role = 'load'"
    programs = {row[0] for row in duckdb.execute(query).fetchall()}
    assert {"loadprint-load", "sysbench"} <= programs
    assert run["placement"]["load"]["outside_ran"] == 0, run["placement"]
