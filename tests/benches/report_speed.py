"""Times `loadprint report` on pairs of one-hour recordings of a 64-CPU host at 1 Hz, start-up included.

Prints wall seconds, CPU seconds, peak memory and the size of the page, for one and for three repeats a side,
with the bars (5 s for the pair, 3 MB for three repeats); asserts nothing.
    .venv/bin/python tests/benches/report_speed.py [--cpus 64] [--seconds 3600] [--keep DIR]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "analysis"))
import compare_speed
import recordings

COMMAND = Path(sys.executable).parent / "loadprint"
BARS = (5.0, 3.0)
RUNS = 3
KEPT = Path(__file__).parent.parent / "recordings" / "v1" / "oltp" / "load" / "latency.hlog"


def main() -> None:
    """Make the recordings and time the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cpus", type=int, default=64)
    parser.add_argument("--seconds", type=int, default=3600)
    parser.add_argument("--keep", type=Path, help="make the recordings here, or use those that are here")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        parent = given.keep or Path(scratch)
        for repeats in (1, 3):
            words = sides(parent, given.cpus, given.seconds, repeats)
            measure_page(parent / "page.html", words, repeats, given.seconds)


def measure_page(page: Path, words: list[str], repeats: int, seconds: int) -> None:
    """Run the command a few times and print what it took."""
    measured = [compare_speed.timed([str(COMMAND), "report", *words, "-o", str(page)]) for _ in range(RUNS)]
    walls, cpus, peaks = zip(*measured, strict=True)
    print(f"two sides, {repeats} repeat{'s' if repeats > 1 else ''} each, {seconds} s")
    print(
        f"wall   median {statistics.median(walls):.2f} s (min {min(walls):.2f}); bar of the pair {BARS[0]} s"
    )
    print(f"CPU    median {statistics.median(cpus):.2f} s; memory max {max(peaks):.0f} MB")
    print(f"page   {page.stat().st_size / 1e6:.2f} MB; bar {BARS[1]} MB")


def sides(parent: Path, cpus: int, seconds: int, repeats: int) -> list[str]:
    """An execution of two sides; recordings are those of compare_speed with MySQL, eBPF and latencies."""
    execution = parent / f"x{repeats}"
    if not execution.exists():
        execution.mkdir(parents=True)
        runs = []
        for number in range(2 * repeats):
            side, repeat = ("a", "b")[number % 2], number // 2 + 1
            name = f"b{repeat}-{side}-r{repeat}"
            run = compare_speed.make(execution / name, cpus, seconds, number)
            extend(run, seconds)
            described = json.loads((run / "run.json").read_text())
            recordings.write_json(
                run / "run.json", described | {"side": side, "block": repeat, "repeat": repeat}
            )
            recordings.write_manifest(run)
            runs.append({"id": name, "block": repeat, "side": side, "repeat": repeat})
        known: dict[str, Any] = {
            "format_version": 1,
            "campaign": {"name": "hour"},
            "reference": "a",
            "seed": 1,
        }
        listed = {"sides": {"a": {"label": "A"}, "b": {"label": "B"}}, "runs": runs}
        recordings.write_json(execution / "execution.json", known | listed)
    return [str(execution)]


def extend(run: Path, seconds: int) -> None:
    """Give a run a latency log of an hour: a kept one's intervals over and over."""
    lines = KEPT.read_text().splitlines()
    intervals = [line for line in lines if line.startswith("Tag=")]
    longer = [line for line in lines if not line.startswith("Tag=")]
    longer += [intervals[second % len(intervals)] for second in range(seconds)]
    (run / "load" / "latency.hlog").write_text("\n".join(longer) + "\n")


if __name__ == "__main__":
    main()
