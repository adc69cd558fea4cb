"""Plays on this machine: tasks, such as a part of one of the project's roles, and plugins."""

from __future__ import annotations

import json
import runpy
import sys
from collections.abc import Container
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import yaml
from programs import ROOT, SUCCEEDED, ended, environment


def played(
    directory: Path,
    *tasks: dict[str, Any],
    inventory: str = "localhost,",
    statuses: Container[int] = SUCCEEDED,
    **variables: Any,
) -> str:
    """Run tasks from a directory with this checkout's package; gives what the project prints of them."""
    play = {"name": "Play", "hosts": "localhost", "gather_facts": False, "tasks": list(tasks)}
    (directory / "play.yml").write_text(yaml.safe_dump([play]), encoding="utf-8")
    ansible = Path(sys.executable).with_name("ansible-playbook")
    here = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable, **variables}
    ours = {"PYTHONPATH": str(ROOT / "analysis"), "PWD": str(directory)}
    words: list[str | Path] = [ansible, "-i", inventory, "play.yml", "-e", json.dumps(here)]
    return ended(words, statuses, cwd=directory, env=environment() | ours)


def plugin(name: str) -> SimpleNamespace:
    """The names of a plugin of the playbooks, by its path below ansible/."""
    return SimpleNamespace(**runpy.run_path(str(ROOT / "ansible" / name)))


def task(name: str, **module: Any) -> dict[str, Any]:
    """A task with one of Ansible's own modules."""
    return {"name": name, **{f"ansible.builtin.{key}": value for key, value in module.items()}}
