"""The command `shape`: an execution of `insert-scaling` against the published table of the ARM insert study.

It asks whether the shape is the same, not the rates. Only pairs of cells that the published table separates
by more than a tenth are judged, and only up to as many connections as this host has CPUs; the rest is shown.
"""

from __future__ import annotations

import csv
import math
from importlib import resources
from itertools import combinations
from pathlib import Path

import numpy as np

from loadprint import numbers
from loadprint.commands.sweep import cells, sweep_text
from loadprint.commands.sweep.cells import Swept
from loadprint.errors import InputError
from loadprint.rendering.pivot import Pivot, Report
from loadprint.statistics.rank import rank_correlation

TABLE = "myarm_average_tps.csv"
SCENARIOS = {
    "simple": "simple",
    "parentcorr": "parent",
    "metrics": "metrics",
    "context_1": "ctx1",
    "context_5": "ctx5",
    "context_10": "ctx10",
    "context_20": "ctx20",
}
CONTEXTS = {"ctx1": 1, "ctx5": 5, "ctx10": 10, "ctx20": 20}
# at the best connection count of each, the study's order; > where it is strict
ORDER = (
    ("simple", ">=", "parent"),
    ("parent", ">", "ctx1"),
    ("ctx1", ">", "metrics"),
    ("metrics", ">=", "ctx5"),
    ("ctx5", ">", "ctx10"),
    ("ctx10", ">", "ctx20"),
)
APART = 1.10
MOST_LISTED = 12
Table = dict[tuple[int, str], float]


def shape(path: Path) -> Report:
    """Report how the shape agrees. Raises InputError where the execution has no such scenarios."""
    swept = cells.read(path)
    theirs, ours = published(), measured(swept)
    common = [place for place in theirs if place in ours]
    if len(common) < 2:
        raise InputError(
            path,
            "has no ARM scenarios at the published connection counts",
            "run ./characterize -e campaign=insert-scaling",
        )
    cpus = sweep_text.host_cpus(swept)
    judged = [place for place in common if cpus is None or place[0] <= cpus]
    sentences = [
        *_agreement(theirs, ours, judged, f"up to {cpus} connections, as many as this host has CPUs"),
        *_agreement(theirs, ours, common, "all cells, shown only"),
        *_order(theirs, ours, common),
        *_speed_ups(theirs, ours, cpus),
        *_cost(theirs, ours),
    ]
    pivots = (
        _relative("published", "Published, relative to its largest cell", theirs, common),
        _relative("measured", "Measured, relative to its largest cell", ours, common),
    )
    facts = (
        *sweep_text.facts(swept),
        ("published", "ARM insert study, means of ten builds, package data " + TABLE),
    )
    return Report(
        f"Shape of {sweep_text.title(swept)}", facts, pivots, tuple(sentences), sweep_text.warnings(swept)
    )


def published() -> Table:
    """Transactions a second by (connections, scenario)."""
    text = (resources.files("loadprint.commands.sweep") / "published" / TABLE).read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines())
    return {
        (int(row["connections"]), ours): float(row[theirs])
        for row in rows
        for theirs, ours in SCENARIOS.items()
    }


def measured(swept: Swept) -> Table:
    """Operations a second of the execution's ARM cells, by (connections, scenario)."""
    found: Table = {}
    for cell in swept.cells:
        scenario = (cell.plan.get("cell") or {}).get(
            "scenario", (cell.plan.get("options") or {}).get("scenario")
        )
        rate = cell.mean(cells.operations)
        if rate is not None and scenario in SCENARIOS.values():
            found[int(cell.plan["threads"]), str(scenario)] = rate
    return found


def linear_cost(table: Table, connections: int) -> tuple[float, float, float] | None:
    """Microseconds a transaction against context values: intercept, slope, R²; None without all scenarios."""
    places = [(connections, scenario) for scenario in CONTEXTS]
    if any(place not in table for place in places):
        return None
    x = np.asarray(list(CONTEXTS.values()), dtype=float)
    y = np.asarray([1e6 / table[place] for place in places])
    slope, intercept = np.polyfit(x, y, 1)
    spread = float(((y - y.mean()) ** 2).sum())
    left = float(((y - intercept - slope * x) ** 2).sum())
    return float(intercept), float(slope), 1 - left / spread


