"""Both sums of the time ledger on a real server: they close, and each fault at its source is seen.

The machine may be busy: the bounds are those of the flags, and each fault is larger than them.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import duckdb
import pytest
from loadprint.metrics.gather import Measured
from loadprint.metrics.ledger_rows import CLOSURE
from programs import commanded, printed

from .server import ADDRESS, CLIENT, CONNECTIONS, PASSWORD, Server, record

HERE = Path(__file__).parent
PORT = 33098
LATENCY_ROWS = ("client_cpu", "client_queue", "client_other", "waiting", "server", "overlap", "network")
SUMS = ("client_unexplained", "unexplained")
DELAY_US = 200
STOPS, STOPPED_S, PERIOD_S = 20, 0.2, 1.0


def per_statement(run: Measured) -> dict[str, float]:
    """The rows in µs per statement."""
    values, scale = run.quantities.values, 1e6 / run.quantities.values["load.queries"].rate
    return {name: values[f"ledger.{name}"].rate * scale for name in ("latency", *LATENCY_ROWS, *SUMS)}


def shares(run: Measured) -> dict[str, float]:
    """What is not explained, of the latency."""
    rows = per_statement(run)
    return {name: rows[name] / rows["latency"] for name in SUMS}


def rows(sql: str) -> list[tuple[Any, ...]]:
    return duckdb.execute(sql).fetchall()


@pytest.mark.parametrize(
    ("workload", "options"),
    [
        ("oltp_point_select", "--threads=4"),
        ("oltp_point_select", "--threads=1"),
        # what a thread does between two operations, about 40 µs, is a small part of long ones; the ticks of
        # the recording exclude up to 0.4 s of the phase, whose arrivals are a small part of many
        ("oltp_read_only", "--rate=100 --point-selects=200 --time=12"),
    ],
)
def test_both_sums_close(server: Server, tmp_path: Path, workload: str, options: str) -> None:
    """By the median of three recordings.

    One exchange in 64 is sampled; one of some milliseconds among these, in which a thread was preempted, is
    several percent of the latency of all.
    """
    with server.running():
        runs = [
            record(server, tmp_path / f"run{number}", *options.split(), workload=workload)
            for number in range(3)
        ]
    closed = {name: median(shares(run)[name] for run in runs) for name in SUMS}
    assert closed == pytest.approx(dict.fromkeys(SUMS, 0.0), abs=CLOSURE), [*map(per_statement, runs)]


def test_a_recorder_that_loses_switches_is_seen(server: Server, tmp_path: Path) -> None:
    with server.running():
        lossy = {"LOADPRINT_TEST_LOSE_ONE_SWITCH_IN": "2"}
        run = record(server, tmp_path / "run", environment=lossy)
    assert max(abs(share) for share in shares(run).values()) > CLOSURE, per_statement(run)
    # a wait in which a task came and went unseen is in neither
    sched, states = (
        f"'{run.run.path}/server/ebpf_{name}.parquet' WHERE role = 'server'" for name in ("sched", "states")
    )
    last = f"AND tick = (SELECT max(tick) FROM {states})"
    others = ("run queue", "run queue after pause", "on CPU", "stolen", "throttled")
    ((in_histograms,),) = rows(f"SELECT sum(list_sum(buckets)) FROM {sched} AND state <> 'run queue' {last}")
    ((in_states,),) = rows(f"SELECT sum(count) FROM {states} AND state NOT IN {others} {last}")
    assert in_histograms == pytest.approx(in_states, rel=0.02)


def test_a_generator_whose_clock_is_fast_is_seen_at_the_client(server: Server, tmp_path: Path) -> None:
    """Its latencies are 10 % too large; the server's sum does not depend on them."""
    assert shutil.which("sysbench"), "./setup --with-test-tools installs it"
    library, wrapper = tmp_path / "clock.so", tmp_path / "sysbench"
    printed("clang", "-shared", "-fPIC", "-O2", HERE / "scaled_clock.c", "-o", library, "-ldl")
    wrapper.write_text(f'#!/bin/sh\nLD_PRELOAD={library} exec sysbench "$@"\n', encoding="utf-8")
    wrapper.chmod(0o755)
    generator = ("--generator=sysbench", "--db-ps-mode=disable")
    with server.running():
        right = record(server, tmp_path / "right", *generator, load="sysbench")
        fast = record(server, tmp_path / "fast", *generator, f"--sysbench-path={wrapper}", load="sysbench")
    assert shares(right) == pytest.approx(dict.fromkeys(SUMS, 0.0), abs=CLOSURE), per_statement(right)
    assert shares(fast)["client_unexplained"] > CLOSURE, per_statement(fast)
    assert abs(shares(fast)["unexplained"]) < CLOSURE, per_statement(fast)


