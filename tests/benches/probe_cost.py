"""What each probe costs the recorder, and what each eBPF program costs the host, under an OLTP load.

    .venv/bin/python tests/benches/probe_cost.py [--samples 30] [--threads 4]

Starts a private MySQL server (tests/with-server) and oltp_read_write on it, then
- one recorder per probe, all at once at 1 Hz, each at a different offset within the second: CPU of all its
  threads per sample, less that of a recorder with no probe but one trivial file, and bytes of the finished
  table per sample;
- one recorder with every probe, with kernel.bpf_stats_enabled=1: calls a second and ns a call of each eBPF
  program (bpftool prog show), and what that comes to in hundredths of a CPU. The statistics themselves cost
  some ns a call, which is in the figure. `sched_switch` is the program of ebpf_sched, ebpf_switches and
  ebpf_states, `take_sample` that of profile.
Needs root, bpftool, and `cargo build --release`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from processes import COLLECT, RELEASE, ROOT, cpu_ns, running, start, wait_for

BPF_STATS = Path("/proc/sys/kernel/bpf_stats_enabled")
# The least work of a recorder: /proc/pressure, four small files, and the cost of every tick.
BASE = "pressure"
ON_REQUEST = "ebpf_syscalls,ebpf_syscall_latency,ebpf_statements"
# in addition to a probe's table
MORE_FILES = {"profile": ("stacks.json",)}


def targets() -> list[str]:
    """Options that name the server and the load for a recorder."""
    socket = Path(os.environ["LOADPRINT_TEST_SOCKET"])
    options = [f"--process=server=@{socket.parent / 'mysqld.pid'}", "--process=load=loadprint-load"]
    return [*options, f"--mysql-defaults-file={os.environ['LOADPRINT_TEST_DEFAULTS']}"]


def probes() -> list[dict[str, Any]]:
    """Every probe that runs here."""
    named = ["--with", ON_REQUEST]
    words = [str(COLLECT), "probes", "--format", "json", *targets(), *named]
    listed: list[dict[str, Any]] = json.loads(subprocess.run(words, check=True, capture_output=True).stdout)
    return [probe for probe in listed if probe["status"] == "running"]


@contextmanager
def load(threads: int) -> Iterator[None]:
    """OLTP read-write at saturation, for as long as it lasts."""
    common = ["oltp_read_write", f"--defaults-file={os.environ['LOADPRINT_TEST_DEFAULTS']}"]
    tables = ["--tables=4", "--table-size=25000"]
    words = [str(RELEASE / "loadprint-load"), "prepare", *common, *tables]
    subprocess.run(words, check=True, capture_output=True)
    words = [str(RELEASE / "loadprint-load"), "run", *common, *tables, f"--threads={threads}", "--time=0"]
    with running({"load": start([*words, "--events=0"])}):
        time.sleep(3)
        yield


def recorders(names: list[str], samples: int, directory: Path) -> dict[str, float]:
    """Microseconds of CPU per sample of a recorder with each of these probes alone, all at once."""
    whole = samples + len(names) + 10
    with running({}) as processes:
        for name in names:
            run = directory / name
            words = [COLLECT, "record", "--out", run, "--probes", name, "--duration", f"{whole}s", *targets()]
            processes[name] = start([*words, "--pid-file", run.with_suffix(".pid")])
            wait_for(run.with_suffix(".pid"))
            time.sleep(1 / len(names))
        time.sleep(3)
        before = {name: cpu_ns(process.pid) for name, process in processes.items()}
        time.sleep(samples)
        after = {name: cpu_ns(process.pid) for name, process in processes.items()}
    return {name: (after[name] - before[name]) / samples / 1000 for name in names}


def programs() -> dict[int, tuple[str, int, int]]:
    """Name, time (ns) and calls of every eBPF program of the host, by its number."""
    words = ["bpftool", "prog", "show", "-j"]
    listed = json.loads(subprocess.run(words, check=True, capture_output=True).stdout)
    return {
        one["id"]: (one.get("name", "?"), one.get("run_time_ns", 0), one.get("run_cnt", 0)) for one in listed
    }


def events(seconds: int, directory: Path) -> dict[str, tuple[float, float]]:
    """Calls a second and ns a call of every program of one recorder with all probes."""
    run = directory / "all"
    others = programs()
    words = [COLLECT, "record", "--out", run, "--with", ON_REQUEST, *targets()]
    process = start([*words, "--duration", f"{seconds + 30}s", "--pid-file", run.with_suffix(".pid")])
    was = BPF_STATS.read_text()
    with running({"all": process}):
        wait_for(run.with_suffix(".pid"))
        BPF_STATS.write_text("1")
        try:
            before = programs()
            time.sleep(seconds)
            after = programs()
        finally:
            BPF_STATS.write_text(was)
    result = {}
    for number, (name, ns, calls) in after.items():
        if number in others or number not in before:
            continue
        more_ns, more_calls = ns - before[number][1], calls - before[number][2]
        result[name] = (more_calls / seconds, more_ns / more_calls if more_calls else 0.0)
    return result


def print_recorders(names: list[str], samples: int, directory: Path) -> None:
    """Print the first table."""
    cost = recorders(names, samples, directory)
    print("| probe | recorder, µs CPU per sample | more than the least | bytes per sample, finished |")
    print("|---|---|---|---|")
    for name in names:
        names_of_files = (f"{name}.parquet", *MORE_FILES.get(name, ()))
        files = [directory / name / "server" / file for file in names_of_files]
        sizes = [file.stat().st_size for file in files if file.exists()]
        size = f"{sum(sizes) / (samples + len(names) / 2):.0f}" if sizes else ""
        print(f"| {name} | {cost[name]:.0f} | {cost[name] - cost[BASE]:+.0f} | {size} |")


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--samples", type=int, default=30)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--programs-only", action="store_true", help="leave out the recorders' own cost")
    given = parser.parse_args()
    if shutil.which("bpftool") is None:
        parser.exit(2, "probe_cost: bpftool is not on the PATH: install the package bpftool\n")
    if "LOADPRINT_TEST_SOCKET" not in os.environ:
        os.execv(ROOT / "tests/with-server", ["with-server", sys.executable, *sys.argv])
    listed = probes()
    names = [probe["name"] for probe in listed if probe["read"] != "the first and the last tick"]
    with tempfile.TemporaryDirectory(dir=ROOT / "target") as directory, load(given.threads):
        if not given.programs_only:
            print_recorders(names, given.samples, Path(directory))
        print("\n| eBPF program | calls a second | ns a call | % of a CPU |")
        print("|---|---|---|---|")
        for name, (calls, ns) in sorted(events(given.samples, Path(directory)).items()):
            print(f"| {name} | {calls:,.0f} | {ns:.0f} | {calls * ns / 1e7:.2f} |")


if __name__ == "__main__":
    main()
