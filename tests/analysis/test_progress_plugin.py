"""The progress line of a playbook: it shows no file of another user, and no terminal sequence."""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path
from typing import Any

import pytest
from reads import known

PLUGIN = Path(__file__).parents[2] / "ansible" / "callback_plugins" / "loadprint.py"


@pytest.fixture(scope="module")
def plugin() -> Any:
    spec = known(importlib.util.spec_from_file_location("progress_plugin", PLUGIN))
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def line(plugin: Any, status: Path) -> str | None:
    """The progress line of a phase with this status file."""
    progress = plugin.Progress()
    progress.status = status
    progress.begin({"phase": "preparing"})
    text: str | None = progress.line()
    return text


def test_it_shows_only_files_of_root_and_the_caller(plugin: Any, tmp_path: Path) -> None:
    status = tmp_path / "status.json"
    process = {"name": "prepare", "state": "running", "last_line": "table 1\x1b]0;title\x07"}
    status.write_text(json.dumps({"processes": [process]}), encoding="utf-8")
    assert (
        line(plugin, status) == "preparing  table 1\N{REPLACEMENT CHARACTER}]0;title\N{REPLACEMENT CHARACTER}"
    )
    link, fifo = tmp_path / "link", tmp_path / "fifo"
    link.symlink_to(status)
    os.mkfifo(fifo)
    assert line(plugin, link) == line(plugin, fifo) == line(plugin, tmp_path / "absent") == "preparing"
    if os.geteuid() == 0:
        os.chown(status, 65534, 65534)
        assert line(plugin, status) == "preparing"