def stop_often(server: Server) -> float:
    """Stop the server's process in each second; returns the share of the time, by this clock."""
    stopped_s, begun = 0.0, time.monotonic()
    for number in range(STOPS):
        os.kill(server.pid, signal.SIGSTOP)
        since = time.monotonic()
        time.sleep(STOPPED_S)
        os.kill(server.pid, signal.SIGCONT)
        stopped_s += time.monotonic() - since
        time.sleep(max(0.0, begun + (number + 1) * PERIOD_S - time.monotonic()))
    return stopped_s / (time.monotonic() - begun)


def test_a_server_that_is_stopped_in_each_second_is_in_its_row(server: Server, tmp_path: Path) -> None:
    """A fifth of the time of its connection threads, by the clock of the test.

    A stop counts when it ends: one at an end of the window is 5 % of twenty. A thread stops when it next
    runs: on a busy machine that is some ms later, which are a few percent of each stop. The generator has a
    further connection, for the server's variables: it is idle, and counts because its stops end.
    """
    shares_of_time = []
    with server.running():
        run = record(
            server,
            tmp_path / "run",
            f"--time={STOPS * PERIOD_S:.0f}",
            during=lambda: shares_of_time.append(stop_often(server)),
        )
    values = run.quantities.values
    threads = CONNECTIONS + 1
    assert values["ledger.stopped"].rate / threads == pytest.approx(shares_of_time[0], rel=0.15)
    # it is in no other state, and not missing
    assert values["ledger.connections"].rate - CONNECTIONS == 0
    assert abs(values["ledger.not_recorded"].rate + 1) / CONNECTIONS < CLOSURE


@contextlib.contextmanager
def relayed() -> Iterator[tuple[str, Callable[[str], str]]]:
    """Run the relay between the server and another network namespace.

    Gives the name of the namespace, and the function that sends the delay of a round trip in microseconds.
    """
    namespace = f"loadprint-{os.getpid()}"
    printed("ip", "netns", "add", namespace)
    try:
        with commanded(sys.executable, HERE / "packet_relay.py", namespace, ADDRESS, CLIENT) as send:
            yield namespace, send
    finally:
        printed("ip", "netns", "delete", namespace)


def test_a_delay_of_packets_is_in_the_network_and_in_no_other_row(server: Server, tmp_path: Path) -> None:
    account = tmp_path / "client.cnf"
    account.touch(mode=0o600)
    text = f"[client]\nuser=loadprint\npassword={PASSWORD}\nhost={ADDRESS}\nport={PORT}\nssl-mode=DISABLED\n"
    account.write_text(text, encoding="utf-8")
    rows: dict[str, list[dict[str, float]]] = {"near": [], "far": []}
    with relayed() as (namespace, send):
        prefix = ("ip", "netns", "exec", namespace)
        options = ("--skip-networking=0", f"--bind-address={ADDRESS}", f"--port={PORT}")
        load = ("--threads=1", f"--defaults-file={account}", "--mysql-get-server-public-key")
        with server.running(*options):
            # in turn, because the machine's speed changes from run to run
            for name, microseconds in (("near", 0), ("far", DELAY_US)) * 3:
                assert send(f"{microseconds}") == "set"
                run = tmp_path / f"{name}-{len(rows[name])}"
                rows[name].append(per_statement(record(server, run, *load, load_prefix=prefix)))
    pairs = list(zip(rows["near"], rows["far"], strict=True))
    grown = {name: median(far[name] - near[name] for near, far in pairs) for name in (*LATENCY_ROWS, *SUMS)}
    waited = grown.pop("waiting")
    network = grown.pop("network")
    # a thread that is idle for longer finds its caches cold, most of all after it has sent its answer
    grown["server until its answer"] = grown.pop("server") + grown.pop("overlap")
    assert waited > 0.8 * DELAY_US, rows
    assert network == pytest.approx(waited, rel=0.15), rows
    assert max(abs(growth) for growth in grown.values()) < 0.1 * waited, rows
