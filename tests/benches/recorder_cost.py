"""Cost of a sample of the recorder, compared with other tools that read the same host at the same time.

    .venv/bin/python tests/benches/recorder_cost.py [--samples 60] [--rounds 5] [--interval-ms 1000]
        [--rezolus PATH --rezolus-config agent.toml]

pread (the recorder's own files read and thrown away), the recorder with procfs only and with its standard
set (eBPF too), `sadc` with its default and with `-S XALL`, node_exporter scraped once a second and, where a
binary is named, rezolus (agent and its recorder together). All run at the same time and cadence, each at a
different offset within the interval, so that caches and clock frequency are the same for all. CPU
time is that of all threads (/proc/PID/task/*/schedstat) without start-up.
What eBPF programs cost the host is not in it: see
probe_cost.py. Needs root for eBPF, and `cargo build --release -p loadprint-collect --bins --examples`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from processes import (
    RELEASE,
    SADC,
    Scraper,
    accepts,
    cost_per_sample,
    described,
    open_files,
    recorder,
    running,
    start,
)
from programs import COLLECT, ROOT, printed, wait_for

NODE_EXPORTER = shutil.which("prometheus-node-exporter") or shutil.which("node_exporter")
EXPORTER_PORT = 19_100
REZOLUS_PORT = 4241
# what is compared with what, and the most it may be
BARS = [
    ("procfs", "pread", 1.3),
    ("procfs", "sadc XALL", 0.35),
    ("procfs", "node_exporter", 1 / 12),
    ("standard set", "rezolus", 1),
]


class Round:
    """All contenders, started one after the other."""

    def __init__(self, given: argparse.Namespace, directory: Path) -> None:
        self.given, self.directory = given, directory
        self.whole = given.samples + max(20, 3000 // given.interval_ms)
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.scrapers: list[Scraper] = []

    def start(self) -> None:
        """Start each at its own place in the interval: right behind another it would find warm caches."""
        steps: list[Callable[[], None]] = [self.recorder("procfs", "--without", "ebpf"), self.pread]
        steps.append(self.recorder("standard set"))
        if self.given.interval_ms == 1000 and SADC.exists():
            steps += [self.sadc("sadc", []), self.sadc("sadc XALL", ["-S", "XALL"])]
        if self.given.interval_ms == 1000 and NODE_EXPORTER:
            steps.append(self.node_exporter)
        if self.given.rezolus:
            steps.append(self.rezolus)
        for step in steps:
            time.sleep(self.given.interval_ms / 1000 / len(steps))
            step()

    def recorder(self, name: str, *options: str) -> Callable[[], None]:
        """Give the recorder with these options."""

        def begin() -> None:
            run = self.directory / name.replace(" ", "-")
            interval = self.given.interval_ms
            times = ("--interval", f"{interval}ms", "--duration", f"{self.whole * interval}ms")
            self.processes[name] = recorder(run, *times, *options, "--process", f"server={os.getpid()}")

        return begin

    def pread(self) -> None:
        """Start the yardstick on the recorder's files."""
        files = open_files(self.processes["procfs"].pid)
        words = [RELEASE / "examples/pread_loop", self.given.interval_ms, self.whole, *files]
        self.processes["pread"] = start(words)

    def sadc(self, name: str, options: list[str]) -> Callable[[], None]:
        """Give sadc with these options."""
        file = self.directory / f"{name}.sa"

        def begin() -> None:
            self.processes[name] = start([SADC, *options, "1", self.whole, file])

        return begin

    def node_exporter(self) -> None:
        """Start Debian's exporter with its default collectors, and a scraper."""
        address = f"127.0.0.1:{EXPORTER_PORT}"
        self.processes["node_exporter"] = start([NODE_EXPORTER, f"--web.listen-address={address}"])
        self.scrape(f"http://{address}/metrics")

    def rezolus(self) -> None:
        """Start the agent with its own default configuration, bound to loopback, and its recorder."""
        default = self.given.rezolus_config.read_text()
        config = self.directory / "rezolus.toml"
        config.write_text(default.replace("0.0.0.0:", "127.0.0.1:"))
        self.processes["rezolus agent"] = start([self.given.rezolus, config])
        target = self.directory / "rezolus.parquet"
        url = f"http://127.0.0.1:{REZOLUS_PORT}"
        wait_for("rezolus", lambda: accepts(REZOLUS_PORT))
        words = [self.given.rezolus, "record", "--interval", "1s", url, target]
        self.processes["rezolus record"] = start(words)

    def scrape(self, url: str) -> None:
        """Read a page once a second."""
        self.scrapers.append(Scraper(url))
        self.scrapers[-1].start()

    def measure(self) -> dict[str, tuple[float, float]]:
        """Microseconds of CPU per sample of each, and its peak memory in MB."""
        with running(self.processes):
            self.start()
            time.sleep(1.5 * self.given.interval_ms / 1000 + 1.3)
            result = cost_per_sample(self.processes, self.given.samples, self.given.interval_ms / 1000)
            for scraper in self.scrapers:
                scraper.end()
            return result