def _agreement(theirs: Table, ours: Table, places: list[tuple[int, str]], where: str) -> list[str]:
    pairs = [
        (a, b)
        for a, b in combinations(places, 2)
        if max(theirs[a], theirs[b]) > APART * min(theirs[a], theirs[b])
    ]
    if not pairs:
        return [f"Pairs, {where}: none that the published table separates by more than 10 %."]
    against = [(a, b) for a, b in pairs if (theirs[a] > theirs[b]) != (ours[a] > ours[b])]
    correlation = rank_correlation([theirs[place] for place in places], [ours[place] for place in places])
    told = "" if correlation is None else f"; rank correlation of {len(places)} cells {correlation:.3f}"
    said = [f"Pairs, {where}: {len(pairs) - len(against)} of {len(pairs)} agree{told}."]
    if against:
        listed = "; ".join(
            f"{_named(a)} / {_named(b)} published {numbers.ratio(theirs[a] / theirs[b])}, "
            f"measured {numbers.ratio(ours[a] / ours[b])}"
            for a, b in against[:MOST_LISTED]
        )
        more = f"; and {len(against) - MOST_LISTED} more" if len(against) > MOST_LISTED else ""
        said.append(f"Disagree: {listed}{more}.")
    return said


def _named(place: tuple[int, str]) -> str:
    return f"{place[1]}-t{place[0]}"


def _peaks(table: Table, places: list[tuple[int, str]]) -> dict[str, float]:
    peaks: dict[str, float] = {}
    for connections, scenario in places:
        peaks[scenario] = max(peaks.get(scenario, 0.0), table[connections, scenario])
    return peaks


def _order(theirs: Table, ours: Table, places: list[tuple[int, str]]) -> list[str]:
    peaks, printed = _peaks(ours, places), _peaks(theirs, places)
    said = []
    for upper, relation, lower in ORDER:
        if upper in peaks and lower in peaks:
            ratio = peaks[upper] / peaks[lower]
            holds = ratio >= 1 if relation == ">=" else ratio > 1
            said.append(
                f"{upper} {relation} {lower} {'holds' if holds else 'does not hold'} "
                f"({numbers.ratio(ratio)}, published {numbers.ratio(printed[upper] / printed[lower])})"
            )
    return [f"Order at the best connection count: {'; '.join(said)}."] if said else []


def _speed_ups(theirs: Table, ours: Table, cpus: int | None) -> list[str]:
    said = []
    for scenario in dict.fromkeys(scenario for _, scenario in ours):
        if (1, scenario) in ours:
            own = max(rate for (_, each), rate in ours.items() if each == scenario) / ours[1, scenario]
            printed = (
                max(rate for (_, each), rate in theirs.items() if each == scenario) / theirs[1, scenario]
            )
            rule = {"simple": (" (> 2 ", own > 2), "ctx20": (" (< 1.6 ", own < 1.6)}.get(scenario)
            held = f"{rule[0]}{'holds' if rule[1] else 'does not hold'})" if rule else ""
            said.append(f"{scenario} {own:.2f}, published {printed:.2f}{held}")
    few = f" This host has {cpus} CPUs: there is little to speed up." if cpus is not None and cpus < 4 else ""
    return [f"Speed-up of the best connection count over one: {'; '.join(said)}.{few}"] if said else []


def _cost(theirs: Table, ours: Table) -> list[str]:
    said = []
    for connections in sorted({connections for connections, _ in ours}):
        own, printed = linear_cost(ours, connections), linear_cost(theirs, connections)
        if own and math.isfinite(own[2]):
            text = f"{connections} connections {own[0]:.0f} + {own[1]:.1f} µs a value, R² {own[2]:.3f}"
            if printed:
                text += f" (published {printed[0]:.0f} + {printed[1]:.1f}, {printed[2]:.3f})"
            said.append(text)
    return [f"Cost against context values: {'; '.join(said)}. Above .98 it is linear."] if said else []


def _relative(key: str, title: str, table: Table, places: list[tuple[int, str]]) -> Pivot:
    rows = sorted({connections for connections, _ in places})
    columns = [scenario for scenario in SCENARIOS.values() if any(scenario == each for _, each in places)]
    largest = max(table[place] for place in places)
    body = tuple(
        tuple(table[row, column] / largest if (row, column) in places else None for column in columns)
        for row in rows
    )
    return Pivot(key, title, "", "connections", tuple(map(str, rows)), tuple(columns), body)
