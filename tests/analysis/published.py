"""Executions that reproduce published figures."""

from __future__ import annotations

import csv
from pathlib import Path

from loadprint.commands.study.computed import PUBLISHED
from recordings import Host, make_matrix

SCENARIOS = {
    "simple": "simple",
    "parentcorr": "parent",
    "metrics": "metrics",
    "context_1": "ctx1",
    "context_5": "ctx5",
    "context_10": "ctx10",
    "context_20": "ctx20",
}


def arm_cells() -> dict[tuple[int, str], float]:
    """Transactions per second of the MyARM study's table 1, by (connections, scenario)."""
    rows = csv.DictReader((PUBLISHED / "myarm_average_tps.csv").read_text().splitlines())
    return {
        (int(row["connections"]), scenario): float(row[column])
        for row in rows
        for column, scenario in SCENARIOS.items()
    }


def inserts(path: Path, rates: dict[tuple[int, str], float], repeats: int = 1) -> Path:
    host = Host(operation="ARM transaction", workload="arm_insert")
    repeated = {
        (scenario, threads): [round(rate) + k for k in range(repeats)]
        for (threads, scenario), rate in rates.items()
    }
    return make_matrix(path, repeated, "scenario", "insert-scaling", of="insert", base=host)
