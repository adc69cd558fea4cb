"""How well does the canary repeat itself here? Pairs of canaries with nothing between them, at rest.

    .venv/bin/python tests/benches/canary_at_rest.py [--pairs 30] [--cpus 0] [--data-dir DIR]

Prints, for each part, the distribution of |after/before - 1| with the statistic of `loadprint compare`, and
how many pairs would have been called disturbed at 3 %. The first pair is not counted.
"""

from __future__ import annotations

import argparse
from statistics import median
from typing import Any

from loadprint.judging.canary import LIMIT, MEDIANS, PARTS, CanaryLine, slice_time
from processes import described
from programs import COLLECT, printed


def once(arguments: argparse.Namespace) -> dict[str, Any]:
    """Run one canary."""
    words = [COLLECT, "canary", "--format", "json", "--data-dir", arguments.data_dir]
    words += ["--cpus", arguments.cpus] if arguments.cpus else []
    line = CanaryLine.model_validate_json(printed(*words))
    return {part.name: slice_time(part) for part in line.parts}


def main() -> None:
    """Print the table."""
    parser = described(__doc__)
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--cpus", help="as of `loadprint-collect canary`")
    parser.add_argument("--data-dir", default=".")
    arguments = parser.parse_args()
    times = [once(arguments) for _ in range(2 * arguments.pairs + 2)][2:]
    print(
        f"{arguments.pairs} pairs   slice     median     p90     max   over {LIMIT:.0%}   limit that follows"
    )
    for part in PARTS:
        taken = [time[part] for time in times if time.get(part)]
        moved = sorted(abs(after / before - 1) for before, after in zip(taken[::2], taken[1::2], strict=True))
        if not moved:
            continue
        p90 = moved[int(0.9 * len(moved))]
        over = sum(change > LIMIT for change in moved)
        limit = max(LIMIT, MEDIANS * median(moved))
        print(
            f"{part:8} {median(taken) / 1e6:9.3f} ms {median(moved):8.2%} {p90:7.2%} {moved[-1]:7.2%} "
            f"{over:6} of {len(moved)}   {limit:8.1%}"
        )


if __name__ == "__main__":
    main()
