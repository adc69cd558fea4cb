"""Who may carry a verdict, and what the other rows get: sides against a named reference, eight headlines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from conftest import insert, oltp
from loadprint.metrics import derived
from loadprint.metrics.gather import Measured
from loadprint.metrics.quantities import Quantities
from loadprint.reading.recording import Run
from loadprint.tables.marks import MAX_HEADLINES, marked_rows
from loadprint.tables.rows import Column, RowBuilder
from loadprint.tables.table import Row
from reads import table_of
from recordings import make_execution

# of what a run does by the table below, each side's part; three repeats apart by 0.5 %
LEVELS = {"a": 1.0, "b": 1.2, "c": 0.8, "d": 1.0}
REPEATS = (0.995, 1.0, 1.005)


def column(name: str, level: float, rows: int) -> Column:
    """A side that does `level` times as much in every row."""
    runs = []
    for repeat in REPEATS:
        quantities = Quantities()
        for place in range(rows):
            quantities.put(f"q.{place}", level * repeat)
        runs.append(
            Measured(Run(Path(name), {}, None, None, {}, None), quantities, None, None, None, np.empty(0))
        )
    return Column(name, tuple(runs), paired=False)


def judged(columns: Sequence[Column], reference: int, headlines: int = 2, others: int = 3) -> list[Row]:
    builder = RowBuilder(columns, reference)
    metrics = [derived.rate(f"row{n}", "", "1", "", f"q.{n}") for n in range(headlines + others)]
    rows = [
        replace(builder.row(metric), headline=n < headlines, better="higher")
        for n, metric in enumerate(metrics)
    ]
    return marked_rows(rows, [row.headline for row in rows], builder)


def marks(rows: Sequence[Row], side: int) -> list[str | None]:
    return [None if (versus := row.versus[side]) is None else versus.mark for row in rows]


def test_every_side_is_judged_against_the_named_reference() -> None:
    rows = judged([column(name, level, 5) for name, level in LEVELS.items()], reference=1)
    assert marks(rows, 0) == marks(rows, 2) == marks(rows, 3) == ["worse"] * 2 + ["*"] * 3
    assert marks(rows, 1) == [None] * 5
    assert [versus.centre for versus in rows[0].versus if versus] == pytest.approx(
        [1 / 1.2, 0.8 / 1.2, 1 / 1.2]
    )


def test_iowait_has_no_mark_of_a_difference() -> None:
    """A busy CPU hides it: no sentence, verdict or mark rests on it."""
    builder = RowBuilder([column(name, level, 5) for name, level in LEVELS.items()], 1)
    metric = derived.rate("cpu_server_user", "", "1", "", "q.0")
    both = [builder.row(metric), builder.row(replace(metric, key="cpu_server_iowait"))]
    assert marks(marked_rows(both, [False, False], builder), 0) == ["*", ""]


def test_what_one_side_is_refused_for_is_no_matter_to_the_others() -> None:
    sides = [column(name, level, 5) for name, level in LEVELS.items()]
    rows = judged([sides[0], replace(sides[1], withheld="b never settled"), *sides[2:]], reference=0)
    assert marks(rows, 1) == ["*"] * 5  # shown, marked as any other row is, no verdict
    assert marks(rows, 2) == ["worse"] * 2 + ["*"] * 3
    assert marks(rows, 3) == ["~"] * 5


def test_a_reference_that_never_settled_leaves_nobody_a_verdict() -> None:
    sides = [column(name, level, 5) for name, level in LEVELS.items()]
    rows = judged([replace(sides[0], withheld="a never settled"), *sides[1:]], reference=0)
    assert {mark for side in (1, 2, 3) for mark in marks(rows, side)} <= {"*", "~"}


def test_rows_without_a_verdict_share_one_false_discovery_rate_of_each_side() -> None:
    """Marks are SciPy's Benjamini–Hochberg over the rows of one side, headlines apart."""
    random = np.random.default_rng(8)
    columns = []
    for name, shift in (("a", 0.0), ("b", 0.02), ("c", 0.05)):
        column_ = column(name, 1.0, 40)
        for run in column_.runs:
            for place in range(40):
                run.quantities.put(f"q.{place}", math.exp(shift * (place % 2) + random.normal(0, 0.015)))
        columns.append(column_)
    rows = judged(columns, reference=0, headlines=8, others=32)
    for side in (1, 2):
        p = [versus.p for row in rows[8:] if (versus := row.versus[side]) and versus.p is not None]
        assert len(p) == 32
        expected = scipy.stats.false_discovery_control(p) <= 0.05
        assert [mark == "*" for mark in marks(rows[8:], side)] == expected.tolist()
        assert not {"better", "worse"} & set(marks(rows[8:], side))
        assert "*" not in marks(rows[:8], side)


def test_eight_headlines_at_most_are_declared(tmp_path: Path) -> None:
    """Two disks, and three sides of which two count the same operation: four denominators."""
    base = oltp()
    disks = dict.fromkeys(("vda", "vdb"), base.disks["vda"])
    two = [replace(oltp(k), disks=disks) for k in (0, 1, 2)]
    inserts = [replace(insert(k), disks=disks) for k in (0, 1, 2)]
    table = table_of(make_execution(tmp_path / "x", {"a": two, "b": two, "c": inserts}, "a"))
    headlines = [row.key for group in table.groups for row in group.rows if row.headline]
    assert 4 <= len(headlines) <= MAX_HEADLINES
    assert {"operations", "statements", "disk_vda_await", "server_cpu_per_operation"} <= set(headlines)
    assert not [key for key in headlines if key.endswith(("per_commit", "per_statement", "CPU-second"))]
    assert "disk_vdb_await" not in headlines
    assert table.row("disk_vdb_await") is not None


def test_costs_are_those_of_a_statement_where_operations_differ(execution: Path) -> None:
    headlines = [row.key for group in table_of(execution).groups for row in group.rows if row.headline]
    assert "server_cpu_per_statement" in headlines
    assert not [key for key in headlines if key.endswith(("per_operation", "per_commit", "CPU-second"))]
