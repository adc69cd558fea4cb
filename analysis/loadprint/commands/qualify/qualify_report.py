"""A qualification as a plain value: every figure and every word of it; renderers only lay it out."""

from __future__ import annotations

from dataclasses import dataclass

from loadprint.commands.qualify.components import Components
from loadprint.commands.qualify.non_inferiority import Verdict


@dataclass(frozen=True)
class Figure:
    """A side's value in base units, mean of its runs, with the one-sided bounds of its geometric mean.

    `of_ceiling`: its share of what somebody measured to be possible there.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    units: int = 0
    of_ceiling: float | None = None


@dataclass(frozen=True)
class Line:
    """One row in one cell. `verdict` is empty where the row is only shown; `reason` says why nobody can tell.

    `more` is how many further repeats (or instances) a side would decide. `limit` is the ratio that is still
    allowed.
    """

    key: str
    label: str
    unit: str
    shown: str
    factor: float
    better: str
    tolerance: float | None
    baseline: Figure
    candidate: Figure
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
    """A run whose throughput fell for good at a second of its window, from one level to another."""

    run: str
    second: int
    before: float
    after: float


@dataclass(frozen=True)
class LevelLine:
    """Burst and sustained throughput of a party in one cell: means over its runs, operations a second."""

    party: str
    seconds: float
    burst: float | None
    burst_s: int | None
    sustained: float | None
    exhausted: tuple[Exhausted, ...]


@dataclass(frozen=True)
class CellReport:
    """A workload at one concurrency and one kind of load. `voids` say why none of its rows has a verdict.

    Each is a word and a line.
    """

    name: str
    title: str
    threads: int | None
    load: str
    lines: tuple[Line, ...]
    levels: tuple[LevelLine, ...]
    spread: tuple[tuple[str, Components], ...]
    voids: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Machine:
    """An instance: its name, what it is, how many runs are of it."""

    name: str
    kind: str
    runs: int
    boots: int


@dataclass(frozen=True)
class Report:
    """The whole qualification; `reasons` keep it from a pass or make it fail, the most important first."""

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
        """Exit status: 0 pass, 1 fail, 2 cannot tell."""
        return {"pass": 0, "fail": 1}.get(self.verdict, 2)
