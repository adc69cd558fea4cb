"""Defines the comparison as a plain value with every number and every text; renderers format it.

`notes` are the texts of footnotes. They have no numbers here: renderers number them (rendering/footnotes.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from loadprint.catalogue.metric import Screens
from loadprint.judging.findings import Shift, Verdict
from loadprint.statistics.trend import Trend
from loadprint.tables.ceilings import Ceiling

# sections
WORKLOAD, CPU, DISK, NETWORK = "WORKLOAD", "CPU METRICS", "DISK METRICS", "NETWORK METRICS"
OTHER, COSTS = "OTHER METRICS", "COSTS"
OWN_ROWS = "OWN ROWS"  # the user's, whose keys can be those of others
DIFFERENT, EQUIVALENT, UNDECIDED = ("*", "better", "worse"), "=", "~"  # marks


@dataclass(frozen=True)
class Cell:
    """The value of one side in base units: the mean of its repeats, and each repeat (None: not measured).

    `ceiling` is the highest value that was measured on the side's host. `unexplained`: the row shows that the
    side's ledger does not close, by this share of its total.
    """

    value: float | None
    repeats: tuple[float | None, ...]
    notes: tuple[str, ...] = ()
    ceiling: Ceiling | None = None
    unexplained: float | None = None

    @property
    def of_ceiling(self) -> float | None:
        """Share of the ceiling; 1 is all of it."""
        return self.value / self.ceiling.value if self.ceiling and self.value is not None else None

    @property
    def of_claimed(self) -> float | None:
        """Share of the limit that the vendor publishes."""
        claimed = self.ceiling.claimed if self.ceiling else None
        return self.value / claimed if claimed is not None and self.value is not None else None

    @property
    def measured(self) -> list[float]:
        """Values of the repeats that measured it."""
        return [value for value in self.repeats if value is not None]


@dataclass(frozen=True)
class Versus:
    """A side compared with the reference.

    `kind` is the kind of `centre`: `ratio`, `difference` (a repeat was 0: no log ratio), `inf` (the reference
    is 0), `?` (both are 0), or `none` (not comparable; the notes give the reason). `points` is the difference
    of percentages. `mark` is what the interval shows: `*` (differs, at a false discovery rate of 5 %),
    `better` or `worse` (the same of a headline row, each tested alone), `=` (equivalent: it is within a small
    bound around 1), `~` (neither), or empty (no interval). `within_floor`: no larger than in an A/A.
    """

    kind: str
    centre: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    points: float | None = None
    mark: str = ""
    notes: tuple[str, ...] = ()
    within_floor: bool = False

    @property
    def no_effect(self) -> float:
        """The value of `centre` at which the sides are equal."""
        return 1.0 if self.kind == "ratio" else 0.0

    @property
    def includes_no_effect(self) -> bool:
        """Whether the interval includes "no effect"."""
        return self.low is not None and self.high is not None and self.low <= self.no_effect <= self.high

    @property
    def differs(self) -> bool:
        """Whether its mark is that of a difference."""
        return self.mark in DIFFERENT


@dataclass(frozen=True)
class Floor:
    """The largest |log ratio| and the largest difference of a row between the sides of an A/A.

    The log ratio is None if a repeat was 0; the difference is in the row's unit.
    """

    log_ratio: float | None
    difference: float


@dataclass(frozen=True)
class NoiseFloor:
    """The floor of every row of an A/A execution, with its path, sides and repeats per side."""

    path: str
    floors: dict[str, Floor]
    sides: tuple[str, ...]
    repeats: tuple[int, ...]


@dataclass(frozen=True)
class Row:
    """One metric: a cell per side, and a comparison per side (None for the reference itself).

    `view` is the view that shows it: `always`, `measured` (only with a value), `nonzero` (only if it is not
    0), `all`, or `usual` (not with all rows, because it is a sum of some).
    `headline` rows may carry a verdict. `floor` is that of an A/A, if one was given. `part`: it is a part of
    the row above it and not of a sum. `screens`: those that show it.
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
    notes: tuple[str, ...] = ()
    view: str = "always"
    floor: Floor | None = None
    part: bool = False
    screens: Screens = field(default_factory=Screens)

    @property
    def all_notes(self) -> tuple[str, ...]:
        """Its notes and those of its cells and comparisons, in the order of reading."""
        compared = (note for versus in self.versus if versus for note in versus.notes)
        return (*self.notes, *(note for cell in self.cells for note in cell.notes), *compared)

    def with_notes(self, kept: frozenset[str]) -> Row:
        """The row with only these notes."""

        def of(notes: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(note for note in notes if note in kept)

        return replace(
            self,
            notes=of(self.notes),
            cells=tuple(replace(cell, notes=of(cell.notes)) for cell in self.cells),
            versus=tuple(versus and replace(versus, notes=of(versus.notes)) for versus in self.versus),
        )


@dataclass(frozen=True)
class Group:
    """Rows under one heading, in a section of the table; `has_files`: of a disk with the server's files."""

    key: str
    title: str
    rows: tuple[Row, ...]
    section: str = ""
    has_files: bool = False


@dataclass(frozen=True)
class SideHead:
    """The head of a column; its notes name the repeats that were disturbed.

    `description` is what it ran, `replicate` what is repeated: `start` or `repeat`. `paired`: its repeats
    pair up with the reference's. `drift` is the trend of operations/s over the window, None if there is none
    to test. `doubts` are why no sentence may compare the side without saying so: not warm, never settled,
    client-bound.
    """

    name: str
    label: str
    operation: str
    repeats: tuple[str, ...]
    missing: tuple[tuple[str, str], ...]
    canary: tuple[Shift, ...] = ()
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    drift: Trend | None = None
    description: str = ""
    replicate: str = "repeat"
    paired: bool = False


@dataclass(frozen=True)
class Sentence:
    """A summary of some rows, with the keys of these rows.

    `id` is the rule, `side` the side that it describes, `about` what that side exercises: engine, storage,
    network, kernel, locks, client, checkpoint, steal, cpu, or empty for costs. `shown`: whether text and
    Markdown print it. `brief` is the first of it, for one line.
    """

    id: str
    text: str
    rows: tuple[str, ...]
    side: str
    about: str
    shown: bool = True
    brief: str = ""


@dataclass(frozen=True)
class Table:
    """A whole comparison: `verdicts` come first, then `facts`, (label, text) lines, then the rows.

    `remedies` are the warnings in a line each, with what to do. `legend` is what the marks mean, `hidden` the
    number of rows that a view leaves out, `page` the path of the report that has them.
    """

    sides: tuple[SideHead, ...]
    reference: str
    facts: tuple[tuple[str, str], ...]
    warnings: tuple[str, ...]
    groups: tuple[Group, ...]
    sentences: tuple[Sentence, ...]
    method: tuple[str, ...] = field(default=())
    verdicts: tuple[Verdict, ...] = field(default=())
    title: str = ""
    legend: str = ""
    page: str = ""
    hidden: int = 0
    remedies: tuple[str, ...] = field(default=())

    @property
    def rows(self) -> list[Row]:
        """The rows of all groups."""
        return [row for group in self.groups for row in group.rows]

    @property
    def base(self) -> int:
        """The position of the reference among the sides."""
        return next(place for place, side in enumerate(self.sides) if side.name == self.reference)

    def row(self, key: str) -> Row | None:
        """Return a row by key, not one of the user's."""
        rows = (row for group in self.groups if group.section != OWN_ROWS for row in group.rows)
        return next((row for row in rows if row.key == key), None)
