"""Reads what the claims compare: rows of an execution's sides, one value per repeat."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

from loadprint import numbers
from loadprint.comparison.compare_sides import compare
from loadprint.judging import canary, void
from loadprint.judging.facts_host import data_disks
from loadprint.metrics import blocks
from loadprint.metrics.gather import gather
from loadprint.metrics.ledger_rows import LATENCY, name_of, terms
from loadprint.reading.cpusets import cores_of, host_cpus
from loadprint.reading.queries import Store
from loadprint.reading.run_documents import ExecutionPlan, Fingerprint
from loadprint.reading.sides import Side, read_execution
from loadprint.rendering.layout import raised
from loadprint.statistics.stopping import wider
from loadprint.tables.groups import groups
from loadprint.tables.rows import Column, RowBuilder
from loadprint.tables.table import Cell, Row, Sentence

LARGEST_ROWS = 3  # of the time ledger
NO_CORES = "the cores of the server's CPUs were not recorded"


class Absent(Exception):
    """A value that the execution does not have; the message is the reason."""


@dataclass(frozen=True)
class Values:
    """A row of one side: the values of the repeats that measured it, in base units and in block order.

    `complete`: all did. `by_precision`: that of the campaign decided how many there are.
    `exposure`: during how many seconds, or in how many runs, events were counted; None for other rows.
    """

    side: str
    repeats: tuple[float, ...]
    label: str
    unit: str
    factor: float
    exposure: float | None = None
    complete: bool = True
    by_precision: bool = False

    def widened(self, repeats: int) -> float:
        """The factor of intervals over a number of repeats."""
        return wider(repeats, by_precision=self.by_precision)

    @property
    def quantity(self) -> str:
        """Name and unit of the row."""
        return (
            f"{self.label}{self.unit}"
            if self.unit.startswith("/")
            else f"{self.label}, {self.unit}".rstrip(", ")
        )

    @property
    def mean(self) -> float:
        """Arithmetic mean of the repeats."""
        return sum(self.repeats) / len(self.repeats)

    @property
    def shown(self) -> str:
        """The mean with its unit."""
        return f"{self.scaled(self.mean)}{f' {self.unit}' if self.unit else ''}"

    def scaled(self, value: float) -> str:
        """A value in the row's printed unit, without its name."""
        return numbers.brief(value * self.factor, 3)


