"""Runs a campaign on virtual machines over SSH, and reads its runs and its table."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from table_rows import table_rows

from . import ROOT
from .machine import PATIENCE_S
from .remote import Host

TINY = Path(__file__).with_name("tiny.yml")
# For hosts that are twenty times slower than hardware, and slower still if this machine is busy.
SLOW = (
    "server_start_timeout=1800",
    "server_stop_timeout=600",
    "recorder_grace=900",
    "supervisor_lease_s=900",
)
# Prints "measure begin" last while a load measures.
LOOK = "tail -qn 1 /var/lib/loadprint/executions/*/b*/load/phases.jsonl 2>/dev/null || true"
LEFT = (
    "pgrep -a 'loadprint|mariadbd' || true; grep -E 'loadprint/|/media' /proc/mounts || true;"
    " ls -d /dev/shm/loadprint/* /var/lib/loadprint/executions/*/* 2>/dev/null || true;"
    " ip netns; ls /sys/class/net"
)


@dataclass(frozen=True)
class Campaign:
    """A campaign file, the directory of its runs, and an inventory of machines."""

    file: Path
    runs: Path
    inventory: Path

    def start(self) -> subprocess.Popen[bytes]:
        """Start or resume the campaign."""
        settings = (f"campaign_file={self.file}", f"campaign_runs_dir={self.runs}", *SLOW)
        with (self.runs / "output").open("wb") as output:
            return subprocess.Popen(
                [
                    ROOT / "characterize",
                    *("-i", self.inventory),
                    *(word for each in settings for word in ("-e", each)),
                ],
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env=os.environ | {"COLUMNS": "100"},
            )

    def output(self) -> str:
        """Return what it has printed since its last start."""
        return (self.runs / "output").read_text()

    def execution(self) -> Path:
        """Give the directory of the only execution."""
        (found,) = self.runs.glob("machines/2*")
        return found

    def statuses(self) -> dict[str, str]:
        """Give {run: status}."""
        files = self.runs.glob("machines/2*/b*/run.json")
        return {path.parent.name: json.loads(path.read_text())["status"] for path in files}

    def run(self, name: str) -> dict[str, Any]:
        """Read run.json of a run."""
        document: dict[str, Any] = json.loads((self.execution() / name / "run.json").read_text())
        return document

    def cells(self) -> dict[str, list[float | None]]:
        """Give the values of all rows, by side."""
        return table_rows(self.execution())


def inventory(path: Path, server: dict[str, object], load: dict[str, object] | None = None) -> Path:
    """Write an inventory: the variables of the server's host and, if there is one, of the load's."""
    names = {"server": {"machine": server}, "load": {"load": load} if load else {"machine": server}}
    groups = {group: {"hosts": hosts} for group, hosts in names.items()}
    path.write_text(json.dumps({"all": {"children": groups}}))
    return path


def wait_until_measuring(load: Host, process: subprocess.Popen[bytes]) -> None:
    """Wait for the window of a run."""

    def measuring() -> bool:
        lines = [json.loads(line) for line in load.run(LOOK).splitlines()]
        return any((line["phase"], line["event"]) == ("measure", "begin") for line in lines)

    wait_for("the window of a run", measuring, process)


def wait_for(what: str, condition: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    """Poll until the condition is true; the campaign must not end before."""
    deadline = time.monotonic() + 4 * PATIENCE_S
    while not condition():
        assert process.poll() is None, f"{what}: the campaign ended before"
        assert time.monotonic() < deadline, f"{what}: not in time"
        time.sleep(3)
