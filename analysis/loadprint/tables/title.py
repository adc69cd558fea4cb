"""Writes the head of a table: what was compared, when, on which server and machine; a line for each side."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from loadprint.judging.effective import Server
from loadprint.metrics.gather import Measured
from loadprint.reading.run_documents import Fingerprint
from loadprint.reading.sides import Side

NOISE = re.compile(r"\((R|TM)\)|\bProcessor\b|@.*")  # in a processor's name
SEPARATOR = " · "
PAGE = "report.html"  # of an execution


def title(measured: Sequence[Sequence[Measured]]) -> str:
    """The campaign, the start of the first run, the server, and the server's host."""
    runs = [run for of_side in measured for run in of_side]
    campaigns = _joined(run.run.meta.campaign for run in runs)
    profiles = _joined(run.run.meta.profile for run in runs)
    servers = _joined(Server.of(run.run.server).release() for run in runs if run.run.server)
    parts = (
        campaigns,
        _start(runs),
        f"{servers}, {profiles}" if servers and profiles else servers,
        _joined(_host(run.run.fingerprint("server")) for run in runs if run.run.roles),
    )
    return SEPARATOR.join(part for part in parts if part)


def description(side: Side, runs: Sequence[Measured], *, is_reference: bool, is_apart: bool) -> str:
    """What a side ran, with how many threads, and how often; `is_apart`: also when."""
    result = runs[0].run.result
    scenario = result.options.get("scenario")
    workload = runs[0].run.workload
    what = " ".join(str(word) for word in (workload, scenario) if word)
    parts = [what] if what.startswith(side.label) else [side.label, *([what] if what else [])]
    if threads := result.threads:
        parts.append(f"{threads} thread{'s' if threads != 1 else ''}")
    planned = f" of {len(runs) + len(side.missing)}" if side.missing else ""
    replicated = "start" if replicate(side) == "start" else "run"
    parts.append(f"{len(runs)}{planned} {replicated}{'s' if len(runs) > 1 or planned else ''}")
    if is_apart and (start := _start(runs)):
        parts.append(start)
    return ", ".join(parts) + ("; the reference" if is_reference else "")


def replicate(side: Side) -> str:
    """What is repeated: the start of servers that take turns, else the run."""
    return "start" if side.execution.campaign.design == "alternate" else "repeat"


def _start(runs: Sequence[Measured]) -> str:
    """The start of the first run."""
    starts = [start for run in runs if (start := run.run.meta.started_realtime_ns) is not None]
    return f"{datetime.fromtimestamp(min(starts) / 1e9, UTC):%Y-%m-%d %H:%M} UTC" if starts else ""


def page(sides: Sequence[Side], measured: Sequence[Sequence[Measured]]) -> str:
    """Path of the report of the execution that all runs are of; empty without one."""
    parents = {run.run.path.parent for runs in measured for run in runs}
    if len(parents) != 1 or not all(side.execution for side in sides):
        return ""
    path = parents.pop() / PAGE
    return str(path) if path.is_file() else ""


def _host(fingerprint: Fingerprint) -> str:
    count, release = len(fingerprint.cpus.list), fingerprint.kernel.release
    parts = (
        " ".join(NOISE.sub("", fingerprint.cpus.model).split()),
        f"{count} CPU{'s' if count > 1 else ''}" if count else "",
        "virtual" if fingerprint.virtualisation.guest else "",
        f"Linux {'.'.join(release.split('.')[:2])}" if release else "",
    )
    return ", ".join(part for part in parts if part)


def _joined(texts: Iterable[Any]) -> str:
    return " | ".join(dict.fromkeys(str(text) for text in texts if text))