class Observations:
    """One execution. Raises InputError if it cannot be read or none of its runs is complete.

    `name` and `scales` are those of its campaign, no scales for the default; `repeats` are the complete runs
    of the side that has most.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.execution, sides = read_execution(path)
        self._sides: dict[str, Side] = {side.name: side for side in sides}
        self.name = self.execution.campaign.name
        self.scales = self.execution.campaign.scale
        self.repeats = max(len(side.runs) for side in sides)

    @property
    def command(self) -> str:
        """The command that measures it again."""
        scale = f" -e campaign_scale={','.join(self.scales)}" if self.scales else ""
        return f"./characterize -e campaign={self.name}{scale}"

    @property
    def amount(self) -> str:
        """Scale, repeats, runs, wall time, and the server or servers."""
        runs = sum(len(side.runs) for side in self._sides.values())
        servers = [server.obtained for server in self.execution.servers.values()]
        parts = [
            f"scale {', '.join(self.scales)}" if self.scales else "default scale",
            f"{self.repeats} repeat{'s' if self.repeats > 1 else ''} per side",
            f"{runs} runs{_took(self.execution)}",
            *(f"{server.flavour} {server.version}" for server in servers if server),
        ]
        return ", ".join(parts)

    @cached_property
    def fingerprint(self) -> Fingerprint:
        """The server's host."""
        return next(iter(self._columns.values())).runs[0].run.fingerprint("server")

    @cached_property
    def _columns(self) -> dict[str, Column]:
        store = Store()
        columns = {}
        for name, side in self._sides.items():
            if side.runs:
                runs = blocks.ordered([gather(run, store) for run in side.runs])
                columns[name] = Column(name, runs, paired=False)
        return columns

    @cached_property
    def _rows(self) -> list[Row]:
        built = groups(RowBuilder(list(self._columns.values()), 0))
        return [row for group in built for row in group.rows]

    def values(self, row: str, side: str) -> Values:
        """Values of a row, whose key may contain `*`: the first row that matches. Raises Absent."""
        side = self.resolved(side)
        if side not in self._sides:
            why = f"; {NO_CORES}" if "{cores}" in side else ""
            raise Absent(f"the execution has no side {side}{why}")
        if side not in self._columns:
            reason = "; ".join(reason for _, reason in self._sides[side].missing)
            raise Absent(f"no complete run of {side} ({reason})")
        first = next((candidate for candidate in self._rows if fnmatchcase(candidate.key, row)), None)
        if first is None:
            raise Absent(f"no row {row}")
        cell = first.cells[list(self._columns).index(side)]
        if not cell.measured:
            raise Absent(f"{first.label} of {side}: {'; '.join(cell.notes) or 'not measured'}")
        exposure = self._exposure(side, first.unit, len(cell.measured))
        complete = len(cell.measured) == len(cell.repeats)
        by_precision = self.execution.campaign.precision is not None
        values = tuple(cell.measured)
        return Values(side, values, first.label, first.shown, first.factor, exposure, complete, by_precision)

    def _exposure(self, side: str, unit: str, repeats: int) -> float | None:
        """Seconds of all runs for a rate, the number of runs for a number, else None."""
        seconds = [run.quantities.get("load.seconds") for run in self._columns[side].runs]
        measured = [second.rate for second in seconds if second is not None]
        if unit == "1/s":
            return sum(measured) if len(measured) == len(seconds) else None
        return float(repeats) if unit == "1" else None

    def paired(self, side: str, against: str) -> bool:
        """Whether the runs of two sides pair up by block."""
        runs = [self._columns[self.resolved(name)].runs for name in (side, against)]
        return blocks.paired(*runs)

    def resolved(self, side: str) -> str:
        """Fill in a name: `{cores}` is the server's physical cores, `{min}` and `{max}` of the threads.

        Of several names with `|` between them it is the first that the execution has. `{cores}` remains where
        the cores were not recorded.
        """
        for name, number in self._numbers.items():
            side = side.replace(f"{{{name}}}", str(number))
        names = side.split("|")
        return next((name for name in names if name in self._sides), names[-1])

    @cached_property
    def _numbers(self) -> dict[str, int]:
        threads = [self.threads(side) for side in self.execution.sides]
        limits = {"min": min(threads, default=0), "max": max(threads, default=0)}
        return limits if self.cores is None else {"cores": self.cores, **limits}

    @cached_property
    def cores(self) -> int | None:
        """Physical cores with a CPU of the server's set; None if their threads were not recorded."""
        measured = next(iter(self._columns.values())).runs[0]
        # a server without a set runs on all CPUs of its host
        cpus = measured.server_cpus or host_cpus(measured.run, "server") or ()
        cores = cores_of(self.fingerprint.cpus.list)
        return len({cores[cpu] for cpu in cpus}) if cpus and cores.keys() >= set(cpus) else None

    def threads(self, side: str) -> int:
        """Connections of a side of the execution; 0 if its generator was given none."""
        return int(self.execution.side(side).threads or 0)

    @cached_property
    def voids(self) -> dict[str, list[tuple[str, str]]]:
        """Why a side supports no verdict, by side: a word and a line for each reason."""
        measured = {name: column.runs for name, column in self._columns.items()}
        shifts = canary.by_run([run.run for runs in measured.values() for run in runs])
        by_side = {}
        for name, runs in measured.items():
            its_shifts = [shift for run in runs for shift in shifts.get(run.run.path.resolve(), ())]
            by_side[name] = list(void.reasons(name, runs, its_shifts))
        return by_side

    def sides_of(self, rule: Mapping[str, Any]) -> list[str]:
        """The sides in a claim's rule that the execution has."""
        named = set(map(self.resolved, _texts(rule)))
        return [name for name in self._sides if name in named]

    def version(self, side: str) -> str:
        """Version of a side's server; empty if it is not recorded."""
        column = self._columns.get(self.resolved(side))
        return str(column.runs[0].run.server.variables.get("version", "")) if column else ""

    def ledger(self, side: str) -> str:
        """The largest rows of the time ledger of a side, and whether it closes; empty without a ledger."""
        side = self.resolved(side)
        if side not in self._columns:
            return ""
        place = list(self._columns).index(side)
        rows = {name_of(row.key): row for row in self._rows if row.key.endswith("_per_operation")}
        cells = {name: (row.label, row.cells[place]) for name, row in rows.items() if name}
        text = _largest({name: cell for name, cell in cells.items() if cell[1].value is not None})
        return f"the time ledger of {side}: {text}" if text else ""

    @cached_property
    def hardware(self) -> frozenset[str]:
        """What the server has of the hardware that claims can need."""
        disks = data_disks(self.fingerprint)
        present = {"NVMe": any(disk.startswith("nvme") for disk in disks), "10 cores": self.cores == 10}
        return frozenset(name for name, is_present in present.items() if is_present)

    def sentences(self, side: str, against: str) -> tuple[Sentence, ...]:
        """Sentences of the comparison of two sides. Raises Absent if one has no complete run."""
        side, against = self.resolved(side), self.resolved(against)
        for name in (side, against):
            if name not in self._columns:
                raise Absent(f"no complete run of {name}")
        measured = [self._columns[name].runs for name in (against, side)]
        return compare([self._sides[against], self._sides[side]], against, measured=measured).sentences


