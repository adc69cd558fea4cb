"""Kills the recorder with SIGKILL at random moments: at most the tick that was being taken may be lost."""

from __future__ import annotations

import random
import subprocess
import time
from pathlib import Path

import duckdb

from . import COLLECT, LOADPRINT

INTERVAL_NS = 100_000_000
KILLS = 20


def test_twenty_kills_lose_at_most_one_tick(tmp_path: Path) -> None:
    draw = random.Random(20)
    lost = [lost_ticks(tmp_path / f"run{number}", draw.uniform(0.3, 2.0)) for number in range(KILLS)]
    print("ticks lost in each of the kills:", lost)
    assert len(lost) == KILLS
    assert max(lost) <= 1


def lost_ticks(run: Path, seconds: float) -> int:
    """Record, kill after so many seconds, finish; count the ticks due before the kill that are not there."""
    pid_file = run.with_suffix(".pid")
    command: list[str | Path] = [
        COLLECT,
        "record",
        "--out",
        run,
        "--interval",
        "100ms",
        "--pid-file",
        pid_file,
    ]
    recorder = subprocess.Popen(command)
    try:
        deadline = time.monotonic() + 10
        while not pid_file.exists():
            assert time.monotonic() < deadline, "the recorder took no first sample in 10 s"
            time.sleep(0.01)
        time.sleep(seconds)
    finally:
        killed_ns = time.monotonic_ns()
        recorder.kill()
        recorder.wait()
    assert (run / "server" / "journal").exists()
    subprocess.run([COLLECT, "finish", run], check=True)
    assert not (run / "server" / "journal").exists()
    inspected = subprocess.run([LOADPRINT, "inspect", run], capture_output=True, text=True, check=True)
    assert "torn" in inspected.stdout
    query = f"SELECT min(intended_ns), max(tick) FROM '{run}/server/ticks.parquet'"
    first, last = duckdb.execute(query).fetchall()[0]
    return int((killed_ns - first) // INTERVAL_NS - last)
