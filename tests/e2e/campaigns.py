"""Runs the playbook as a user does, and waits for the points at which the tests break it."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ports import free_port

from . import ROOT

TINY = Path(__file__).with_name("tiny.yml")
# The same in all campaigns of this process: an execution that resumes has its ports as before.
SERVER_PORT = free_port()
EXPORTER_PORTS = {"node_exporter": free_port(), "mysqld_exporter": free_port()}


def command(runs: Path, *arguments: str, campaign: Path = TINY) -> list[str]:
    """Give the command line that runs a campaign with its results below `runs`."""
    settings = (
        f"campaign_file={campaign}",
        f"campaign_runs_dir={runs}",
        f"server_port={SERVER_PORT}",
        json.dumps({"exporter_ports": EXPORTER_PORTS}),
        *arguments,
    )
    return [str(ROOT / "characterize"), *(word for setting in settings for word in ("-e", setting))]


def start(runs: Path, *arguments: str, campaign: Path = TINY) -> subprocess.Popen[str]:
    """Start a campaign in a separate session, its output in `runs`/output."""
    with (runs / "output").open("w") as output:
        return subprocess.Popen(
            command(runs, *arguments, campaign=campaign),
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )


def run(runs: Path, *arguments: str, campaign: Path = TINY) -> subprocess.CompletedProcess[str]:
    """Run a campaign to its end."""
    return subprocess.run(
        command(runs, *arguments, campaign=campaign),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        check=False,
        env=os.environ | {"COLUMNS": "100"},
    )


def status(runs: Path) -> dict[str, Any]:
    """Read the supervisor's status of the campaign with results below `runs`; empty while there is none."""
    for execution in runs.glob("*/2*"):
        try:
            text = Path(f"/dev/shm/loadprint/{execution.name}/status.json").read_text()
        except (FileNotFoundError, NotADirectoryError):
            continue
        return dict(json.loads(text))
    return {}


def running(runs: Path, name: str) -> int | None:
    """Give the pid of a process of the campaign while it runs."""
    for process in status(runs).get("processes", []):
        if process["name"] == name and process["state"] == "running":
            return int(process["pid"])
    return None


def wait_for(what: str, condition: Callable[[], Any], seconds: float = 900) -> Any:
    """Poll until the condition gives something, and return that."""
    deadline = time.monotonic() + seconds
    while not (result := condition()):
        assert time.monotonic() < deadline, f"{what}: not within {seconds:.0f} s"
        time.sleep(0.05)
    return result


def measuring(runs: Path) -> str | None:
    """Name the run whose load is in its measure phase now."""
    return in_measure_phase(runs.glob("*/2*/*/load/phases.jsonl"))


def in_measure_phase(files: Iterable[Path], since_ns: int = 0) -> str | None:
    """Name the run of a phases.jsonl, begun after a time, that ends with the start of `measure`."""
    for phases in files:
        # what follows the last end of a line is being written
        whole, _, _ = phases.read_text().rpartition("\n")
        lines = [json.loads(line) for line in whole.splitlines()]
        if not lines or lines[0]["realtime_ns"] < since_ns:
            continue
        if (lines[-1]["phase"], lines[-1]["event"]) == ("measure", "begin"):
            return phases.parts[-3]
    return None


def statuses(runs: Path) -> dict[str, str]:
    """Give {run: status} of the newest execution."""
    executions = sorted(runs.glob("*/2*"))
    files = executions[-1].glob("*/run.json") if executions else []
    return {path.parent.name: json.loads(path.read_text())["status"] for path in files}
