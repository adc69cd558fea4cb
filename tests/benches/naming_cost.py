"""What names of functions cost: `profile` and `ebpf_statements` of two recorders under an OLTP load.

    .venv/bin/python tests/benches/naming_cost.py --against PATH [--rounds 8] [--seconds 15]

Starts a private MySQL server (tests/with-server) and oltp_read_write on it. Each round has one recording with
either build, in alternating order: CPU time of the recorder and all processes that it has started and waited
for, its end after the last tick, and the largest resident memory of one of them (getrusage(2)).
Needs root and `cargo build --release`.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import NamedTuple

from probe_cost import quartiles
from processes import described, saturated, targets, timed, with_server
from programs import COLLECT, ROOT

NAMED = "profile,ebpf_statements"


class Cost(NamedTuple):
    """Of one recording."""

    cpu_ms: float
    end_ms: float
    memory_mb: float


def recording(program: Path, seconds: int) -> Cost:
    """Record once."""
    with tempfile.TemporaryDirectory(dir=ROOT / "target") as directory:
        words = [program, "record", "--out", Path(directory) / "run", "--probes", NAMED, *targets()]
        used = timed([*words, "--duration", f"{seconds}s"])
    return Cost(1e3 * used.cpu_s, 1e3 * (used.wall_s - seconds), used.peak_mb)


def main() -> None:
    """Print the table."""
    parser = described(__doc__)
    parser.add_argument(
        "--against", type=Path, required=True, metavar="PATH", help="another loadprint-collect"
    )
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seconds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=4)
    given = parser.parse_args()
    with_server()
    these: list[Cost] = []
    those: list[Cost] = []
    with saturated(given.threads):
        for number in range(given.rounds):
            builds = [(COLLECT, these), (given.against, those)]
            for program, costs in builds if number % 2 else reversed(builds):
                costs.append(recording(program, given.seconds))
    print(f"| {given.seconds} s, {given.rounds} rounds | this build | the other | ratio (quartiles) |")
    print("|---|---|---|---|")
    for name, this, that in zip(
        Cost._fields, zip(*these, strict=True), zip(*those, strict=True), strict=True
    ):
        middles = f"{statistics.median(this):.1f} | {statistics.median(that):.1f}"
        print(f"| {name} | {middles} | {quartiles([a / b for a, b in zip(this, that, strict=True)])} |")


if __name__ == "__main__":
    main()
