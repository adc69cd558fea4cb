"""Sides that alternate on two hosts, whose clocks differ: each side has its turn on both at the same time."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from programs import FAILED, wait_for

from . import campaigns
from .campaigns import slices
from .hosts import Bench, Host, bench

AHEAD_S = 1000
SLICES = {"length": "1.9s", "closing": "0.5s", "seconds": "11s"}
PROBES = ["cpu", "memory", "mysql", "nic", "process", "tcp"]  # none of eBPF, which has the kernel's clock


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with bench(tmp_path_factory.mktemp("turns"), forwarded=True, ahead_s=AHEAD_S) as made:
        yield made


def command(pair: Bench, *settings: str, **changes: Any) -> list[str]:
    """The command of a campaign of two sides, the first of which sends more and smaller statements."""
    sides = campaigns.known("turns")["sides"]
    del sides["oltp"]["generator"]
    changes = {"slices": SLICES, "sides": sides, "recorder": {"probes": PROBES}} | changes
    return pair.campaign(campaigns.written(pair.place, "turns", **changes), *settings)


@pytest.fixture(scope="module")
def runs(pair: Bench) -> list[Path]:
    """The runs of a campaign with three starts."""
    pair.run(command(pair, "starts=3"))
    found = sorted(campaigns.newest(pair.runs) / run for run in campaigns.complete(pair.runs))
    assert len(found) == 6
    return found


def test_both_hosts_give_the_same_side_its_turn_at_the_same_time(runs: list[Path]) -> None:
    for run in runs:
        server, load = slices(run), slices(run / "load")
        assert len(server) == 2 * 6
        for here, there in zip(server, load, strict=True):
            assert all(here[key] == there[key] for key in ("round", "position", "side", "probed"))
            # a host that is later than `closing` loses the start; this machine has the time of both
            apart_ns = there["begin_ns"] - AHEAD_S * 1_000_000_000 - here["begin_ns"]
            assert abs(apart_ns) < 550_000_000


def test_no_operation_spans_a_freeze_of_its_server(runs: list[Path]) -> None:
    for run in runs:
        for place in (run, run / "load"):
            assert all(before["frozen_ns"] <= after["begin_ns"] for before, after in pairwise(slices(place)))
        for here, there in zip(slices(run), slices(run / "load"), strict=True):
            assert here["in_event"] is None
            assert there["in_event"] == 0
            assert there["frozen_ns"] - AHEAD_S * 1_000_000_000 < here["frozen_ns"] + 50_000_000


def test_the_table_has_what_each_host_counted_in_the_turns(pair: Bench, runs: list[Path]) -> None:
    table = campaigns.table_rows(pair.runs)
    # the loads count what they send, the server what it receives
    for sent, received in zip(table["statements"], table["server_statements"], strict=True):
        assert sent == pytest.approx(received, rel=0.1)
    assert min(table["latency_p95"]) > 0
    window = campaigns.reasons(pair.runs).partition("window ")[2].split("\n")[0]
    assert "in 6 turns; insert " in window
    assert all(6 * 1.3 < float(part) < 6 * 1.6 for part in re.findall(r"\d+\.\d", window))


def test_a_start_is_lost_if_a_host_does_not_keep_time(pair: Bench, runs: list[Path]) -> None:
    pair.start(command(pair, "starts=3", "campaign_new=true"))
    late = scheduler(pair.server, 1)
    os.kill(late, signal.SIGSTOP)
    time.sleep(3)
    os.kill(late, signal.SIGCONT)
    os.kill(scheduler(pair.loads[0], 2), signal.SIGKILL)
    wait_for("the second start", lambda: campaigns.statuses(pair.runs).get("b2-oltp-r2") == "failed")
    pair.set("delay", 80)
    assert pair.process is not None
    assert pair.process.wait() in FAILED
    pair.set("delay", 0)
    late_for = r"was \d\.\d\d s late for a turn, limit 0\.5 s"
    for start, reason in enumerate((late_for, "it ended with KILL", r"known to \d+ ms only, limit 50 ms"), 1):
        for side in ("oltp", "insert"):
            said = campaigns.document(pair.runs, f"b{start}-{side}-r{start}")["reason"]
            assert said.startswith("the sides do not alternate: "), said
            assert re.search(reason, said), said
    assert pair.left() == {"db1": [], "load1": []}


def scheduler(host: Host, start: int) -> int:
    """Wait for the second round of a start. Returns the process that gives the turns on a host."""
    written = f"executions/*/b{start}-oltp-r{start}/{'' if host.name == 'db1' else 'load/'}slices.jsonl"

    def found() -> int | None:
        if not any(path.read_text().count("\n") > 1 for path in host.data.glob(written)):
            return None
        for pid in host.processes():
            with suppress(FileNotFoundError, ProcessLookupError):
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                if words[1:] and words[1].endswith(b"/alternate.py"):
                    return pid
        return None

    return int(str(wait_for("a turn", found)))
