"""Kills the recorder with SIGKILL at random moments: no tick that it has served may be lost.

It serves a tick when it has written it, so at most the one that was being taken is gone. The tests ask the
recorder and not the clock: on a machine that stalls a tick may be due and not be taken.
"""

from __future__ import annotations

import random
import re
import subprocess
import time
import urllib.request
from pathlib import Path

import duckdb
import pytest
from loadprint.__main__ import main

from . import COLLECT
from .campaigns import wait_for

INTERVAL_NS = 100_000_000
KILLS = 20


def test_twenty_kills_lose_no_tick_that_was_served(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    draw = random.Random(20)
    for number in range(KILLS):
        run = tmp_path / f"run{number}"
        served_ns = served_before_the_kill(run, draw)
        subprocess.run([COLLECT, "finish", run], check=True)
        assert not (run / "server" / "journal").exists()
        query = f"SELECT max(realtime_ns), count(DISTINCT tick) FROM '{run}/server/ticks.parquet'"
        ((newest_ns, ticks),) = duckdb.execute(query).fetchall()
        # a lost tick is a whole interval; the time is served as a double of seconds
        assert newest_ns >= served_ns - INTERVAL_NS / 2, (
            f"{run}: lost {(served_ns - newest_ns) / INTERVAL_NS:.1f} ticks"
        )
        assert ticks >= 2
        assert main(["inspect", str(run)]) == 0
        assert "torn" in capsys.readouterr().out


def served_before_the_kill(run: Path, draw: random.Random) -> int:
    """Record, and kill at some moment; the time of the newest tick served before (CLOCK_REALTIME, ns)."""
    log = run.with_suffix(".log")
    command = [COLLECT, "record", "--out", run, "--interval", "100ms", "--listen", "127.0.0.1:0"]
    with log.open("wb") as output:
        recorder = subprocess.Popen([str(word) for word in command], stderr=output)
    try:
        said = wait_for("the endpoint", lambda: re.search(r"serving (\S+)\n", log.read_text()))
        first = newest_tick_ns(said[1])
        wait_for("a second tick", lambda: newest_tick_ns(said[1]) > first)
        # any number of ticks, then any moment of one
        time.sleep(draw.uniform(0.0, 0.7))
        served = newest_tick_ns(said[1])
        time.sleep(draw.uniform(0.0, 2e-9 * INTERVAL_NS))
        return served
    finally:
        recorder.kill()
        recorder.wait()
        assert (run / "server" / "journal").exists()


def newest_tick_ns(url: str) -> int:
    """Time of the newest tick that is served."""
    with urllib.request.urlopen(url, timeout=300) as answer:
        text: str = answer.read().decode()
    result = re.search(r"^loadprint_sample_timestamp_seconds (\S+)$", text, re.MULTILINE)
    assert result, text
    return round(float(result[1]) * 1e9)
