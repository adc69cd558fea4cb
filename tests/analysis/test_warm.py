"""The warm-up's promise against the server's own counters."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

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
from recordings import Host, Rows, Tables, change_json, make_run, write_phases

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

    def probe(ticks: range) -> Tables:
        lsn = "innodb_status.log_sequence_number"
        rows: Rows = [{"metric": lsn, "tick": tick, "value": 7000 + 100 * tick} for tick in ticks]
        return {"mysql": (rows, {"shape": "metrics"})}

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


NO_FIGURE = PromisedWarmth.model_validate({"promise": "none"})
WRITES = Host(result={"writes": 1000})


def test_outside_of_a_campaign_the_full_rule_holds_for_what_writes(tmp_path: Path) -> None:
    assert "0.25 redo capacities and had 0 checkpoint cycles" in cold(
        "a", [measured(run_with(tmp_path / "w", MYSQL, WRITES))], PromisedWarmth()
    )
    assert cold("a", [measured(run_with(tmp_path / "r", MYSQL))], PromisedWarmth()) == ""
    enough = {**MYSQL, "status_warmup": {"Innodb_redo_log_current_lsn": "3000"}}
    assert cold("a", [measured(run_with(tmp_path / "e", enough, WRITES))], PromisedWarmth()) == ""


def test_a_campaign_promises_less_and_is_held_to_it(tmp_path: Path) -> None:
    runs = [measured(run_with(tmp_path / "run", MYSQL, WRITES))]
    assert cold("a", runs, PromisedWarmth(redo_capacities_written=0.2)) == ""
    assert "promises 0.3" in cold("a", runs, PromisedWarmth(redo_capacities_written=0.3))
    assert "25 % of the buffer pool was free" in cold("a", runs, PromisedWarmth(free_buffer_pages=0.1))


def test_a_pool_that_is_filled_within_the_window_is_not_warm(tmp_path: Path) -> None:
    end = {"Innodb_buffer_pool_pages_free": "12", "Innodb_buffer_pool_pages_total": "120"}
    filled = {**MYSQL, "status_end": end}
    runs = [measured(run_with(tmp_path / "run", filled))]
    assert "filled 15 % of its buffer pool" in cold("a", runs, NO_FIGURE)
    growing = [measured(run_with(tmp_path / "grow", filled, Host(workload="arm_insert")))]
    assert cold("a", growing, NO_FIGURE) == ""


@pytest.mark.parametrize(("early", "output"), [(50, True), (11, False)])
def test_misses_must_be_level_over_the_window(tmp_path: Path, early: int, output: bool) -> None:
    """A thousand requests a second; of these 10 miss from the window's middle on, `early` before it."""

    def probe(ticks: range) -> Tables:
        misses = np.cumsum([early if tick < 10 else 10 for tick in ticks]).tolist()
        rows: Rows = [
            {"metric": metric, "tick": tick, "value": value}
            for metric, values in (
                ("Innodb_buffer_pool_read_requests", [1000 * tick for tick in ticks]),
                ("Innodb_buffer_pool_reads", misses),
            )
            for tick, value in zip(ticks, values, strict=True)
        ]
        return {"mysql": (rows, {"shape": "metrics"})}

    runs = [measured(run_with(tmp_path / "run", {}, Host(more=probe)))]
    said = cold("a", runs, NO_FIGURE)
    assert ("missed 5.0 % of its page requests" in said) == output


def test_checkpoint_cycles_are_counted_by_their_falls() -> None:
    saw = np.concatenate([np.linspace(10, 90, 20), np.linspace(10, 80, 20), np.linspace(5, 95, 20), [10.0]])
    noise = np.random.default_rng(1).normal(0, 3, len(saw))
    assert checkpoint_cycles(saw + noise, 100) == 3
    assert checkpoint_cycles(np.full(50, 40.0) + noise[:50], 1000) == 0
