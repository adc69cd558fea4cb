"""How a sample's cost grows with the host: synthetic hosts up to 256 CPUs, 64 disks, 2000 interrupt lines.

    .venv/bin/python tests/benches/growth.py [--samples 20] [--rounds 3]

The hosts of fake_host.py are on /dev/shm, their counters rise once a second. Compared with the
recorder: a bare pread of its files,
and node_exporter (with its collectors of the same sources) on the same root, both at
once with it. Files in memory cost less to read than those the kernel makes on the spot: what grows here is
parsing and encoding, which is ours. `record` gets the roots, so it needs no root user.
"""

from __future__ import annotations

import statistics
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from fake_host import FakeHost
from processes import RELEASE, Scraper, cost_per_sample, described, open_files, recorder, running, start
from programs import ROOT
from recorder_cost import EXPORTER_PORT, NODE_EXPORTER

HOSTS = [(2, 1, 30), (32, 8, 200), (256, 64, 2000)]
COLLECTORS = [
    *("stat", "cpu", "diskstats", "netdev", "netstat", "sockstat"),
    *("meminfo", "vmstat", "pressure", "interrupts", "softirqs"),
]


def exporter(host: FakeHost) -> list[object]:
    """node_exporter with the collectors of the recorder's sources, as far as this version has them."""
    words = [str(NODE_EXPORTER), "--help"]
    help_text = subprocess.run(words, capture_output=True, text=True, check=False).stderr
    wanted = [f"--collector.{name}" for name in COLLECTORS if f"--collector.{name}" in help_text]
    roots = [f"--path.procfs={host.proc}", f"--path.sysfs={host.sys}"]
    listen = f"--web.listen-address=127.0.0.1:{EXPORTER_PORT}"
    return [NODE_EXPORTER, "--collector.disable-defaults", *wanted, *roots, listen]


def measure(host: FakeHost, samples: int, directory: Path) -> dict[str, tuple[float, float]]:
    """Microseconds of CPU per sample, and peak memory in MB, of all at once."""
    run = directory / "run"
    roots = ["--proc-root", host.proc, "--sys-root", host.sys]
    ended = threading.Event()

    def live() -> None:
        while not ended.wait(1):
            host.advance()

    with running({"recorder": recorder(run, "--duration", f"{samples + 8}s", *roots)}) as processes:
        time.sleep(0.25)
        clock = threading.Thread(target=live)
        clock.start()
        files = open_files(processes["recorder"].pid, str(host.proc))
        processes["pread"] = start([RELEASE / "examples/pread_loop", 1000, samples + 10, *files])
        scraper = Scraper(f"http://127.0.0.1:{EXPORTER_PORT}/metrics")
        if NODE_EXPORTER:
            processes["node_exporter"] = start(exporter(host))
            scraper.start()
        time.sleep(3)
        result = cost_per_sample(processes, samples)
        if NODE_EXPORTER:
            scraper.end()
        processes["recorder"].wait()
        ended.set()
        clock.join()
    size = sum(path.stat().st_size for path in run.rglob("*") if path.is_file())
    return result | {"bytes": (size / (samples + 9), 0.0)}


def main() -> None:
    """Print a line per host."""
    parser = described(__doc__)
    parser.add_argument("--samples", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    print("| CPUs | disks | lines | µs/sample | / pread | / node_exporter | memory | bytes per sample |")
    print("|---|---|---|---|---|---|---|---|")
    for cpus, disks, lines in HOSTS:
        rounds = []
        for _ in range(given.rounds):
            with (
                tempfile.TemporaryDirectory(dir="/dev/shm") as place,
                tempfile.TemporaryDirectory(dir=ROOT / "target") as directory,
            ):
                host = FakeHost(Path(place), cpus=cpus, disks=disks, lines=lines)
                rounds.append(measure(host, given.samples, Path(directory)))
        ours = statistics.median(result["recorder"][0] for result in rounds)
        memory = max(result["recorder"][1] for result in rounds)
        size = statistics.median(result["bytes"][0] for result in rounds)
        ratios = [ratio(rounds, other) for other in ("pread", "node_exporter")]
        print(
            f"| {cpus} | {disks} | {lines} | {ours:,.0f} | {ratios[0]} | {ratios[1]} "
            f"| {memory:.1f} MB | {size:,.0f} |",
            flush=True,
        )


def ratio(rounds: list[dict[str, tuple[float, float]]], other: str) -> str:
    """Our cost as a part of another's: median and range over the rounds."""
    result = sorted(one["recorder"][0] / one[other][0] for one in rounds if other in one)
    if not result:
        return "not there"
    return f"{statistics.median(result):.3f} ({result[0]:.3f}–{result[-1]:.3f})"


if __name__ == "__main__":
    main()
