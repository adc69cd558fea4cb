"""Times commands of the analysis on large data, start-up included, and prints the bars; asserts nothing.

    .venv/bin/python tests/benches/analysis_speed.py [--keep DIR] compare | report | fleet RUN

`compare` and `report`: one-hour recordings of a 64-CPU host at 1 Hz (large_runs.py), two sides; `report` also
of three repeats a side. `fleet`: 10,000 runs of 2500 machines, which are one real recording's rows over and
over, with other values.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

import large_runs
from fleets import make_fleet
from processes import described, timed
from programs import ROOT


def measure(times: int, bar: str, *words: object) -> None:
    """Run a command some times and print what it took."""
    used = [timed([ROOT / ".venv/bin/loadprint", *words]) for _ in range(times)]
    walls = [usage.wall_s for usage in used]
    median, cpu = (statistics.median(values) for values in (walls, [usage.cpu_s for usage in used]))
    print(f"wall   median {median:.2f} s (min {min(walls):.2f}, max {max(walls):.2f}); bar {bar}")
    print(f"CPU    median {cpu:.2f} s; memory max {max(usage.peak_mb for usage in used):.0f} MB")


def size_mb(files: list[Path]) -> float:
    """Size of files together."""
    return sum(file.stat().st_size for file in files if file.is_file()) / 1e6


def main() -> None:
    """Make the data and time the command."""
    parser = described(__doc__)
    parser.add_argument("command", choices=("compare", "report", "fleet"))
    parser.add_argument("run", type=Path, nargs="?", help="of `fleet`: a run to make the others from")
    parser.add_argument("--cpus", type=int, default=64)
    parser.add_argument("--seconds", type=int, default=3600)
    parser.add_argument("--runs", type=int, default=10_000, help="of `fleet`")
    parser.add_argument("--keep", type=Path, help="make the data here, or use those that are here")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        place = given.keep or Path(scratch) / "data"
        if given.command == "compare":
            runs = [
                large_runs.make(place / name, given.cpus, given.seconds, seed)
                for seed, name in enumerate(("a", "b"))
            ]
            size = size_mb([file for run in runs for file in run.rglob("*")])
            print(f"two recordings of {given.seconds} s, {given.cpus} CPUs, {size:.1f} MB together")
            measure(5, "2 s, 500 MB", "compare", *runs)
        elif given.command == "report":
            for repeats in (1, 3):
                execution = large_runs.sides(place, given.cpus, given.seconds, repeats)
                print(f"two sides, {repeats} repeat{'s' if repeats > 1 else ''} each, {given.seconds} s")
                measure(3, "5 s of one repeat", "report", execution, "-o", place / "page.html")
                print(f"page   {size_mb([place / 'page.html']):.2f} MB; bar 3 MB")
        else:
            if not place.exists():
                make_fleet(place, given.run, given.runs)
            files = list(place.rglob("*.parquet"))
            print(f"{given.runs} runs in {len(files)} files, {size_mb(files):.1f} MB")
            measure(5, "5 s", "fleet", place, "--everything")


if __name__ == "__main__":
    main()
