"""Defines the report of a qualification: every figure and text that renderers print."""

from __future__ import annotations

from dataclasses import dataclass

from loadprint.commands.qualify.non_inferiority import Verdict


@dataclass(frozen=True)
class PartyFigure:
    """A side's value in base units, mean of its runs, with the one-sided bounds of its geometric mean.

    `of_ceiling`: its share of the measured ceiling.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    units: int = 0
    of_ceiling: float | None = None


@dataclass(frozen=True)
class QualifiedRow:
    """One row in one cell.

    `verdict` is empty if the row is not judged. `reason` is why a row is undecided. `more` is
    the number of further repeats (or instances) per side that would decide. `limit` is the worst
    ratio that passes.
    """

    key: str
    label: str
    unit: str
    shown: str
    factor: float
    better: str
    tolerance: float | None
    baseline: PartyFigure
    candidate: PartyFigure
    limit: float | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    is_better: bool = False
    more: int | None = None
    verdict: Verdict | str = ""
    reason: str = ""


@dataclass(frozen=True)
class Exhausted:
    """A run with a lasting fall of throughput at a second of its window, from one level to another."""

    run: str
    second: int
    before: float
    after: float


@dataclass(frozen=True)
class LevelLine:
    """Burst and sustained throughput of a party in one cell, in operations per second."""

    party: str
    seconds: float
    burst: float | None
    burst_s: int | None
    sustained: float | None
    exhausted: tuple[Exhausted, ...]


@dataclass(frozen=True)
class CellReport:
    """A workload at one concurrency and one kind of load.

    `voids` contains the reasons why none of its rows has a verdict: a word and a line for each.
    """

    name: str
    title: str
    threads: int | None
    load: str
    lines: tuple[QualifiedRow, ...]
    levels: tuple[LevelLine, ...]
    voids: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Machine:
    """An instance: its name, its type, the number of its runs and boots."""

    name: str
    kind: str
    runs: int
    boots: int


@dataclass(frozen=True)
class Qualification:
    """The qualification; `reasons` explain the verdict, the most important first."""

    about: str
    confidence: float
    parties: tuple[tuple[str, tuple[str, ...], tuple[Machine, ...]], ...]
    subject: tuple[tuple[str, str, str], ...]
    configuration: tuple[tuple[str, str, str], ...]
    accepted: tuple[tuple[str, str, str], ...]
    cells: tuple[CellReport, ...]
    notes: tuple[str, ...]
    method: tuple[str, ...]
    verdict: Verdict
    reasons: tuple[str, ...]

    @property
    def status(self) -> int:
        """Exit status: 0 pass, 1 fail, 2 undecided."""
        return {"pass": 0, "fail": 1}.get(self.verdict, 2)
