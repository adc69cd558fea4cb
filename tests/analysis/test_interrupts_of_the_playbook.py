"""Ctrl-C ends a playbook also when it arrives while Ansible starts a process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
# The interrupt arrives in a function that Python calls after a fork, whose exceptions it ignores.
PROGRAM = """
import os, signal, sys

forks = []

def interrupt():
    forks.append(1)
    if len(forks) == 2:
        os.kill(os.getpid(), signal.SIGINT)

os.register_at_fork(after_in_parent=interrupt)
from ansible.cli.playbook import main
main()
"""
PLAY = """
- hosts: localhost
  connection: local
  gather_facts: false
  strategy: loadprint
  tasks:
    - ansible.builtin.command: "true"
    - ansible.builtin.command: sleep 1
    - ansible.builtin.command: "touch {done}"
"""


def test_an_interrupt_at_a_fork_is_not_lost(tmp_path: Path) -> None:
    play, done = tmp_path / "play.yml", tmp_path / "done"
    play.write_text(PLAY.format(done=done))
    words = [sys.executable, "-c", PROGRAM, "-i", "localhost,", str(play)]
    config = {
        "ANSIBLE_CONFIG": str(ROOT / "ansible/ansible.cfg"),
        "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
    }
    ended = subprocess.run(words, env=os.environ | config, capture_output=True, text=True, check=False)
    assert "Exception ignored" in ended.stderr
    assert ended.returncode == 99, ended.stderr
    assert not done.exists()
