"""The warm-up's promise against the server's own counters."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from loadprint.judging.warm import (
    broken_promise,
    checkpoint_cycles,
    cold,
    reached,
    redo_capacities_written,
    remedy,
)
from loadprint.reading.run_documents import PromisedWarmth
from reads import measured
from recordings import Host, change_json, make_run, of_mysql, write_phases

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


def run_with(path: Path, server: Mapping[str, object], host: Host | None = None) -> Path:
    """A run whose server reported this."""
    return change_json(make_run(path, host) / "load/server.json", **server)


# MySQL 5.7 to 8.0.29
BEFORE_8_0_30 = {
    "variables": {"innodb_log_file_size": "400", "innodb_log_files_in_group": "2"},
    "status_warmup": {"Innodb_os_log_written": "5000"},
    "status_begin": {"Innodb_os_log_written": "5200"},
}


@pytest.mark.parametrize("server", [MYSQL, MARIADB, BEFORE_8_0_30])
def test_redo_is_counted_in_capacities(tmp_path: Path, server: Mapping[str, object]) -> None:
    run = measured(run_with(tmp_path / "run", server))
    assert redo_capacities_written(run) == pytest.approx(0.25)
    assert broken_promise([run], 0.25) == ""
    assert "0.25" in broken_promise([run], 0.3)


def test_blocks_that_are_written_again_are_no_redo(tmp_path: Path) -> None:
    """Before MySQL 8.0.30 the probe's LSN counts: Innodb_os_log_written is 2 to 2.7 times as much there."""
    probe = of_mysql({"innodb_status.log_sequence_number": lambda tick: 7000 + 100 * tick})
    status = {
        "status_warmup": {"Innodb_os_log_written": "0"},
        "status_begin": {"Innodb_os_log_written": "2700"},
    }
    path = run_with(tmp_path / "run", BEFORE_8_0_30 | status, Host(more=probe))
    write_phases(path, ("warmup", 0, 10), ("measure", 10, 20))  # ten intervals of redo
    (path / "manifest.json").unlink()
    assert redo_capacities_written(measured(path)) == pytest.approx(1000 / 800)


@pytest.mark.parametrize(
    ("promised", "begin", "output"),
    [
        # 0.25 of the capacity in 10 s, the rest at the same rate
        (0.5, 0, "lengthen warmup to 20 s"),
        (0.27, 0, "lengthen warmup to 11 s"),
        (0.5, None, "lengthen warmup"),  # its start is not known
    ],
)
def test_the_warm_up_to_choose_follows_from_the_redo_written(
    tmp_path: Path, promised: float, begin: int | None, output: str
) -> None:
    path = run_with(tmp_path / "run", MYSQL)
    write_phases(path, *([] if begin is None else [("warmup", begin, 10.0)]), ("measure", 10, 20))
    (path / "manifest.json").unlink()
    assert remedy([measured(path)], PromisedWarmth(redo_capacities_written=promised)) == output


def test_what_was_reached_reads_well(tmp_path: Path) -> None:
    run = measured(run_with(tmp_path / "run", MYSQL))
    assert reached([run, run]) == "wrote 0.25 / 0.25 × the redo capacity, buffer pool 75 % in use"


def test_a_server_that_does_not_tell_breaks_no_promise(tmp_path: Path) -> None:
    run = measured(run_with(tmp_path / "run", {}))
    assert redo_capacities_written(run) is None
    assert reached([run]) == ""
    assert broken_promise([run], 0.3) == ""


WRITES, GROWING = Host(result={"writes": 1000}), Host(workload="arm_insert")
ENOUGH = {**MYSQL, "status_warmup": {"Innodb_redo_log_current_lsn": "3000"}}
END = {"Innodb_buffer_pool_pages_free": "12", "Innodb_buffer_pool_pages_total": "120"}


@pytest.mark.parametrize(
    ("server", "host", "promise", "said"),
    [
        # outside of a campaign the full rule holds for what writes
        (MYSQL, WRITES, {}, "0.25 redo capacities and had 0 checkpoint cycles"),
        (MYSQL, None, {}, ""),
        (ENOUGH, WRITES, {}, ""),
        # a campaign promises less and is held to it
        (MYSQL, WRITES, {"promise": "scaled down", "redo_capacities_written": 0.2}, ""),
        (MYSQL, WRITES, {"redo_capacities_written": 0.3}, "promises 0.3"),
        (MYSQL, WRITES, {"promise": "", "free_buffer_pages": 0.1}, "25 % of the buffer pool was free"),
        # a pool that is filled within the window is not warm
        (MYSQL | {"status_end": END}, None, {"promise": "none"}, "filled 15 % of its buffer pool"),
        (MYSQL | {"status_end": END}, GROWING, {"promise": "none"}, ""),
    ],
)
def test_what_was_promised_and_is_not_so_is_cold(
    tmp_path: Path, server: dict[str, Any], host: Host | None, promise: dict[str, Any], said: str
) -> None:
    promised = PromisedWarmth.model_validate(promise)
    found = cold("a", [measured(run_with(tmp_path / "run", server, host))], promised)
    assert said in found if said else found == ""


@pytest.mark.parametrize(("early", "output"), [(50, True), (11, False)])
def test_misses_must_be_level_over_the_window(tmp_path: Path, early: int, output: bool) -> None:
    """A thousand requests a second; of these 10 miss from the window's middle on, `early` before it."""
    misses = np.cumsum([early] * 10 + [10] * 20).tolist()
    requests = {"Innodb_buffer_pool_read_requests": 1000, "Innodb_buffer_pool_reads": misses.__getitem__}
    probe = of_mysql(requests)
    runs = [measured(run_with(tmp_path / "run", {}, Host(more=probe)))]
    said = cold("a", runs, PromisedWarmth.model_validate({"promise": "none"}))
    assert ("missed 5.0 % of its page requests" in said) == output


def test_checkpoint_cycles_are_counted_by_their_falls() -> None:
    saw = np.concatenate([np.linspace(10, 90, 20), np.linspace(10, 80, 20), np.linspace(5, 95, 20), [10.0]])
    noise = np.random.default_rng(1).normal(0, 3, len(saw))
    assert checkpoint_cycles(saw + noise, 100) == 3
    assert checkpoint_cycles(np.full(50, 40.0) + noise[:50], 1000) == 0
