"""Both ledgers where they cannot be complete: rows are right, or have a reason.

A real server pools its threads, restarts, or gets a new connection for each statement; a recorder has no
perf_event_open.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest
from loadprint.metrics.gather import Measured
from loadprint.metrics.host import SERVER_ENDED, SERVER_RESTARTED
from loadprint.reading.queries import Store

from .server import CONNECTIONS, Server, record

NO_PERF_EVENT = Path(__file__).with_name("no_perf_event.py")
LOST = "--mysql-ignore-errors=2006,2013,2055,2011"


def rates(run: Measured, prefix: str) -> dict[str, float]:
    """Quantities that start with a prefix, without it."""
    found = run.quantities.values.items()
    return {name.removeprefix(prefix): value.rate for name, value in found if name.startswith(prefix)}


def cpu_groups_add_up(run: Measured) -> None:
    """The groups are the CPU time in /proc, up to what other programs on the CPUs hide from the samples."""
    cpu = run.quantities.values["process.server.cpu"].rate
    assert sum(rates(run, "profile.server.").values()) == pytest.approx(cpu, rel=0.25)
    assert cpu > 0


def states_fit_into_the_time(run: Measured) -> None:
    """Threads have no more states than there is time, up to the periods at both ends of the window."""
    ledger = rates(run, "ledger.")
    assert ledger["not_recorded"] > -0.1 * CONNECTIONS
    assert ledger["user"] > 0
    assert ledger["system"] > 0


def test_threads_of_a_pool(server: Server, tmp_path: Path) -> None:
    """A thread that receives a login waits for it with poll, as a connection's thread does."""
    with server.running("--thread-handling=pool-of-threads"):
        run = record(server, tmp_path / "run")
    assert run.quantities.get("ledger.server") is None
    assert "thread_handling = pool-of-threads" in run.quantities.why("ledger.user")
    cpu_groups_add_up(run)


def restart(server: Server) -> None:
    """Kill the server, and start another one."""
    time.sleep(1)
    server.kill()
    server.start()


def test_a_server_that_restarts_is_followed_by_its_pid_file(server: Server, tmp_path: Path) -> None:
    with server.running():
        run = record(server, tmp_path / "run", LOST, "--time=12", during=lambda: restart(server))
        second = server.pid
    assert SERVER_RESTARTED in run.quantities.warnings
    states_fit_into_the_time(run)
    cpu_groups_add_up(run)
    # the threads of the first process are gone: what comes later is of the second one
    tables, store = tmp_path / "run/server", Store()
    lives = store.fetch(
        tables / "process.parquet", f"SELECT min(tick)::DOUBLE AS tick FROM t WHERE pid = {second}"
    )
    rows = store.fetch(
        tables / "ebpf_states.parquet",
        'SELECT tick::DOUBLE AS tick, "count"::DOUBLE AS periods FROM t'
        " WHERE role = 'server' AND threads = 'connection' AND state = 'client' ORDER BY tick",
    )
    assert rows["periods"][-1] > rows["periods"][rows["tick"] == lives["tick"][0]][0]


def test_a_server_that_restarts_has_no_rows_if_only_its_process_is_known(
    server: Server, tmp_path: Path
) -> None:
    with server.running():
        watched, again = f"server={server.pid}", lambda: restart(server)
        run = record(server, tmp_path / "run", LOST, "--time=12", process=watched, during=again)
    for prefix in ("profile.server.", "process.server."):
        assert not rates(run, prefix)
        assert run.quantities.why(f"{prefix}user") == SERVER_ENDED
    assert run.quantities.why("ledger.server") == SERVER_ENDED


def test_a_connection_and_a_thread_for_each_statement(server: Server, tmp_path: Path) -> None:
    with server.running("--thread-cache-size=0"):
        run = record(server, tmp_path / "run", "--reconnect=1")
    assert run.quantities.values["load.reconnects"].rate == run.quantities.values["load.events"].rate
    states_fit_into_the_time(run)
    cpu_groups_add_up(run)
    # of all threads, those that have ended too: no time is lost or counted twice
    of_threads = sum(rates(run, "ledger.")[name] for name in ("user", "system"))
    assert of_threads < 1.1 * run.quantities.values["process.server.cpu"].rate
    assert run.quantities.values["profiled.server.lost"].rate == 0


def test_without_perf_event_open_the_other_ledger_is_complete(server: Server, tmp_path: Path) -> None:
    with server.running():
        run = record(server, tmp_path / "run", prefix=(sys.executable, NO_PERF_EVENT))
    assert "perf_event_open: Operation not permitted" in run.quantities.why("profile.server.user")
    assert not rates(run, "profile.server.")
    states_fit_into_the_time(run)
