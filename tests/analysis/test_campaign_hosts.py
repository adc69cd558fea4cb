"""Two playbooks for one execution."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from loadprint.commands.campaign.campaign_file import load
from loadprint.commands.campaign.campaign_model import Campaign
from loadprint.commands.campaign.control_node import identity_of, is_alive
from loadprint.commands.campaign.execution import open_execution
from loadprint.configuration.document import DocumentError

QUICK = Path(__file__).parents[2] / "ansible" / "campaigns" / "quick.yml"


@pytest.fixture
def campaign() -> Campaign:
    return load(QUICK)


def test_an_execution_of_a_running_playbook_is_refused(campaign: Campaign, tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as playbook:
        open_execution(campaign, "c" * 64, tmp_path, controller=playbook.pid)
        with pytest.raises(DocumentError, match=f"process {playbook.pid} runs this execution"):
            open_execution(campaign, "c" * 64, tmp_path, controller=os.getpid())
        playbook.kill()
    resumed = open_execution(campaign, "c" * 64, tmp_path, controller=os.getpid())
    assert any("resumes" in line for line in resumed.messages)


def test_another_process_with_the_same_pid_is_not_the_playbook() -> None:
    identity = identity_of(os.getpid())
    assert identity is not None
    assert is_alive(identity)
    assert not is_alive(identity | {"start": identity["start"] - 1})
    assert not is_alive(identity | {"boot_id": "before the reboot"})
    assert not is_alive(None)
