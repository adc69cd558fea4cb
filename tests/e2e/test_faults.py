"""Breaks a campaign as it breaks in practice: nothing may be left, nothing lost, and it must go on."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from programs import wait_for

from . import campaigns
from .machine import look, settled


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Path]:
    before = look()
    yield tmp_path
    assert settled(before) == []


@pytest.mark.parametrize(
    ("process", "why"),
    [
        ("server", "the server died (signal KILL)"),
        ("recorder", "the recorder of localhost ended before it was stopped (signal KILL)"),
    ],
)
def test_a_process_that_dies_fails_its_run_only(runs: Path, process: str, why: str) -> None:
    # a second repeat, because a table needs both sides
    campaign = campaigns.start("faults", runs, json.dumps({"campaign_set": ["repeats=2"]}))
    broken = wait_for("the first measure phase", lambda: campaigns.measuring(runs))
    pid = campaigns.running(runs, process)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    campaign.wait()
    output = (runs / "output").read_text()
    statuses = campaigns.statuses(runs)
    assert statuses.pop(broken) == "failed", output
    assert set(statuses.values()) == {"complete"}, output
    reason = campaigns.document(runs, broken)["reason"]
    assert why in reason
    table = campaigns.reasons(runs)
    assert broken in table, table


def test_an_interrupted_campaign_leaves_nothing_and_resumes_with_its_complete_runs(runs: Path) -> None:
    before = look()
    for number, complete in ((signal.SIGINT, 0), (signal.SIGTERM, 0), (signal.SIGKILL, 1)):
        campaign = campaigns.start("faults", runs)
        wait_for("a complete run", partial(has_complete, runs, complete))
        interrupted = wait_for("a measure phase", lambda: campaigns.measuring(runs))
        # A terminal sends Ctrl-C to the whole group; the others hit ansible-playbook alone.
        (os.killpg if number == signal.SIGINT else os.kill)(campaign.pid, number)
        campaign.wait()
        assert settled(before) == [], f"after {number.name}"
        assert campaigns.statuses(runs)[interrupted] != "complete"
        phases = next(runs.glob(f"*/2*/{interrupted}/load/phases.jsonl"))
        phases.rename(phases.with_name("phases-of-the-interrupted"))
    kept = manifest(runs, "b1-few-r1").stat().st_mtime_ns
    campaigns.run("faults", runs)
    assert campaigns.statuses(runs) == {"b1-few-r1": "complete", "b1-more-r1": "complete"}
    assert len(list(runs.glob("*/2*"))) == 1, "it began a new execution"
    assert manifest(runs, "b1-few-r1").stat().st_mtime_ns == kept


def has_complete(runs: Path, count: int) -> bool:
    return len(campaigns.complete(runs)) >= count


def manifest(runs: Path, run: str) -> Path:
    return next(runs.glob(f"*/2*/{run}/manifest.json"))
