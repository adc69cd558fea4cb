"""Runs the campaigns of campaigns.yml as a user does, and reads what they leave."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Container, Iterable
from pathlib import Path
from typing import Any

import duckdb
import yaml
from ports import free_port
from programs import LOADPRINT, ROOT, SUCCEEDED, ended, in_measure_phase, printed, read, started

# The same in all campaigns of this process: an execution that resumes has its ports as before.
SERVER_PORT = free_port()
EXPORTER_PORTS = {"node_exporter": free_port(), "mysqld_exporter": free_port()}


def known(name: str) -> dict[str, Any]:
    """Read a campaign of campaigns.yml."""
    return dict(yaml.safe_load(Path(__file__).with_name("campaigns.yml").read_text())[name])


def written(place: Path, name: str, **changes: Any) -> Path:
    """Write the file of a campaign into the directory `place`, with other values of some keys."""
    path = place / f"{name}.yml"
    # JSON is YAML
    path.write_text(json.dumps({"name": name, "title": "a campaign of the tests"} | known(name) | changes))
    return path


def command(file: Path, runs: Path, *settings: str, inventory: Path | None = None) -> list[str]:
    """Give the command line that runs a campaign with its results below `runs`."""
    settings = (f"campaign_file={file}", f"campaign_runs_dir={runs}", *settings)
    hosts = ["-i", str(inventory)] if inventory else []
    return [str(ROOT / "characterize"), *hosts, *(word for setting in settings for word in ("-e", setting))]


def _here(name: str, runs: Path, settings: Iterable[str]) -> list[str]:
    """Give the command line of a campaign on this host, with ports of this process."""
    runs.mkdir(exist_ok=True)
    ports = (f"server_port={SERVER_PORT}", json.dumps({"exporter_ports": EXPORTER_PORTS}))
    return command(written(runs, name), runs, *ports, *settings)


def start(name: str, runs: Path, *settings: str) -> subprocess.Popen[str]:
    """Start a campaign on this host, its output in `runs`/output."""
    return started(_here(name, runs, settings), runs / "output")


def run(name: str, runs: Path, *settings: str, statuses: Container[int] = SUCCEEDED) -> str:
    """Run a campaign on this host to its end; gives its output."""
    return ended(_here(name, runs, settings), statuses)


def running(runs: Path, name: str) -> int | None:
    """Give the pid of a process of the campaign while it runs, from its supervisor's status."""
    for execution in runs.glob("*/2*"):
        try:
            status = read(Path(f"/run/loadprint/{execution.name}/status.json"))
        except FileNotFoundError:
            continue
        for process in status.get("processes", []):
            if process["name"] == name and process["state"] == "running":
                return int(process["pid"])
    return None


def measuring(runs: Path, since_ns: int = 0) -> str | None:
    """Name the run whose load, started after a time, is in its measure phase now."""
    return next((run.name for run in runs.glob("*/2*/*") if in_measure_phase(run, since_ns)), None)


def newest(runs: Path) -> Path:
    """Give the directory of the newest execution."""
    return sorted(runs.glob("*/2*"))[-1]


def statuses(runs: Path) -> dict[str, str]:
    """Give {run: status} of the newest execution; empty before the first one."""
    files = newest(runs).glob("*/run.json") if any(runs.glob("*/2*")) else []
    return {path.parent.name: read(path)["status"] for path in files}


def complete(runs: Path) -> set[str]:
    """Name the complete runs of the newest execution."""
    return {run for run, status in statuses(runs).items() if status == "complete"}


def document(runs: Path, run: str) -> dict[str, Any]:
    """Read run.json of a run of the newest execution."""
    return read(newest(runs) / run / "run.json")


def lines(path: Path) -> list[dict[str, Any]]:
    """Read JSON lines."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def slices(path: Path) -> list[dict[str, Any]]:
    """Read the slices of a run, or of its part that another host recorded."""
    return lines(path / "slices.jsonl")


def rows(sql: str) -> list[Any]:
    """Run a query over tables of runs."""
    return duckdb.execute(sql).fetchall()


def reasons(runs: Path) -> str:
    """The newest execution's table with the reasons for trust and the facts."""
    return printed(LOADPRINT, "compare", newest(runs), "--verbose")


def table_rows(runs: Path) -> dict[str, list[Any]]:
    """The values of all rows of the newest execution's table, by side; None where there is none."""
    groups = json.loads(printed(LOADPRINT, "compare", newest(runs), "--all", "--format", "json"))["groups"]
    return {row["key"]: [cell["value"] for cell in row["cells"]] for group in groups for row in group["rows"]}
