"""What each probe costs the recorder, and what each eBPF program costs the host, under an OLTP load.

    .venv/bin/python tests/benches/probe_cost.py [--samples 30] [--threads 4]
    .venv/bin/python tests/benches/probe_cost.py --against PATH [--rounds 10] [--samples 3]

Starts a private MySQL server (tests/with-server) and oltp_read_write on it, then
- one recorder per probe, all at once at 1 Hz, each at a different offset within the second: CPU of all its
  threads per sample, less that of a recorder with no probe but one trivial file, and bytes of the finished
  table per sample;
- one recorder with every probe, with kernel.bpf_stats_enabled=1: calls a second and ns a call of each eBPF
  program (bpftool prog show), and what that comes to in hundredths of a CPU. The statistics themselves cost
  some ns a call, which is in the figure. `sched_switch` is the program of ebpf_sched, ebpf_switches and
  ebpf_states, `take_sample` that of profile.
With `--against`, the path of another build of the recorder, only the programs of both are measured: each
round has both recorders alone and both at once, in both orders, because the second program at a hook finds
its data in the caches. Ratios are medians over the rounds with their quartiles.
Needs root, bpftool, and `cargo build --release`.
"""

from __future__ import annotations

import json
import math
import re
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from processes import cost_per_sample, described, recorder, running, saturated, targets, with_server
from programs import COLLECT, ROOT, printed

BPF_STATS = Path("/proc/sys/kernel/bpf_stats_enabled")
# The least work of a recorder: /proc/pressure, four small files, and the cost of every tick.
BASE = "pressure"
ON_REQUEST = "ebpf_syscalls,ebpf_syscall_latency,ebpf_statements"
# in addition to a probe's table
MORE_FILES = {"profile": ("stacks.json",)}


def probes() -> list[dict[str, Any]]:
    """Every probe that runs here."""
    named = ["--with", ON_REQUEST]
    listed: list[dict[str, Any]] = json.loads(
        printed(COLLECT, "probes", "--format", "json", *targets(), *named)
    )
    return [probe for probe in listed if probe["status"] == "running"]


def recorders(names: list[str], samples: int, directory: Path) -> dict[str, float]:
    """Microseconds of CPU per sample of a recorder with each of these probes alone, all at once."""
    whole = samples + len(names) + 10
    with running({}) as processes:
        for name in names:
            options = ("--probes", name, "--duration", f"{whole}s", *targets())
            processes[name] = recorder(directory / name, *options)
            time.sleep(1 / len(names))
        time.sleep(3)
        return {name: us for name, (us, _) in cost_per_sample(processes, samples).items()}


def programs(pid: int) -> dict[str, tuple[int, int]]:
    """Time (ns) and calls of every eBPF program of a process."""
    listed = json.loads(printed("bpftool", "prog", "show", "-j"))
    descriptors = [file.read_text() for file in Path(f"/proc/{pid}/fdinfo").iterdir()]
    own = {int(number) for text in descriptors for number in re.findall(r"^prog_id:\s*(\d+)$", text, re.M)}
    return {
        one["name"]: (one.get("run_time_ns", 0), one.get("run_cnt", 0)) for one in listed if one["id"] in own
    }


@contextmanager
def statistics_of_programs() -> Iterator[None]:
    """Let the kernel measure eBPF programs."""
    was = BPF_STATS.read_text()
    BPF_STATS.write_text("1")
    try:
        yield
    finally:
        BPF_STATS.write_text(was)


def events(
    builds: list[Path], seconds: float, directory: Path, *options: str
) -> list[dict[str, tuple[float, float]]]:
    """Calls a second and ns a call of every program of recorders that start in this order."""
    with running({}) as processes, statistics_of_programs():
        for number, build in enumerate(builds):
            run = Path(tempfile.mkdtemp(dir=directory)) / "run"
            processes[str(number)] = recorder(run, *options, *targets(), program=build)
        before = [programs(process.pid) for process in processes.values()]
        time.sleep(seconds)
        after = [programs(process.pid) for process in processes.values()]
    return [
        {
            name: ((calls - first[name][1]) / seconds, (ns - first[name][0]) / max(calls - first[name][1], 1))
            for name, (ns, calls) in last.items()
        }
        for first, last in zip(before, after, strict=True)
    ]


def print_comparison(against: Path, rounds: int, seconds: float, directory: Path) -> None:
    """Print ns per call of the programs of two builds of the recorder."""
    these, those = COLLECT, against
    alone: dict[str, list[tuple[float, float]]] = {}
    at_once: dict[str, list[float]] = {}
    for _ in range(rounds):
        (this,), (that,) = events([these], seconds, directory), events([those], seconds, directory)
        first, second = events([these, those], seconds, directory)
        second_reversed, first_reversed = events([those, these], seconds, directory)
        for name in this.keys() & that.keys():
            if this[name][0] * seconds >= 100:
                alone.setdefault(name, []).append((this[name][1], that[name][1]))
                ratio = first[name][1] / second[name][1] * first_reversed[name][1] / second_reversed[name][1]
                at_once.setdefault(name, []).append(math.sqrt(ratio))
    print(f"| eBPF program | ns a call | {against} | ratio | at once |")
    print("|---|---|---|---|---|")
    for name, pairs in sorted(alone.items()):
        this_ns, that_ns = (statistics.median(values) for values in zip(*pairs, strict=True))
        ratios = [quartiles(values) for values in ([this / that for this, that in pairs], at_once[name])]
        print(f"| {name} | {this_ns:.0f} | {that_ns:.0f} | {ratios[0]} | {ratios[1]} |")


def quartiles(values: list[float]) -> str:
    """Print the median and the quartiles."""
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:.2f} ({low:.2f}–{high:.2f})"


def print_recorders(samples: int, directory: Path) -> None:
    """Print the first table."""
    names = [probe["name"] for probe in probes() if probe["read"] != "the first and the last tick"]
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
    parser = described(__doc__)
    parser.add_argument("--samples", type=int, default=30)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--programs-only", action="store_true", help="leave out the recorders' own cost")
    parser.add_argument(
        "--against", type=Path, metavar="PATH", help="another loadprint-collect to compare with"
    )
    parser.add_argument("--rounds", type=int, default=10, help="with --against, at least 2")
    given = parser.parse_args()
    if shutil.which("bpftool") is None:
        parser.exit(2, "probe_cost: bpftool is not on the PATH: install the package bpftool\n")
    with_server()
    with tempfile.TemporaryDirectory(dir=ROOT / "target") as directory, saturated(given.threads):
        if given.against:
            print_comparison(given.against, given.rounds, given.samples, Path(directory))
            return
        if not given.programs_only:
            print_recorders(given.samples, Path(directory))
        print("\n| eBPF program | calls a second | ns a call | % of a CPU |")
        print("|---|---|---|---|")
        (measured,) = events([COLLECT], given.samples, Path(directory), "--with", ON_REQUEST)
        for name, (calls, ns) in sorted(measured.items()):
            print(f"| {name} | {calls:,.0f} | {ns:.0f} | {calls * ns / 1e7:.2f} |")


if __name__ == "__main__":
    main()
