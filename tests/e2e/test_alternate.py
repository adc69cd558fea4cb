"""Sides that alternate on this host: what is in their runs, and what is left when a part of it is killed."""

from __future__ import annotations

import os
import re
import signal
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from programs import FAILED, read, wait_for

from . import campaigns
from .campaigns import lines, rows, slices
from .machine import look, settled

SIDES = {"oltp", "insert"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign whose parts are killed, each while a side is frozen, and which then goes on to its end."""
    runs, before = tmp_path_factory.mktemp("runs"), look()
    campaign = campaigns.start("turns", runs, "starts=4")
    # an external generator, which has a file with the password
    kill("load", runs, 1, {"oltp"})
    frozen_in(runs, 2, SIDES)
    campaign.kill()
    campaign.wait()
    assert settled(before) == [], "after the end of the playbook"
    assert campaigns.complete(runs) == set()
    reason = campaigns.document(runs, "b1-oltp-r1")["reason"]
    assert re.fullmatch(r"the sides do not alternate: the load of side \w+ ended \(signal KILL\)", reason)
    for run in campaigns.statuses(runs):
        (campaigns.newest(runs) / run / "slices.jsonl").unlink()

    # It goes on with the first start; two more are left alone.
    campaign = campaigns.start("turns", runs, "starts=4")
    kill("alternate", runs, 1, SIDES)
    kill("server", runs, 2, SIDES)
    assert campaign.wait() in FAILED
    assert settled(before) == [], "after the end of the scheduler, of a server, and of the campaign"
    assert len(list(runs.glob("*/2*"))) == 1, "it began a new execution"
    for run, reason in (
        ("b1-oltp-r1", "the sides do not alternate: it ended with KILL"),
        ("b2-oltp-r2", "ended (signal KILL)"),
    ):
        assert campaigns.statuses(runs)[run] == "failed"
        assert reason in campaigns.document(runs, run)["reason"]
    return runs


def frozen_in(runs: Path, start: int, sides: set[str]) -> str:
    """Wait until one of these sides has just been frozen in a start, for the slice of the other one."""

    def first_of_a_round() -> str | None:
        for path in runs.glob(f"*/2*/b{start}-oltp-r{start}/slices.jsonl"):
            taken = lines(path)
            if taken and taken[-1]["position"] == 1 and taken[-1]["side"] in sides:
                return str(taken[-1]["side"])
        return None

    return str(wait_for("a slice", first_of_a_round))


def kill(process: str, runs: Path, start: int, sides: set[str]) -> None:
    """Kill a process of a start while one of these sides is frozen; server and load are its own."""
    side = frozen_in(runs, start, sides)
    order = [
        run["side"]
        for run in read(campaigns.newest(runs) / "execution.json")["runs"]
        if run["block"] == start
    ]
    slot = "" if process == "alternate" or order.index(side) == 0 else "-2"
    pid = campaigns.running(runs, process + slot)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)


def of_runs(runs: Path) -> list[Path]:
    found = sorted(campaigns.newest(runs) / run for run in campaigns.complete(runs))
    assert len(found) == 4
    return found


def test_each_side_has_each_position_as_often(runs: Path) -> None:
    for run in of_runs(runs):
        taken = slices(run)
        assert len(taken) == 2 * 6  # 3 s of slices of 0.6 s, and one more, because the rounds are even
        assert set(Counter((turn["side"], turn["position"]) for turn in taken).values()) == {3}
        for first, second in zip(taken[::2], taken[1::2], strict=True):
            assert {first["side"], second["side"]} == SIDES
            assert first["round"] == second["round"]
        assert all(before["frozen_ns"] <= after["begin_ns"] for before, after in pairwise(taken))


def test_no_operation_of_the_native_generator_spans_a_freeze(runs: Path) -> None:
    for run in of_runs(runs):
        side = campaigns.document(runs, run.name)["side"]
        own = [turn for turn in slices(run) if turn["side"] == side]
        # sysbench does not say what it has in flight
        assert {turn["in_event"] for turn in own} == {0 if side == "insert" else None}
        turns = lines(run / "load" / "turns.jsonl")
        at = {
            event: [turn["monotonic_ns"] for turn in turns if turn["event"] == event]
            for event in ("paused", "resumed")
        }
        for turn in own:
            assert any(turn["end_ns"] <= paused <= turn["frozen_ns"] for paused in at["paused"])
            assert any(turn["begin_ns"] <= resumed <= turn["measured_from_ns"] for resumed in at["resumed"])


def test_counters_are_read_at_the_edges_of_the_own_slices_only(runs: Path) -> None:
    for run in of_runs(runs):
        own = [turn for turn in slices(run) if turn["side"] == campaigns.document(runs, run.name)["side"]]
        table = f"'{run}/server/ticks.parquet'"
        sql = f"SELECT tick, start_ns, end_ns FROM {table} WHERE probe = 'cpu' ORDER BY tick"
        ticks = rows(sql)[1:-1]  # without the first and the last, when all sides run
        assert len(ticks) == 2 * len(own)
        for turn, (_, start, _), (_, _, end) in zip(own, ticks[::2], ticks[1::2], strict=True):
            assert turn["measured_from_ns"] <= start <= end <= turn["end_ns"]


def test_the_scheduler_is_probed_in_a_quarter_of_the_slices(runs: Path) -> None:
    """Its probes are read at the edges of those slices only, and count nothing in the others."""
    for run in of_runs(runs):
        own = [turn for turn in slices(run) if turn["side"] == campaigns.document(runs, run.name)["side"]]
        assert len(own) == 6
        assert sum(turn["probed"] for turn in own) in (1, 2)
        read = f"SELECT start_ns, status FROM '{run}/server/ticks.parquet' WHERE probe = 'ebpf_states'"
        ticks = dict(rows(f"{read} ORDER BY tick")[1:-1])
        for turn in own:
            inside = {ticks[at] for at in ticks if turn["measured_from_ns"] <= at <= turn["end_ns"]}
            assert inside == {"ok" if turn["probed"] else "skipped"}
        calls = dict(
            rows(
                f"SELECT t.start_ns, p.calls FROM '{run}/server/ebpf_programs.parquet' p"
                f" JOIN '{run}/server/ticks.parquet' t ON t.tick = p.tick AND t.probe = 'ebpf_programs'"
                " WHERE p.program = 'sched_switch' AND p.cpus = 'all'"
            )
        )
        for turn in own:
            first, last = (
                calls[at] for at in sorted(calls) if turn["measured_from_ns"] <= at <= turn["end_ns"]
            )
            assert (last > first) == turn["probed"]


def test_the_table_has_the_starts_of_both_sides(runs: Path) -> None:
    table = campaigns.table_rows(runs)
    # the figures of sysbench, which is frozen as it is, have the pauses; those of its server do not
    assert all(value for row in ("server_statements", "server_cpu_per_statement") for value in table[row]), (
        table
    )
    assert [value is None for value in table["statements"]] == [True, False], table
    # no wait spans a freeze: the states of the load's threads add up to the latency
    unexplained, latency = (table[f"time_{part}_per_statement"] for part in ("client_unexplained", "latency"))
    assert latency[0] is None
    assert abs(unexplained[1]) < 0.1 * latency[1], table
    by_run = {run.name: read(run / "load" / "result.json") for run in of_runs(runs)}
    assert all(result["status"] == "complete" and not result["errors"] for result in by_run.values())
