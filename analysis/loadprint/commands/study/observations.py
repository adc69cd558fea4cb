"""Reads what the claims compare: rows of an execution's sides, one value per repeat."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

from loadprint.comparison.compare_sides import compare
from loadprint.judging import client
from loadprint.judging.facts_host import data_place, described
from loadprint.metrics import blocks
from loadprint.metrics.gather import Measured, gather
from loadprint.reading.queries import Store
from loadprint.reading.sides import Side, read_execution
from loadprint.tables.groups import groups
from loadprint.tables.rows import Column, RowBuilder
from loadprint.tables.table import Row, Sentence

CORES = 36  # of the publication with the largest host


class Absent(Exception):
    """A value that the execution does not have; the message is the reason."""


@dataclass(frozen=True)
class Values:
    """A row of one side: the values of the repeats that measured it, in base units and in block order."""

    side: str
    repeats: tuple[float, ...]
    label: str
    unit: str
    factor: float

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


class Observations:
    """One execution. Raises InputError if it cannot be read or none of its runs is complete."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.execution, sides = read_execution(path)
        self._sides: dict[str, Side] = {side.name: side for side in sides}

    @property
    def campaign(self) -> dict[str, Any]:
        """The resolved campaign."""
        campaign: dict[str, Any] = self.execution.get("campaign") or {}
        return campaign

    @property
    def name(self) -> str:
        """Name of the campaign."""
        return str(self.campaign.get("name"))

    @property
    def scales(self) -> tuple[str, ...]:
        """Scales of the campaign; empty for the default."""
        return tuple(map(str, self.campaign.get("scale") or ()))

    @property
    def repeats(self) -> int:
        """Complete runs of the side that has most."""
        return max(len(side.runs) for side in self._sides.values())

    @property
    def command(self) -> str:
        """The command that measures it again."""
        scale = f" -e campaign_scale={','.join(self.scales)}" if self.scales else ""
        return f"./characterize -e campaign={self.name}{scale}"

    @property
    def amount(self) -> str:
        """Scale, repeats, runs, wall time, and the server or servers."""
        scale = f"scale {', '.join(self.scales)}" if self.scales else "default scale"
        runs = sum(len(side.runs) for side in self._sides.values())
        servers = [each.get("obtained") or {} for each in (self.execution.get("servers") or {}).values()]
        parts = [
            scale,
            f"{self.repeats} repeat{'s' if self.repeats > 1 else ''} per side",
            f"{runs} runs{_took(self.execution)}",
            *(f"{each.get('flavour')} {each.get('version')}" for each in servers if each),
        ]
        return ", ".join(parts)

    @property
    def fact(self) -> str:
        """Path and amount."""
        return f"{self.path}, {self.amount}"

    @property
    def machine(self) -> str:
        """The server's host."""
        return described(self._fingerprint)

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
            raise Absent(f"the execution has no side {side}")
        if side not in self._columns:
            reason = "; ".join(reason for _, reason in self._sides[side].missing)
            raise Absent(f"no complete run of {side} ({reason})")
        first = next((each for each in self._rows if fnmatchcase(each.key, row)), None)
        if first is None:
            raise Absent(f"no row {row}")
        cell = first.cells[list(self._columns).index(side)]
        if not cell.measured:
            raise Absent(f"{first.label} of {side}: {'; '.join(cell.notes) or 'not measured'}")
        return Values(side, tuple(cell.measured), first.label, first.shown, first.factor)

    def paired(self, side: str, against: str) -> bool:
        """Whether the runs of two sides pair up by block."""
        runs = [self._columns[self.resolved(name)].runs for name in (side, against)]
        return blocks.paired(*runs)

    def resolved(self, side: str) -> str:
        """Fill in a name: `{cores}` is the host's physical cores, `{min}` and `{max}` of the threads."""
        for name, number in self._numbers.items():
            side = side.replace(f"{{{name}}}", str(number))
        return side

    @cached_property
    def _numbers(self) -> dict[str, int]:
        threads = [int(each.get("threads") or 0) for each in self.execution["sides"].values() if each]
        cores = int((self._fingerprint.get("cpus") or {}).get("cores") or 1)
        return {"cores": cores, "min": min(threads, default=0), "max": max(threads, default=0)}

    def client_bound(self, rule: Mapping[str, Any]) -> list[str]:
        """Sides in a claim's rule whose load generator was at its limit."""
        named = set(map(self.resolved, _texts(rule)))
        columns = [column for name, column in self._columns.items() if name in named]
        return [each.name for each in columns if client.client_bound(each.name, each.runs)]

    @property
    def _first(self) -> Measured:
        return next(column.runs[0] for column in self._columns.values())

    @property
    def _fingerprint(self) -> dict[str, Any]:
        return self._first.run.fingerprint("server")

    @cached_property
    def hardware(self) -> frozenset[str]:
        """What this host has of the hardware that claims can need."""
        fingerprint = self._fingerprint
        cpus = fingerprint.get("cpus") or {}
        disks = (data_place(fingerprint) or {}).get("disks") or []
        present = {
            "NVMe": any(disk.startswith("nvme") for disk in disks),
            "two sockets": int(cpus.get("sockets") or 1) > 1,
            "36 cores": self._numbers["cores"] >= CORES,
            "PMU": self._first.quantities.get("perf.server.cycles") is not None,
        }
        return frozenset(name for name, is_present in present.items() if is_present)

    def sentences(self, side: str, against: str) -> tuple[Sentence, ...]:
        """Sentences of the comparison of two sides. Raises Absent if one has no complete run."""
        side, against = self.resolved(side), self.resolved(against)
        for name in (side, against):
            if name not in self._columns:
                raise Absent(f"no complete run of {name}")
        measured = [self._columns[name].runs for name in (against, side)]
        return compare([self._sides[against], self._sides[side]], against, measured=measured).sentences


def _took(execution: Mapping[str, Any]) -> str:
    """Wall time of an execution; empty without stamps, as while it runs."""
    spent = execution.get("spent_s")
    if not isinstance(spent, int | float):  # before it was recorded, executions were not extended
        try:
            begin, end = (datetime.fromisoformat(str(execution.get(stamp))) for stamp in ("started", "ended"))
        except ValueError:
            return ""
        spent = (end - begin).total_seconds()
    return f" in {max(1, round(spent / 60))} min"


def _texts(value: Any) -> Iterator[str]:
    """All texts in nested mappings and lists, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for each in value:
            yield from _texts(each)
        if isinstance(value, Mapping):
            yield from _texts(list(value.values()))
