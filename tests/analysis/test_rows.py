"""What one row claims of values that are zero, negative, coarse, shares, or quantiles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import oltp
from loadprint.metrics import derived, derived_ebpf
from loadprint.metrics.gather import Measured
from loadprint.metrics.quantities import Quantities
from loadprint.reading.recording import Run
from loadprint.reading.sides import resolve
from loadprint.statistics import stats
from loadprint.tables.compare import compare
from loadprint.tables.rows import Column, Footnotes, RowBuilder
from loadprint.tables.table import Row, Versus
from recordings import make_execution

PLAIN = derived.rate("row", "row", "1", "", "q")


def column(name: str, values: Sequence[float], counts: Sequence[float | None] | None = None) -> Column:
    """A side whose repeats measured so much, in so many steps of the source."""
    runs = []
    for value, count in zip(values, counts or [None] * len(values), strict=True):
        quantities = Quantities()
        quantities.put("q", value, count)
        run = Run(Path(name), {}, None, None, (), {}, None)
        runs.append(Measured(run, quantities, None, None, None, np.empty(0)))
    return Column(name, tuple(runs), paired=False, verdict="")


def build(side: Column, base: Column, metric: derived.Metric = PLAIN) -> tuple[Row, Versus, list[str]]:
    footnotes = Footnotes()
    row = RowBuilder([base, side], 0, footnotes).row(metric)
    found = row.versus[1]
    assert found is not None
    return row, found, footnotes.texts


@pytest.mark.parametrize(
    ("side", "base", "kind", "centre"),
    [
        ([2.0, 2.2, 2.1], [1.0, 1.1, 1.2], "ratio", None),
        ([2.0, 0.0, 2.1], [1.0, 1.1, 1.2], "difference", (4.1 - 3.3) / 3),
        ([2.0, 2.2, 2.1], [0.0, 1.1, 1.2], "difference", (6.3 - 2.3) / 3),
        ([-1.0, 2.2, 2.1], [1.0, 1.1, 1.2], "difference", 0.0),
        ([2.0, 2.2, 2.1], [0.0, 0.0, 0.0], "inf", None),
        ([0.0, 0.0, 0.0], [0.0, 0.0, 0.0], "?", None),
        ([0.0, 0.0, 0.0], [1.0, 1.1, 1.2], "difference", -1.1),
    ],
)
def test_zero_has_a_difference_and_no_ratio(
    side: list[float], base: list[float], kind: str, centre: float | None
) -> None:
    _, found, _ = build(column("b", side), column("a", base))
    assert found.kind == kind
    if centre is not None:
        assert found.centre == pytest.approx(centre, abs=1e-12)
    if kind in ("inf", "?"):
        assert (found.centre, found.low, found.mark) == (None, None, "")
    numbers = (found.centre, found.low, found.high, found.p)
    assert all(number is None or math.isfinite(number) for number in numbers)


@pytest.mark.parametrize(("steps", "flagged"), [(1, True), (2, True), (3, False), (0, False), (None, False)])
def test_a_value_under_three_steps_of_its_source_is_flagged(steps: float | None, flagged: bool) -> None:
    """Zero steps are zero, not coarse; a source without steps has none to count."""
    row, _, footnotes = build(
        column("b", [0.0 if steps == 0 else 1.0] * 3, [steps] * 3), column("a", [1.0] * 3, [50] * 3)
    )
    assert (footnotes == ["under three times its source's resolution"]) == flagged
    assert bool(row.cells[1].notes) == flagged
    assert row.cells[0].notes == ()


def test_quantiles_of_neighbouring_buckets_cannot_be_told_apart() -> None:
    """A quantile is the middle of its bucket: three alike are known no better than one."""
    plain = build(column("b", [43.0] * 3), column("a", [38.9] * 3))[1]
    assert plain.mark == ""
    rounded = [row for row in derived_ebpf.EBPF if row.footnote == derived_ebpf.BUCKETS]
    assert {row.rounding for row in (*rounded, *derived_ebpf.DISK)} == {derived_ebpf.BUCKET}
    bucket = replace(PLAIN, rounding=derived_ebpf.BUCKET)
    assert build(column("b", [43.0] * 3), column("a", [38.9] * 3), bucket)[1].mark == "~"
    assert build(column("b", [86.0] * 3), column("a", [38.9] * 3), bucket)[1].mark == ""


def test_percentages_differ_in_points_beside_their_ratio() -> None:
    share = replace(PLAIN, unit="%", shown="%")
    _, found, _ = build(column("b", [60.0, 62.0, 61.0]), column("a", [30.0, 31.0, 29.0]), share)
    assert found.kind == "ratio"
    assert found.points == pytest.approx(31.0)
    _, plain, _ = build(column("b", [60.0, 62.0, 61.0]), column("a", [30.0, 31.0, 29.0]))
    assert plain.points is None


def test_quantiles_are_those_of_each_repeat(tmp_path: Path) -> None:
    """p99 of repeats 30, 33 and 60 ms: their mean and the t interval of their logs, nothing pooled."""
    old = [replace(oltp(), latency_ms=ms) for ms in (10.0, 10.5, 11.0)]
    new = [replace(oltp(), latency_ms=ms) for ms in (10.0, 11.0, 20.0)]
    sides, reference = resolve([str(make_execution(tmp_path / "x", {"old": old, "new": new}, "old"))])
    row = compare(sides, reference).row("latency_p99")
    assert row is not None
    assert row.cells[1].repeats == pytest.approx((0.030, 0.033, 0.060))
    assert row.cells[1].value == pytest.approx(0.041)
    expected = stats.ratio([30.0, 33.0, 60.0], [30.0, 31.5, 33.0], paired=True)
    found = row.versus[1]
    assert found is not None
    assert (found.centre, found.low, found.high) == pytest.approx(
        (expected.centre, expected.low, expected.high)
    )
