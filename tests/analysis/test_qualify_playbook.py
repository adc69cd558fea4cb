"""The first and the last play of ansible/qualify.yml, the role `qualify`, on synthetic executions.

tests/e2e runs characterize.yml, the play between them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from plays import played, task
from qualifying import at, execution

pytestmark = pytest.mark.slow
SPEC = {"rows": {"operations": "3 %"}, "concurrencies": 1, "sustained": {"at_least": "30s", "burst": "10s"}}


def judged(directory: Path, candidate: Path, status: int = 0, **settings: Any) -> str:
    """Run the role's two parts from `directory`, with `candidate` as what the campaign made."""
    return played(
        directory,
        task("Check", import_role={"name": "qualify"}),
        task("Run", set_fact={"campaign_plan": {"directory": str(candidate)}}),
        task("Judge", import_role={"name": "qualify", "tasks_from": "judge.yml"}),
        statuses=(status,),
        **settings,
    )


@pytest.fixture(scope="module")
def baseline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("judged")
    (directory / "spec.yml").write_text(yaml.safe_dump(SPEC), encoding="utf-8")
    execution(directory / "old", {"oltp": at(1000, "db1")})
    (directory / "latest").symlink_to("old")
    return directory


@pytest.mark.parametrize(("events", "status", "says"), [(1000, 0, "pass"), (900, 1, "fail")])
def test_the_verdict_is_the_playbooks_end(baseline: Path, events: int, status: int, says: str) -> None:
    candidate = execution(baseline / f"new{events}", {"oltp": at(events, "db2")})
    # ansible-playbook has one number for a task that failed
    given = {"qualify_baseline": "latest", "qualify_spec": "spec.yml"}
    assert f"\n{says}: " in judged(baseline, candidate, 2 if status else 0, **given)
    assert json.loads((candidate / "qualify.json").read_text(encoding="utf-8"))["status"] == status
    suites = ElementTree.parse(candidate / "qualify.xml").getroot()
    assert (suites.find(".//failure") is not None) == (status == 1)


def test_without_a_baseline_it_is_one(baseline: Path) -> None:
    assert f"qualify_baseline={baseline / 'old'}" in judged(baseline, baseline / "old")
    assert not (baseline / "old" / "qualify.json").exists()


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"qualify_baseline": "nowhere"}, "nowhere has no execution.json"),
        ({"qualify_baseline": "old", "qualify_spec": "wrong.yml"}, "wrong.yml:1: unknown key"),
    ],
)
def test_what_cannot_be_used_is_said_before_anything_runs(
    baseline: Path, settings: dict[str, str], says: str
) -> None:
    (baseline / "wrong.yml").write_text("tolerances: {}\n", encoding="utf-8")
    assert says in judged(baseline, baseline / "nothing", 2, **settings).strip().splitlines()[-1]
