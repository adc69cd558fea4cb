"""Measures how far apart two equal sides are, when they alternate and when they run one after the other.

    .venv/bin/python tests/benches/equal_sides.py [--pairs 10] RUNS_DIR

Each pair is two executions of the campaign `aa` in random order: three starts of sides that alternate, and
its scale `sequential`; about five minutes each. Printed are, for each design and row, the standard deviation
of the log ratio over the executions, the half-width that they stated (median), and how many of their
intervals contained 1. The executions stay in RUNS_DIR; a later call with the directory adds its pairs.
"""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
import time
from pathlib import Path
from statistics import median, stdev
from typing import Any

from processes import described
from programs import ROOT, printed

DESIGNS = {"alternate": ["starts=3"], "sequential": ["campaign_scale=sequential"]}
ROWS = {"statements": "client statements", "server_cpu_per_operation": "server CPU per operation"}


def execute(design: str, runs: Path) -> None:
    """Run the campaign once; its output is kept next to its runs."""
    runs.mkdir(parents=True, exist_ok=True)
    settings = ["campaign=aa", "campaign_new=true", f"campaign_runs_dir={runs}", *DESIGNS[design]]
    begin = time.monotonic()
    with (runs / "output").open("a") as output:
        words = [str(ROOT / "characterize"), *(word for each in settings for word in ("-e", each))]
        subprocess.run(words, stdout=output, stderr=subprocess.STDOUT, check=True)
    print(f"{design}: {time.monotonic() - begin:.0f} s", file=sys.stderr)


def read(execution: Path) -> dict[str, Any]:
    """Read the comparison of an execution: for each row of ROWS, what its second side is to the first."""
    text = printed(ROOT / ".venv/bin/loadprint", "compare", execution, "--format", "json", "--all")
    rows = (row for group in json.loads(text)["groups"] for row in group["rows"])
    return {row["key"]: row["versus"][1] for row in rows if row["key"] in ROWS}


def main() -> None:
    """Run the pairs and print the table."""
    parser = described(__doc__)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("runs", type=Path, metavar="RUNS_DIR")
    arguments = parser.parse_args()
    runs = arguments.runs.absolute()
    for _ in range(arguments.pairs):
        for design in random.sample(list(DESIGNS), len(DESIGNS)):
            execute(design, runs / design)
    for design in DESIGNS:
        found = [read(each) for each in sorted((runs / design / "aa").glob("2*"))]
        for key, label in ROWS.items():
            each = [one[key] for one in found]
            half_widths = [math.log(one["high"] / one["low"]) / 2 for one in each]
            print(
                f"{design:10}  {label:24}  sd {stdev(math.log(one['centre']) for one in each):6.1%}  "
                f"half-width {median(half_widths):6.1%}  "
                f"{sum(one['low'] <= 1 <= one['high'] for one in each)} of {len(each)} intervals contain 1"
            )


if __name__ == "__main__":
    main()
