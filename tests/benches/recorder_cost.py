"""What a sample of the recorder costs, beside a bare pread of the same files and `sadc -S XALL`, all at once.

    python3 tests/benches/recorder_cost.py [--samples 60] [--rounds 5] [--interval-ms 1000] [--no-sadc]

The three run at the same time and cadence, so that caches and clock frequency are the same for all. CPU time
is that of /proc/PID/schedstat (ns on a CPU, to the context switch), not the clock tick's; start-up is out.
Standard library only; needs `cargo build --release -p loadprint-collect --examples`.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RELEASE = ROOT / "target/release"
SADC = Path("/usr/lib/sysstat/sadc")


def cpu_ns(pid: int) -> int:
    """Nanoseconds on a CPU (Documentation/scheduler/sched-stats.rst)."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])


def resident_kb(pid: int) -> int:
    """Peak resident memory (VmHWM, proc_pid_status(5))."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmHWM")))


def start(run: Path, samples: int, interval_ms: int, *, sadc: bool) -> dict[str, subprocess.Popen[bytes]]:
    """Start all of them, each to go on longer than it is measured. pread gets the files of the recorder."""
    whole = samples + max(10, 3000 // interval_ms)
    pid_file = run.with_suffix(".pid")
    times = f"--interval {interval_ms}ms --duration {whole * interval_ms}ms --pid-file {pid_file}"
    commands = {"recorder": f"{RELEASE}/loadprint-collect record --out {run} {times}"}
    running = {"recorder": background(commands["recorder"])}
    while not pid_file.exists():
        time.sleep(0.01)
    files = " ".join(open_files(running["recorder"].pid))
    commands["pread"] = f"{RELEASE}/examples/pread_loop {interval_ms} {whole} {files}"
    if sadc:
        commands["sadc"] = f"{SADC} -S XALL 1 {whole} {run.with_suffix('.sa')}"
    # Each reads at its own third of the interval: right behind another it would find warm caches.
    for name in [name for name in commands if name not in running]:
        time.sleep(interval_ms / 3000)
        running[name] = background(commands[name])
    return running


def background(command: str) -> subprocess.Popen[bytes]:
    """Start a command whose output nobody needs."""
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command.split(), stdout=quiet, stderr=quiet)


def open_files(pid: int) -> list[str]:
    """List the files under /proc that a process has open."""
    links = [str(descriptor.readlink()) for descriptor in Path(f"/proc/{pid}/fd").iterdir()]
    return sorted(link for link in links if link.startswith("/proc/"))


def measure(samples: int, interval_ms: int, *, sadc: bool) -> dict[str, float]:
    """One round: microseconds of CPU per sample of each, and the recorder's peak memory."""
    with tempfile.TemporaryDirectory(dir=ROOT / "target") as directory:
        running = start(Path(directory) / "run", samples, interval_ms, sadc=sadc)
        try:
            time.sleep(1.5 * interval_ms / 1000 + 0.3)
            before = {name: cpu_ns(process.pid) for name, process in running.items()}
            time.sleep(samples * interval_ms / 1000)
            found = {
                name: (cpu_ns(process.pid) - before[name]) / samples / 1000
                for name, process in running.items()
            }
            return found | {"resident_kb": resident_kb(running["recorder"].pid)}
        finally:
            for process in running.values():
                process.terminate()
                process.wait()


def sizes(samples: int) -> tuple[float, float]:
    """Bytes per sample of a finished recording and of sadc's file, both of `samples` samples at 1 Hz."""
    with tempfile.TemporaryDirectory(dir=ROOT / "target") as directory:
        run, other = Path(directory) / "run", Path(directory) / "other.sa"
        sadc = background(f"{SADC} -S XALL 1 {samples} {other}")
        record = f"{RELEASE}/loadprint-collect record --out {run} --duration {samples - 1}s"
        subprocess.run(record.split(), check=True, capture_output=True)
        sadc.wait()
        whole = sum(path.stat().st_size for path in run.rglob("*") if path.is_file())
        return whole / samples, other.stat().st_size / samples


def main() -> int:
    """Print the ratios; exit status 1 when a bar is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--samples", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--interval-ms", type=int, default=1000)
    parser.add_argument("--no-sadc", action="store_true", help="sadc takes whole seconds only")
    asked = parser.parse_args()
    sadc = not asked.no_sadc and asked.interval_ms == 1000 and SADC.exists()
    rounds = [measure(asked.samples, asked.interval_ms, sadc=sadc) for _ in range(asked.rounds)]
    missed = False
    names = ["pread", "recorder", *(["sadc"] if sadc else [])]
    for name in names:
        values = [found[name] for found in rounds]
        each = " ".join(f"{value:.0f}" for value in values)
        print(f"{name:9} {statistics.median(values):8.1f} us/sample   {each}")
    for other, bar in [("pread", 1.3), *([("sadc", 0.35)] if sadc else [])]:
        ratios = sorted(found["recorder"] / found[other] for found in rounds)
        missed |= statistics.median(ratios) > bar
        spread = f"{ratios[0]:.2f} to {ratios[-1]:.2f} over {len(ratios)} rounds"
        print(f"recorder / {other}: {statistics.median(ratios):.2f} ({spread}; bar {bar})")
    resident = max(found["resident_kb"] for found in rounds) / 1024
    missed |= resident > 15
    print(f"recorder resident: {resident:.1f} MB at most (bar 15)")
    if sadc:
        ours, theirs = sizes(max(asked.samples, 60))
        missed |= ours / theirs > 0.25
        print(f"bytes per sample: {ours:.0f} of {theirs:.0f}, {ours / theirs:.3f} (bar 0.25)")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
