"""How many ticks the recorder misses at 1, 10 and 100 Hz while every CPU is kept busy by others.

    .venv/bin/python tests/benches/missed_ticks.py [--seconds 30] [--busy 2]

`--busy` processes for each CPU spin all the time at normal priority, and the recorder has to get in between.
A missed tick is one whose time was over before the recorder came to it; it is counted in the recording and
never caught up. The delay of the others is printed too (start less intended time).
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from pathlib import Path

from processes import described, running, start
from programs import COLLECT, ROOT
from pyarrow import parquet

BAR = 0.01


def record(interval_ms: int, seconds: int, directory: Path) -> tuple[int, int, list[float]]:
    """Ticks taken, ticks missed, and how late each was read (ms)."""
    run = directory / f"run-{interval_ms}"
    words = [COLLECT, "record", "--out", run, "--interval", f"{interval_ms}ms", "--duration", f"{seconds}s"]
    if start([*words, "--process", f"server={os.getpid()}"]).wait() != 0:
        raise SystemExit("the recorder failed; run it by hand to see why")
    first: dict[int, tuple[int, int]] = {}
    missed = 0
    table = parquet.read_table(
        run / "server/ticks.parquet", columns=["tick", "intended_ns", "start_ns", "missed"]
    )
    for row in table.to_pylist():
        begun = first.get(row["tick"], (0, row["start_ns"]))[1]
        first[row["tick"]] = (row["intended_ns"], min(begun, row["start_ns"]))
        missed += row["missed"]
    late = [(begun - intended) / 1e6 for intended, begun in first.values()]
    return len(first), missed, late


def main() -> int:
    """Print the counts; exit status 1 when the bar is missed."""
    parser = described(__doc__)
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--busy", type=int, default=2, help="spinning processes for each CPU")
    given = parser.parse_args()
    count = given.busy * (os.cpu_count() or 1)
    missed_bar = False
    spinners = {str(n): start([sys.executable, "-c", "while True: pass"]) for n in range(count)}
    with running(spinners), tempfile.TemporaryDirectory(dir=ROOT / "target") as directory:
        for interval_ms in (1000, 100, 10):
            ticks, missed, late = record(interval_ms, given.seconds, Path(directory))
            share = missed / (ticks + missed)
            missed_bar |= share > BAR
            print(
                f"{1000 / interval_ms:4.0f} Hz  {ticks:5} ticks  {missed:4} missed  {share:6.2%}   "
                f"late: median {statistics.median(late):.2f} ms, max {max(late):.1f} ms"
            )
    print(f"bar: {BAR:.0%} missed, with {count} spinning processes on {os.cpu_count()} CPUs")
    return int(missed_bar)


if __name__ == "__main__":
    sys.exit(main())
