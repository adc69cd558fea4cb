"""Runs a campaign on virtual machines over SSH, and looks at what is on them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from e2e import campaigns
from programs import started, wait_for

from .machine import PATIENCE_S
from .remote import Host

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
    " ls -d /run/loadprint/* /var/lib/loadprint/executions/*/* 2>/dev/null || true;"
    " ip netns; ls /sys/class/net"
)


@dataclass(frozen=True)
class Campaign:
    """A campaign file, the directory of its runs, and an inventory of machines."""

    file: Path
    runs: Path
    inventory: Path

    def start(self) -> subprocess.Popen[str]:
        """Start or resume the campaign."""
        words = campaigns.command(self.file, self.runs, *SLOW, inventory=self.inventory)
        return started(words, self.runs / "output")

    def output(self) -> str:
        """Return what it has printed since its last start."""
        return (self.runs / "output").read_text()


def inventory(path: Path, server: dict[str, object], load: dict[str, object] | None = None) -> Path:
    """Write an inventory: the variables of the server's host and, if there is one, of the load's."""
    names = {"server": {"machine": server}, "load": {"load": load} if load else {"machine": server}}
    groups = {group: {"hosts": hosts} for group, hosts in names.items()}
    path.write_text(json.dumps({"all": {"children": groups}}))
    return path


def wait_until_measuring(load: Host, process: subprocess.Popen[str]) -> None:
    """Wait for the window of a run."""

    def measuring() -> bool:
        lines = [json.loads(line) for line in load.run(LOOK).splitlines()]
        return any((line["phase"], line["event"]) == ("measure", "begin") for line in lines)

    wait_while_running("the window of a run", measuring, process)


def wait_while_running(what: str, condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """Poll until the condition is true; the campaign must not end before."""
    wait_for(what, lambda: process.poll() is not None or condition(), 4 * PATIENCE_S)
    assert process.poll() is None, f"{what}: the campaign ended before"
