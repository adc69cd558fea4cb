"""Runs the tiny campaign of hosts.yml on the hosts of a bench, and reads what it left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from . import campaigns
from .hosts import Bench

CAMPAIGN = Path(__file__).with_name("hosts.yml")


def written(bench: Bench, *, sides: tuple[str, ...] = ("near",), repeats: int = 1, **side: Any) -> Path:
    """Write the campaign with these equal sides; `side` overrides keys of all of them."""
    document = yaml.safe_load(CAMPAIGN.read_text())
    [original] = document["sides"].values()
    document |= {
        "sides": dict.fromkeys(sides, original | side),
        "reference": sides[0],
        "repeats": repeats,
    }
    path = bench.place / "campaign.yml"
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    return path


def complete(bench: Bench) -> set[str]:
    """Name the complete runs of the newest execution."""
    return {run for run, status in campaigns.statuses(bench.runs).items() if status == "complete"}


def document(bench: Bench, run: str) -> dict[str, Any]:
    """Read run.json of a run of the newest execution."""
    return dict(json.loads((newest(bench) / run / "run.json").read_text()))


def newest(bench: Bench) -> Path:
    """Give the directory of the newest execution."""
    return sorted(bench.runs.glob("*/2*"))[-1]


def measuring(bench: Bench, *, since_ns: int = 0) -> str | None:
    """Name the run whose load, started after a time, is in its measure phase now."""
    files = bench.loads[0].data.glob("executions/2*/*/load/phases.jsonl")
    return campaigns.in_measure_phase(files, since_ns)


def left_on(bench: Bench) -> dict[str, list[str]]:
    """List the processes and supervisors that are left on each host, without the SSH server."""
    result = {}
    for host in bench.hosts:
        found = [name_of(pid) for pid in host.processes()]
        result[host.name] = [name for name in found if name.startswith(("loadprint", "mysqld", "sadc"))]
    return result


def name_of(pid: int) -> str:
    """Name of a process; empty if it ended meanwhile."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""
