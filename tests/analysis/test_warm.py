"""The warm-up's promise against the server's own counters."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from loadprint.recording import Run, open_run
from loadprint.warm import broken_promise, reached, redo_capacities_written
from recordings import make_run, write_json, write_manifest

MYSQL = {
    "variables": {"innodb_redo_log_capacity": "1000"},
    "status_warmup": {"Innodb_redo_log_current_lsn": "5000"},
    "status_begin": {
        "Innodb_redo_log_current_lsn": "5250",
        "Innodb_buffer_pool_pages_free": "30",
        "Innodb_buffer_pool_pages_total": "120",
    },
}
MARIADB = {
    "variables": {"innodb_log_file_size": "1000"},
    "status_warmup": {"Innodb_lsn_current": "5000"},
    "status_begin": {"Innodb_lsn_current": "5250"},
}


def run_with(path: Path, server: Mapping[str, object]) -> Run:
    make_run(path)
    file = path / "load" / "server.json"
    write_json(file, json.loads(file.read_text()) | server)
    write_manifest(path)
    return open_run(path)


@pytest.mark.parametrize("server", [MYSQL, MARIADB])
def test_redo_is_counted_in_capacities(tmp_path: Path, server: Mapping[str, object]) -> None:
    run = run_with(tmp_path / "run", server)
    assert redo_capacities_written(run) == pytest.approx(0.25)
    assert broken_promise([run], 0.25) == ""
    assert "0.25" in broken_promise([run], 0.3)


def test_what_was_reached_reads_well(tmp_path: Path) -> None:
    run = run_with(tmp_path / "run", MYSQL)
    assert reached([run, run]) == "redo 0.25 / 0.25 of its capacity, buffer pool 75 % in use"


def test_a_server_that_does_not_tell_breaks_no_promise(tmp_path: Path) -> None:
    run = run_with(tmp_path / "run", {})
    assert redo_capacities_written(run) is None
    assert reached([run]) == ""
    assert broken_promise([run], 0.3) == ""