def sizes(samples: int) -> tuple[float, float]:
    """Bytes per sample of a finished procfs recording and of sadc's file, both at 1 Hz."""
    with tempfile.TemporaryDirectory(dir=ROOT / "target") as directory:
        run, other = Path(directory) / "run", Path(directory) / "other.sa"
        sadc = start([SADC, "-S", "XALL", "1", samples, other])
        printed(COLLECT, "record", "--out", run, "--duration", f"{samples - 1}s", "--without", "ebpf")
        sadc.wait()
        whole = sum(path.stat().st_size for path in run.rglob("*") if path.is_file())
        return whole / samples, other.stat().st_size / samples


def report(rounds: list[dict[str, tuple[float, float]]]) -> bool:
    """Print what each took and the ratios; true if a bar is missed."""
    missed = False
    for name in rounds[0]:
        values = [result[name][0] for result in rounds if name in result]
        listed = " ".join(f"{value:.0f}" for value in values)
        memory = max(result[name][1] for result in rounds if name in result)
        print(f"{name:15} {statistics.median(values):8.1f} us/sample  {memory:6.1f} MB   {listed}")
    for result in rounds:
        if "rezolus agent" in result:
            result["rezolus"] = (result["rezolus agent"][0] + result["rezolus record"][0], 0)
    for name, other, bar in BARS:
        both = [result for result in rounds if name in result and other in result]
        if not both:
            continue
        ratios = sorted(result[name][0] / result[other][0] for result in both)
        missed |= statistics.median(ratios) > bar
        spread = f"{ratios[0]:.3f} to {ratios[-1]:.3f} over {len(ratios)} rounds"
        print(f"{name} / {other}: {statistics.median(ratios):.3f} ({spread}; bar {bar:.3g})")
    resident = max(result["standard set"][1] for result in rounds)
    print(f"standard set resident: {resident:.1f} MB at most (bar 15)")
    return missed or resident > 15


def main() -> int:
    """Print the ratios; exit status 1 when a bar is missed."""
    parser = described(__doc__)
    parser.add_argument("--samples", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--interval-ms", type=int, default=1000, help="other than 1000: compared with pread only"
    )
    parser.add_argument("--rezolus", type=Path, help="its binary (cargo install rezolus)")
    parser.add_argument("--rezolus-config", type=Path, help="the agent's configuration file")
    given = parser.parse_args()
    rounds = []
    for _ in range(given.rounds):
        with tempfile.TemporaryDirectory(dir=ROOT / "target") as directory:
            rounds.append(Round(given, Path(directory)).measure())
    missed = report(rounds)
    if given.interval_ms == 1000 and SADC.exists():
        ours, theirs = sizes(max(given.samples, 60))
        missed |= ours / theirs > 0.25
        print(f"bytes per sample: {ours:.0f} of {theirs:.0f}, {ours / theirs:.3f} (bar 0.25)")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
