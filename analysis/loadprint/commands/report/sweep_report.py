"""Gathers the report of an execution with a matrix of sides: pivot tables and curves over threads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from loadprint.commands.operands import MAX_SIDES
from loadprint.commands.report import latency, time_charts, unread_probes
from loadprint.commands.report.collect import absent_of, made, runs_of, sets_of, with_spikes
from loadprint.commands.report.scaling_section import scaled
from loadprint.commands.report.settings import settings
from loadprint.commands.sweep import cells, sweep_pivots
from loadprint.commands.sweep.cells import Swept
from loadprint.reading.queries import Store
from loadprint.reading.recording import read_object
from loadprint.reading.sides import Side, side_of
from loadprint.rendering.report_data import Report, SideOf

CHARTED = ("load", "cpu.server", "cpu.load", "threads.server", "host", "pressure", "mysql")
MOST_CHARTED = 6  # sides whose runs are drawn over time; more are unreadable


def collect_sweep(path: Path) -> Report:
    """Report of a whole execution. Raises InputError where it has no matrix of sides."""
    swept = cells.read(path)
    pivots = sweep_pivots.of(swept)
    sides = _sides(swept)
    measured = [list(cell.runs) for cell in swept.cells if cell.runs]
    runs, placed = runs_of(sides)
    flat = [run for of_side in measured for run in of_side]
    everyone = [(place, side, run.run) for (place, side), run in zip(placed, flat, strict=True)]
    charted = [one for one in everyone if one[1] in _charted(sides)]
    store = Store()
    sampled = time_charts.sample(charted, store, CHARTED)
    drawn, still = time_charts.courses(sampled, [], [], sets_of(measured))
    percentiles, _ = latency.latency(charted, len(sides))
    curves = scaled(swept)
    notes = {"still": ", ".join(still)} if still else {}
    if len(sides) > MOST_CHARTED:
        notes["charted"] = f"{MOST_CHARTED} of {len(sides)} sides are drawn over time: {_named(sides)}."
    return Report(
        title=pivots.title,
        compared=f"{len(sides)} sides",
        sides=tuple(
            SideOf(side.name, side.label, own[0].operation) for side, own in zip(sides, measured, strict=True)
        ),
        runs=with_spikes(runs, sampled),
        table=None,
        pivots=pivots,
        courses=drawn,
        percentiles=percentiles,
        distributions=(),
        scaled=curves,
        settings=settings(sides, measured),
        made=made(sides, None),
        absent=absent_of(
            {
                "Over time": drawn,
                "Latency": percentiles,
                "Throughput over threads": curves,
                "Histograms by eBPF": (),
                "A/B blocks": (),
            }
        ),
        probes=unread_probes.lost([side.name for side in sides], measured),
        notes=notes,
    )


def is_sweep(words: Sequence[str]) -> bool:
    """Whether the operand is an execution with too many sides for one table."""
    path = Path(words[0])
    if len(words) != 1 or not (path / "execution.json").is_file():
        return False
    sides = read_object(path / "execution.json").get("sides") or {}
    at_a_load = any((side or {}).get("fraction") for side in sides.values())
    return len(sides) > MAX_SIDES and not at_a_load


def _sides(swept: Swept) -> list[Side]:
    """The execution's sides that have a complete run, as `compare` names them."""
    return [side_of(swept.path, swept.execution, cell.name) for cell in swept.cells if cell.runs]


def _charted(sides: Sequence[Side]) -> set[int]:
    """Sides over time: evenly spread where there are many."""
    count = min(MOST_CHARTED, len(sides))
    return {round(place * (len(sides) - 1) / max(1, count - 1)) for place in range(count)}


def _named(sides: Sequence[Side]) -> str:
    return ", ".join(sides[place].name for place in sorted(_charted(sides)))
