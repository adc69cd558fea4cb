"""What the playbooks print: the cause of a failure, of the item that failed, and progress; Ctrl-C; roles."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from plays import played, plugin, task
from programs import ROOT

messages, progress = plugin("filter_plugins/messages.py"), plugin("callback_plugins/loadprint.py")
ROLES = sorted(path.parents[1] for path in ROOT.glob("ansible/roles/*/*/argument_specs.yml"))

# MySQL 5.7.22 with an option that it does not know, and MySQL 5.7.22 on data of 8.0.12, abridged.
UNKNOWN = """\
2026-11-22T03:13:10.911378Z 0 [Warning] Failed to set up SSL because of the following SSL library error: none
2026-11-22T03:13:11.101923Z 0 [Warning] TIMESTAMP with implicit DEFAULT value is deprecated.
2026-11-22T03:13:11.220145Z 0 [ERROR] unknown variable 'mysqlx=OFF'
2026-11-22T03:13:11.220215Z 0 [ERROR] Aborting
"""
CRASH = """\
2026-11-22T03:13:11.101923Z 0 [Note] InnoDB: Using Linux native AIO
2026-11-22T03:13:11.220145Z 0 [ERROR] InnoDB: Unsupported redo log format.
2026-11-22 03:13:11 0x7f2a  InnoDB: Assertion failure in thread 139 in file ut0ut.cc line 918
03:13:11 UTC - mysqld got signal 6 ;
Attempting backtrace. You can use the following information to find out
/lib/x86_64-linux-gnu/libc.so.6(gsignal+0x12)[0x7f2a]
"""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (UNKNOWN, "[ERROR] unknown variable 'mysqlx=OFF'"),
        (CRASH, "InnoDB: Unsupported redo log format."),
        (
            "tar: Unexpected EOF in archive\ntar: Error is not recoverable: exiting now\n",
            "Unexpected EOF in archive",
        ),
        ("2026 0 [ERROR] Aborting\n", "Aborting"),
        ("nothing that is known\nthe last line\n", "the last line"),
        ("", ""),
    ],
)
def test_the_first_error_is_named_and_not_what_follows_it(text: str, line: str) -> None:
    assert messages.first_error(text).endswith(line)


def test_missing_libraries_are_named_with_their_packages() -> None:
    ldd = "/x/mysqld\n\tlibaio.so.1 => not found\n\tlibc.so.6 => /lib/libc.so.6 (0x1)\n"
    ldd += "\tlibodd.so.3 => not found\n"
    said = messages.missing_libraries(ldd)
    assert "libaio.so.1 of package libaio1" in said
    assert said.endswith(", libodd.so.3")
    assert messages.missing_libraries("\tlibc.so.6 => /lib/libc.so.6 (0x1)\n") == ""


def looped(directory: Path, *items: str, **keywords: Any) -> str:
    """The output of a task that prints each item, and fails for all but `good`."""
    each = {"argv": ["sh", "-c", "echo {{ item }} >&2; [ {{ item }} = good ]"]}
    looping = {**task("Try each", command=each), "loop": list(items), **keywords}
    return played(directory, looping, statuses=(2,))


def test_the_item_of_a_loop_that_failed_has_its_own_message(tmp_path: Path) -> None:
    said = looped(tmp_path, "good", "the-cause")
    assert "Try each: the-cause" in said
    assert "One or more items failed" not in said


def test_the_item_of_a_loop_with_a_secret_stays_hidden(tmp_path: Path) -> None:
    said = looped(tmp_path, "a-secret", no_log=True)
    assert "a-secret" not in said
    assert "its output is hidden" in said


def test_the_reason_of_a_failure_is_its_error_output_or_that_of_the_item_of_a_loop() -> None:
    single = {"msg": "non-zero return code", "stderr": "no space"}
    assert messages.failure_text(single) == "no space"
    loop = {
        "msg": "One or more items failed",
        "results": [{"failed": False, "msg": "ok"}, single | {"failed": True}],
    }
    assert messages.failure_text(loop) == "no space"
    ended = "no supervisor at /run/loadprint/one (its lease expired)"
    lost = {"stderr": f"{ended}; start one with `loadprint-supervise start …`", "failed_on": "load1"}
    assert messages.failure_text(lost) == f"load1 has {ended}"
    assert messages.failure_text({"msg": "Task failed: Action failed: load1 is unreachable: timed out"}) == (
        "load1 is unreachable: timed out"
    )


def line(status: Path) -> str | None:
    """The progress line of a phase with this status file."""
    shown = progress.Progress()
    shown.status = status
    shown.begin({"phase": "preparing"})
    text: str | None = shown.line()
    return text


def test_it_shows_the_last_line_of_a_process_without_escapes(tmp_path: Path) -> None:
    status = tmp_path / "status.json"
    process = {"name": "prepare", "state": "running", "last_line": "table 1\x1b]0;title\x07"}
    status.write_text(json.dumps({"processes": [process]}), encoding="utf-8")
    assert line(status) == "preparing  table 1\N{REPLACEMENT CHARACTER}]0;title\N{REPLACEMENT CHARACTER}"
    assert line(tmp_path / "absent") == "preparing"


def test_it_shows_how_narrow_the_answer_is() -> None:
    shown = progress.Progress()
    shown.begin(
        {"run": 4, "of": 5, "id": "all sides", "phase": "load", "answer": "client statements 1.56 ±8 %"}
    )
    assert shown.line() == "[4/5] all sides  load  client statements 1.56 ±8 %"


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


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_defaults_and_argument_specs_name_the_same_variables(role: Path) -> None:
    defaults = yaml.safe_load((role / "defaults" / "main.yml").read_text(encoding="utf-8"))
    specs = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text(encoding="utf-8"))
    options = specs["argument_specs"]["main"]["options"]
    assert list(options) == list(defaults)
    assert all(name.startswith(f"{role.name}_") for name in options)
    assert all(option["description"].strip() and option["type"] for option in options.values())
