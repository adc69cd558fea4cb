"""Planned experiments: all that `ab run` reads of an experiment is in them, and no package is needed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from loadprint.commands.ab import ab_plan_text, planned
from loadprint.commands.ab.experiment import load
from loadprint.commands.ab.guards import Guarding
from loadprint.commands.ab.schedule import deadline, plan
from loadprint.errors import InputError

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "docs" / "examples").glob("ab-*.yml"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_a_planned_experiment_is_the_experiment(path: Path, tmp_path: Path) -> None:
    experiment = load(path)
    file = tmp_path / "planned.json"
    file.write_text(ab_plan_text.as_json(experiment, plan(experiment)), encoding="utf-8")
    again, slots = planned.load(file)
    assert slots == plan(experiment)
    assert again.model_dump(mode="json") == experiment.model_dump(mode="json")
    assert again.keeper_commands == experiment.keeper_commands
    assert again.keeper_name("apply") == experiment.keeper_name("apply")
    assert deadline(again, slots) == deadline(experiment, plan(experiment))
    assert Guarding(again.guards).checks() == Guarding(experiment.guards).checks()
    assert again.server.defaults_file == experiment.server.defaults_file
    for part in ("treatment", "schedule", "server", "gates", "recorder"):
        assert set(vars(getattr(again, part))) == set(type(getattr(experiment, part)).model_fields)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"plan": {"slots": [{}]}}', "name: x"])
def test_another_file_is_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "planned.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="not a planned experiment"):
        planned.load(file)


def test_it_runs_without_packages(tmp_path: Path) -> None:
    """Up to the refusal of the recorder, after everything is imported that a run imports."""
    experiment = load(EXAMPLES[0])
    file = tmp_path / "planned.json"
    file.write_text(ab_plan_text.as_json(experiment, plan(experiment)), encoding="utf-8")
    verbs = [
        ["run", "--planned", str(file), f"--out={tmp_path}/run", f"--collector={tmp_path}/absent"],
        ["revert", str(tmp_path / "run")],
    ]
    for words, reason in zip(verbs, ("no such program", "no commands to revert with"), strict=True):
        done = subprocess.run(
            [sys.executable, "-S", "-m", "loadprint", "ab", *words],  # -S: without site-packages
            env=os.environ | {"PYTHONPATH": str(ROOT / "analysis")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 2, done.stderr
        assert reason in done.stderr
        assert "Traceback" not in done.stderr
