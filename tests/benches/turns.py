"""Compares sides that alternate with a side that runs freely, row by row: what freezing changes.

    .venv/bin/python tests/benches/turns.py [--workload NAME] [--rounds N] [SLICE+GUARD ...]

In each round the campaign runs once without turns and once for each slice and guard (seconds, such as
1.7+0.25), all sides equal, in random order. Printed are the ratios to the free run of the same round, with
Student's t interval over the rounds. Nothing is asserted.
"""

from __future__ import annotations

import json
import math
import random
import tempfile
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from processes import described
from programs import LOADPRINT, ROOT, ended, printed
from scipy.special import stdtrit

ROWS = (
    "operations",
    "server_cpu_per_operation",
    "disk_writes_per_operation",
    "disk_write_kb_per_operation",
    "disk_flushes_per_operation",
    "fsyncs_per_operation",
    "pages_flushed_per_operation",
    "redo_per_operation",
    "checkpoint_age",
    "dirty_pages",
)
FREE = "free"


def campaign(name: str, workload: str, seconds: float) -> dict[str, Any]:
    """The campaign of one setting: `free`, or slice and guard."""
    inserts = workload == "arm_insert"
    options = (
        {"scenario": "ctx5"} if inserts else {"tables": 4, "table-size": 100_000, "rand-type": "uniform"}
    )
    data = {} if inserts else {"options": {"tables": 4, "table-size": 100_000}}
    side = {"workload": workload, "data": "data", "threads": 4, "options": options}
    design: dict[str, Any] = {
        "design": "sequential",
        "repeats": 1,
        "phases": {"warmup": 10, "measure": seconds},
    }
    if name != FREE:
        length, guard = map(float, name.split("+"))
        slices = {"length": length, "guard": guard, "seconds": seconds}
        design = {"design": "alternate", "starts": 1, "slices": slices, "phases": {"warmup": 10}}
    return {
        "name": f"turns-{name.replace('+', '-')}",
        "title": "the effect of freezing",
        "reference": "a",
        **design,
        "warm": {"promise": "ten seconds"},
        "server": {"buffer_pool_size": "512M", "redo_capacity": "128M", "performance_schema": False},
        "data": {"data": {"workload": workload, "size": "800M", **data}},
        "sides": {"a": side, "b": side} if name != FREE else {"a": side},
    }


def values(name: str, workload: str, seconds: float, place: Path) -> dict[str, float]:
    """Run a setting once; the logarithm of each row, the mean of its sides."""
    document = campaign(name, workload, seconds)
    file = place / "campaign.yml"
    file.write_text(json.dumps(document), encoding="utf-8")
    settings = (f"campaign_file={file}", f"campaign_runs_dir={place}", "campaign_new=true")
    ended([ROOT / "characterize", *(word for each in settings for word in ("-e", each))], range(256))
    runs = sorted((place / document["name"] / "latest").glob("b*"))
    # a table has two sides
    operands = [str(run) for run in (runs * 2)[:2]]
    table = json.loads(printed(LOADPRINT, "compare", *operands, "--all", "--format", "json"))
    rows = {row["key"]: row["cells"] for group in table["groups"] for row in group["rows"]}
    found = {key: [cell["value"] for cell in rows[key]] for key in ROWS if key in rows}
    return {key: fmean(map(math.log, cells)) for key, cells in found.items() if all(cells)}


def interval(ratios: list[float]) -> str:
    """The geometric mean of ratios (as logarithms), and half the width of its interval in percent."""
    if len(ratios) < 2:
        return f"{math.exp(fmean(ratios)):.2f}"
    half = stdtrit(len(ratios) - 1, 0.975) * stdev(ratios) / math.sqrt(len(ratios))
    return f"{math.exp(fmean(ratios)):.2f} ±{100 * math.expm1(half):.0f} %"


def main() -> None:
    """Run the rounds and print the table after each."""
    parser = described(__doc__)
    parser.add_argument("settings", nargs="*", default=["1+0.2", "1.7+0.25", "3.45+0.5"])
    parser.add_argument("--workload", default="oltp_write_only")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=30)
    given = parser.parse_args()
    ratios: dict[tuple[str, str], list[float]] = {}
    with tempfile.TemporaryDirectory(dir="/var/tmp") as scratch:
        for number in range(given.rounds):
            names = [FREE, *given.settings]
            random.shuffle(names)
            taken = {name: values(name, given.workload, given.seconds, Path(scratch)) for name in names}
            for name in given.settings:
                for key in taken[name].keys() & taken[FREE].keys():
                    ratios.setdefault((key, name), []).append(taken[name][key] - taken[FREE][key])
            print(f"{given.workload}, {number + 1} of {given.rounds} rounds: alternating ÷ free")
            print(f"{'':30}", *(f"{name:>16}" for name in given.settings))
            for key in ROWS:
                cells = [
                    interval(each) if (each := ratios.get((key, name))) else "–" for name in given.settings
                ]
                print(f"{key:30}", *(f"{cell:>16}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