def _largest(ledger: Mapping[str, tuple[str, Cell]]) -> str:
    """The largest terms of a time ledger, as shares of the latency, with their footnotes.

    Rows that show that it does not close follow as such: the unexplained ones, and those that are negative.
    """
    whole = ledger[LATENCY][1].value if LATENCY in ledger else None
    if not whole:
        return ""
    shares = {name: (cell.value or 0.0) / whole for name, (_, cell) in ledger.items()}
    open_ones = {name: cell.unexplained for name, (_, cell) in ledger.items() if cell.unexplained is not None}
    by_size = sorted(terms(ledger.keys()) - open_ones.keys(), key=lambda name: (-abs(shares[name]), name))
    largest = [name for name in by_size[:LARGEST_ROWS] if shares[name]]
    notes = list(dict.fromkeys(note for name in largest for note in ledger[name][1].notes))
    texts = []
    for name in largest:
        label, cell = ledger[name]
        marks = raised([1 + notes.index(note) for note in cell.notes])
        texts.append(f"{label} {100 * shares[name]:.0f} %{marks}")
    parts = [f"{', '.join(texts)} of the latency"] if texts else []
    if open_ones:
        shown = [f"{100 * share:.0f} % {ledger[name][0]}" for name, share in open_ones.items()]
        parts.append(f"does not close: {' and '.join(shown)}")
    parts += [f"{raised([number])} {note}" for number, note in enumerate(notes, start=1)]
    return "; ".join(parts)


def _took(execution: ExecutionPlan) -> str:
    """Wall time of an execution; empty without stamps, as while it runs."""
    spent = execution.spent_s
    if spent is None:  # before it was recorded, executions were not extended
        try:
            begin, end = map(datetime.fromisoformat, (execution.started, execution.ended))
        except ValueError:
            return ""
        spent = (end - begin).total_seconds()
    return f" in {max(1, round(spent / 60))} min"


def _texts(value: Any) -> Iterator[str]:
    """All texts in nested mappings and lists, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for inner in value:
            yield from _texts(inner)
        if isinstance(value, Mapping):
            yield from _texts(list(value.values()))
