"""The last play of ansible/characterize.yml, the role `campaign`, on the kept execution of real tools."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
from plays import played, task
from programs import ROOT

pytestmark = pytest.mark.slow
KEPT = ROOT / "tests" / "recordings" / "v1" / "external"


@pytest.fixture
def execution(tmp_path: Path) -> Path:
    made = tmp_path / "execution"
    shutil.copytree(KEPT, made)
    return made


def reported(execution: Path, status: int = 0, **settings: str) -> str:
    """Run the play as it follows the last run of a campaign."""
    plan = json.loads((execution / "execution.json").read_text(encoding="utf-8"))
    plan["campaign"] |= settings
    wrapper = execution.parent / "loadprint"
    wrapper.write_text(f'#!/bin/sh\nexec {sys.executable} -m loadprint "$@"\n', encoding="utf-8")
    wrapper.chmod(0o755)
    return played(
        execution.parent,
        task("Report", import_role={"name": "campaign", "tasks_from": "report.yml"}),
        inventory=str(ROOT / "ansible" / "inventory" / "local.yml"),
        loadprint_program=str(wrapper),
        campaign_plan={"directory": str(execution), **{k: plan[k] for k in ("campaign", "sides")}},
        target_local=True,
        target_execution_dir=str(execution),
        statuses=(status,),
    )


def the_line(output: str, said: str) -> str:
    """The only line of an output that says something."""
    lines = [line for line in output.splitlines() if said in line]
    assert len(lines) == 1, output
    return lines[0]


def test_table_and_page_end_a_campaign(execution: Path) -> None:
    assert "TPROC-C" in reported(execution)
    assert (execution / "report.html").is_file()


def test_the_table_is_printed_without_the_page(execution: Path) -> None:
    (execution / "report.html").mkdir()
    output = reported(execution, 2)
    assert "TPROC-C" in output
    line = the_line(output, "loadprint report failed: ")
    assert "report.html" in line


def test_the_page_is_written_without_a_table(execution: Path) -> None:
    output = reported(execution, 2, mode="equal-load")  # whose pivot tables need a matrix
    line = the_line(output, "loadprint sweep failed: ")
    assert "matrix" in line
    assert "TPROC-C" in output  # of compare
    assert (execution / "report.html").is_file()


def test_a_side_without_a_complete_run_is_one_reason(execution: Path) -> None:
    (execution / "b1-oltp-r1" / "run.json").write_text("{", encoding="utf-8")
    output = reported(execution, 2)
    line = the_line(output, "runs are not complete")
    assert "1 of 2 runs are not complete (b1-oltp-r1); the same command runs them again" in line
    assert "failed: " not in line
    assert "Traceback" not in output
