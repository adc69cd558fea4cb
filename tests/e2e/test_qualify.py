"""ansible/qualify.yml on a real server: an execution is the baseline that the next one is judged by."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from xml.etree import ElementTree

from . import ROOT

CAMPAIGN = Path(__file__).with_name("qualify.yml")


def qualify(runs: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run the playbook to its end, with its executions below `runs`."""
    given = {"campaign_file": str(CAMPAIGN), "campaign_runs_dir": str(runs), **settings}
    return subprocess.run(
        [ROOT / ".venv/bin/ansible-playbook", ROOT / "ansible/qualify.yml", "-e", json.dumps(given)],
        env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible/ansible.cfg"), "COLUMNS": "100"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        check=False,
    )


def test_a_candidate_is_judged_against_the_execution_before(tmp_path: Path) -> None:
    recorded = qualify(tmp_path)
    assert recorded.returncode == 0, recorded.stdout
    (baseline,) = tmp_path.glob("judged/2*")
    assert f"qualify_baseline={baseline}" in recorded.stdout

    # a link that the candidate takes over is seen through before
    judged = qualify(tmp_path, qualify_baseline=str(tmp_path / "judged" / "latest"))
    (candidate,) = set(tmp_path.glob("judged/2*")) - {baseline}
    # nobody can tell of one run, whatever it is like: the playbook fails, and says why
    assert judged.returncode == 2, judged.stdout
    assert "not qualified: cannot tell" in judged.stdout.strip().splitlines()[-1]
    told = json.loads((candidate / "qualify.json").read_text(encoding="utf-8"))
    assert told["status"] == 2
    places = {name: executions for name, executions, _ in told["parties"]}
    assert places == {"baseline": [str(baseline)], "candidate": [str(candidate)]}
    suites = ElementTree.parse(candidate / "qualify.xml").getroot()
    assert suites.find(".//error") is not None
    assert not (baseline / "qualify.json").exists()
