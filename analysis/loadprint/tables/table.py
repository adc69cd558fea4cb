"""The comparison as a plain value: every number is here, every renderer only lays it out."""

from __future__ import annotations

from dataclasses import dataclass, field

from loadprint.judging.findings import Shift, Verdict
from loadprint.statistics.trend import Trend


@dataclass(frozen=True)
class Cell:
    """One side's value in base units: the mean of its repeats, and each of them (None: not measured).

    `of_ceiling` is its share of what was measured to be possible, `of_claimed` of the vendor's limit; 1 is
    all of it.
    """

    value: float | None
    repeats: tuple[float | None, ...]
    notes: tuple[int, ...] = ()
    of_ceiling: float | None = None
    of_claimed: float | None = None


@dataclass(frozen=True)
class Versus:
    """A side against the reference.

    `kind` says what `centre` is: `ratio`, `difference` (a repeat was 0: no log ratio), `inf` (reference is
    0), `?` (both are 0), or `none` (not comparable; the notes say why). `points` is the difference of
    percentages. `mark` is `~` (cannot be told from 1), `*` (differs at a false discovery rate of 5 %),
    `better`, `worse`, or empty.
    """

    kind: str
    centre: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    points: float | None = None
    mark: str = ""
    notes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Floor:
    """What an A/A saw of a row: the largest |log ratio| and the largest difference between its sides.

    The log ratio is None where a repeat was 0; the difference is in the row's unit.
    """

    log_ratio: float | None
    difference: float


@dataclass(frozen=True)
class Row:
    """One metric: a cell per side, and per side its comparison (None for the reference itself).

    `view` says where it is shown: `always`, `nonzero` (where something happened) or `all`.
    `floor` is that of an A/A, where one was given.
    """

    key: str
    label: str
    unit: str
    shown: str
    factor: float
    better: str
    headline: bool
    formula: str
    cells: tuple[Cell, ...]
    versus: tuple[Versus | None, ...]
    notes: tuple[int, ...] = ()
    view: str = "always"
    floor: Floor | None = None


@dataclass(frozen=True)
class Group:
    """Rows under one heading, within a section of the table."""

    key: str
    title: str
    rows: tuple[Row, ...]
    section: str = ""


@dataclass(frozen=True)
class Plan:
    """So many `more` repeats a side would detect `apart` (a share of the reference) apart, in row `row`.

    `basis` is `between runs`, the spread that the repeats show, or `within runs`, where one repeat a side
    shows none: then it is the best that can be hoped for. A plan, not a finding.
    """

    side: str
    row: str
    more: int
    apart: float
    basis: str


@dataclass(frozen=True)
class SideHead:
    """What a column stands for; footnotes say which of its repeats were disturbed.

    `noise` is the within-run noise of operations a second, half of a 95 % interval as a share of the mean
    (for planning only); `drift` their trend over the window, None where there is none to test.
    """

    name: str
    label: str
    operation: str
    repeats: tuple[str, ...]
    missing: tuple[tuple[str, str], ...]
    canary: tuple[Shift, ...] = ()
    notes: tuple[int, ...] = ()
    noise: float | None = None
    client_bound: bool = False
    drift: Trend | None = None


@dataclass(frozen=True)
class Sentence:
    """What rows say in words, with their keys.

    `id` is the rule, `side` the side that it speaks of, `about` what that side exercises: engine, storage,
    network, kernel, locks, client, checkpoint, steal, cpu, or nothing for costs. `shown`: among the few that
    stand beside a table for people.
    """

    id: str
    text: str
    rows: tuple[str, ...]
    side: str
    about: str
    shown: bool = True


@dataclass(frozen=True)
class Table:
    """A whole comparison. `verdicts` come first, then `facts`, (label, text) lines.

    Footnotes are numbered from 1.
    """

    sides: tuple[SideHead, ...]
    reference: str
    facts: tuple[tuple[str, str], ...]
    warnings: tuple[str, ...]
    groups: tuple[Group, ...]
    footnotes: tuple[str, ...]
    sentences: tuple[Sentence, ...]
    method: tuple[str, ...] = field(default=())
    verdicts: tuple[Verdict, ...] = field(default=())
    plans: tuple[Plan, ...] = field(default=())

    def row(self, key: str) -> Row | None:
        """Return a row by key."""
        return next((row for group in self.groups for row in group.rows if row.key == key), None)
