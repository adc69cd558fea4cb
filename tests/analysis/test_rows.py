"""What a row claims of values that are zero, coarse, shares or quantiles, and which rows carry a verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from conftest import insert, oltp
from loadprint.catalogue.files import catalogue
from loadprint.catalogue.metric import Metric
from loadprint.catalogue.model import BUCKET
from loadprint.metrics.quantities import Quantities
from loadprint.reading.columns import CPU_FIELDS
from loadprint.statistics import stats
from loadprint.tables.groups import cpu_metrics
from loadprint.tables.marks import MAX_HEADLINES, marked_rows
from loadprint.tables.rows import COARSE, Column, RowBuilder, evaluate
from loadprint.tables.table import Row, Table, Versus
from reads import compared, known, repeat_of, row_of

PLAIN = row_of("row")


def column(
    name: str,
    values: Sequence[float],
    counts: Sequence[float | None] | None = None,
    *,
    cut: bool = False,
    version: str = "8.4.0",
) -> Column:
    """A side with these values of its repeats, in `counts` steps of a source that may round down (`cut`)."""
    runs = []
    for value, count in zip(values, counts or [None] * len(values), strict=True):
        quantities = Quantities()
        quantities.put("q", value, count, cut=cut)
        runs.append(repeat_of(quantities, name, {"version": version}))
    return Column(name, tuple(runs), paired=False)


def build(side: Column, base: Column, metric: Metric = PLAIN) -> tuple[Row, Versus]:
    row = RowBuilder([base, side], 0).row(metric)
    versus = known(row.versus[1])
    return row, versus


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
    _, result = build(column("b", side), column("a", base))
    assert result.kind == kind
    if centre is not None:
        assert result.centre == pytest.approx(centre, abs=1e-12)
    if kind in ("inf", "?"):
        assert (result.centre, result.low, result.mark) == (None, None, "")
    numbers = (result.centre, result.low, result.high, result.p)
    assert all(number is None or math.isfinite(number) for number in numbers)


@pytest.mark.parametrize(
    ("steps", "cut", "flagged"),
    [
        (1, False, True),
        (2, True, True),
        (3, True, False),
        (0, False, False),
        (0, True, True),
        (None, False, False),
    ],
)
def test_a_value_under_three_steps_of_its_source_is_flagged(
    steps: float | None, cut: bool, flagged: bool
) -> None:
    """A count of 0 events is exact, 0 ticks of a clock are fewer than one; some sources have no steps."""
    row, _ = build(
        column("b", [0.0 if steps == 0 else 1.0] * 3, [steps] * 3, cut=cut), column("a", [1.0] * 3, [50] * 3)
    )
    assert row.cells[1].notes == ((COARSE,) if flagged else ())
    assert row.cells[0].notes == ()


@pytest.mark.parametrize(
    ("base_cut", "side_steps", "kind"),
    [(False, 50, "inf"), (True, 50, "difference"), (False, 2, "difference")],
)
def test_a_base_below_its_resolution_has_no_infinite_ratio(
    base_cut: bool, side_steps: float, kind: str
) -> None:
    """A time below a millisecond is not 0, so that the ratio is not infinite."""
    base = column("a", [0.0] * 3, [0] * 3, cut=base_cut)
    side = column("b", [0.2, 0.3, 0.25], [side_steps] * 3, cut=base_cut)
    _, result = build(side, base)
    assert result.kind == kind
    assert result.centre == (None if kind == "inf" else pytest.approx(0.25))


def test_times_are_rounded_down_and_events_are_exact() -> None:
    quantities = Quantities()
    for name, unit in (("ms", 1e-3), ("jiffies", 1e-2), ("reads", 1.0), ("sectors", 512.0)):
        quantities.counter(name, np.array([7.0, 7.0]), np.array([0.0, 10.0]), unit)
    assert [name for name, result in quantities.values.items() if result.cut] == ["ms", "jiffies"]
    quantities.total("both", [quantities.values["ms"], quantities.values["reads"]])
    assert quantities.values["both"].cut


def test_busy_rows_count_only_busy_steps() -> None:
    """Two busy ticks among a thousand idle ones are two; kernel mode uses its own ticks."""
    quantities = Quantities()
    ticks = {"user": 40, "system": 2, "idle": 1958}
    for state in CPU_FIELDS:
        steps = float(ticks.get(state, 0))
        quantities.put(f"cpu.server.{state}", steps / 2000, steps, cut=True)
    quantities.put("cpu.server.cores", 1)
    run = repeat_of(quantities)
    result = {metric.label: evaluate(metric, run) for metric in cpu_metrics("server")[:5]}
    assert {label: round(value or 0.0, 3) for label, (value, _) in result.items()} == {
        "utilisation": 2.1,
        "kernel mode, of busy": 4.762,
        "%usr": 2.0,
        "%nice": 0.0,
        "%sys": 0.1,
    }
    assert [label for label, (_, said) in result.items() if said] == ["kernel mode, of busy", "%nice", "%sys"]


def test_a_footnote_names_the_repeats_that_lack_a_value() -> None:
    """It counts the repeats if some have a value."""
    wait = row_of("row", "q / n")

    def side(counts: Sequence[float]) -> Column:
        runs = column("b", [1.0] * len(counts)).runs
        for run, count in zip(runs, counts, strict=True):
            run.quantities.put("n", count)
        return Column("b", runs, paired=False)

    row, _ = build(side([1.0, 0.0, 2.0]), side([0.0, 0.0, 0.0]), wait)
    assert row.cells[1].value == pytest.approx(0.75)
    assert [cell.notes for cell in row.cells] == [
        ("nothing to divide by: n is 0",),
        ("missing in b, 1 of 3 repeats: nothing to divide by: n is 0",),
    ]


def test_quantiles_of_adjacent_buckets_are_not_distinguishable() -> None:
    """A quantile is the middle of its bucket: three equal ones have the error of one."""
    plain = build(column("b", [43.0] * 3), column("a", [38.9] * 3))[1]
    assert plain.mark == ""
    groups = catalogue().groups
    rounded = [row for row in (*groups["ebpf"], *groups["disk_histograms"]) if ".buckets)" in row.text]
    assert len(rounded) > 50
    assert {(row.rounding, "quantile" in row.footnote) for row in rounded} == {(BUCKET, True)}
    bucket = replace(PLAIN, rounding=BUCKET)
    assert build(column("b", [43.0] * 3), column("a", [38.9] * 3), bucket)[1].includes_no_effect
    assert build(column("b", [86.0] * 3), column("a", [38.9] * 3), bucket)[1].mark == ""


@pytest.mark.parametrize(
    ("version", "needed", "notes"),
    [
        ("8.0.36", "q", ("of the row",)),
        ("10.11.6-MariaDB", "q", ("of the row", "counted differently")),
        ("10.11.6-MariaDB", "absent", ()),
    ],
)
def test_a_definitions_footnotes_are_on_rows_that_they_apply_to(
    version: str, needed: str, notes: tuple[str, ...]
) -> None:
    """The second one only between flavours, none on a row without values."""
    metric = replace(row_of("row", needed), footnote="of the row", between_flavours="counted differently")
    row, _ = build(column("b", [1.0], version=version), column("a", [1.0]), metric)
    assert row.notes == notes


def test_percentages_have_points_in_addition_to_their_ratio() -> None:
    share = replace(PLAIN, shown="%")
    _, result = build(column("b", [60.0, 62.0, 61.0]), column("a", [30.0, 31.0, 29.0]), share)
    assert result.kind == "ratio"
    assert result.points == pytest.approx(31.0)
    _, plain = build(column("b", [60.0, 62.0, 61.0]), column("a", [30.0, 31.0, 29.0]))
    assert plain.points is None


def test_quantiles_are_those_of_each_repeat(tmp_path: Path) -> None:
    """p99 of repeats 30, 33 and 60 ms: their mean and the t interval of their logs, nothing pooled."""
    old = [replace(oltp(), latency_ms=ms) for ms in (10.0, 10.5, 11.0)]
    new = [replace(oltp(), latency_ms=ms) for ms in (10.0, 11.0, 20.0)]
    row = known(compared(tmp_path / "x", old=old, new=new).row("latency_p99"))
    assert row.cells[1].repeats == pytest.approx((0.030, 0.033, 0.060))
    assert row.cells[1].value == pytest.approx(0.041)
    expected = stats.ratio([30.0, 33.0, 60.0], [30.0, 31.5, 33.0], paired=True)
    result = known(row.versus[1])
    assert (result.centre, result.low, result.high) == pytest.approx(
        (expected.centre, expected.low, expected.high)
    )


# of what a run does by the table below, each side's part; three repeats apart by 0.5 %
LEVELS = {"a": 1.0, "b": 1.2, "c": 0.8, "d": 1.0}
REPEATS = (0.995, 1.0, 1.005)


def side_of(name: str, level: float, rows: int) -> Column:
    """A side that does `level` times as much in every row."""
    runs = (repeat_of({f"q.n{place}": level * repeat for place in range(rows)}, name) for repeat in REPEATS)
    return Column(name, tuple(runs), paired=False)


def judged(columns: Sequence[Column], reference: int, headlines: int = 2, others: int = 3) -> list[Row]:
    builder = RowBuilder(columns, reference)
    metrics = [row_of(f"row{n}", f"q.n{n}") for n in range(headlines + others)]
    rows = [
        replace(builder.row(metric), headline=n < headlines, better="higher")
        for n, metric in enumerate(metrics)
    ]
    return marked_rows(rows, [row.headline for row in rows], builder)


def marks(rows: Sequence[Row], side: int) -> list[str | None]:
    return [None if (versus := row.versus[side]) is None else versus.mark for row in rows]


def test_every_side_is_judged_against_the_named_reference() -> None:
    rows = judged([side_of(name, level, 5) for name, level in LEVELS.items()], reference=1)
    assert marks(rows, 0) == marks(rows, 2) == marks(rows, 3) == ["worse"] * 2 + ["*"] * 3
    assert marks(rows, 1) == [None] * 5
    assert [versus.centre for versus in rows[0].versus if versus] == pytest.approx(
        [1 / 1.2, 0.8 / 1.2, 1 / 1.2]
    )


def test_iowait_has_no_mark_of_a_difference() -> None:
    """A busy CPU hides it: no sentence, verdict or mark rests on it."""
    builder = RowBuilder([side_of(name, level, 5) for name, level in LEVELS.items()], 1)
    metric = row_of("cpu_server_user", "q.n0")
    both = [builder.row(metric), builder.row(replace(metric, key="cpu_server_iowait"))]
    assert marks(marked_rows(both, [False, False], builder), 0) == ["*", ""]


def test_an_interval_close_to_one_is_equivalent_although_it_may_exclude_one() -> None:
    sides = [side_of("a", 1.0, 5), side_of("b", 1.015, 5)]
    builder = RowBuilder(sides, 0)
    row = builder.row(row_of("row0", "q.n0"))
    (versus,) = [ratio for ratio in row.versus if ratio]
    assert 1 < known(versus.low) < 1.02 < known(versus.high) < 1.03
    found = [marks(marked_rows([row], [False], builder, None, within), 1) for within in (0.03, 0.02)]
    assert found == [["="], ["*"]]


def test_what_one_side_is_refused_for_is_no_matter_to_the_others() -> None:
    sides = [side_of(name, level, 5) for name, level in LEVELS.items()]
    rows = judged([sides[0], replace(sides[1], withheld="b never settled"), *sides[2:]], reference=0)
    assert marks(rows, 1) == ["*"] * 5  # shown, marked as any other row is, no verdict
    assert marks(rows, 2) == ["worse"] * 2 + ["*"] * 3
    assert marks(rows, 3) == ["="] * 5


def test_a_reference_that_never_settled_leaves_nobody_a_verdict() -> None:
    sides = [side_of(name, level, 5) for name, level in LEVELS.items()]
    rows = judged([replace(sides[0], withheld="a never settled"), *sides[1:]], reference=0)
    assert {mark for side in (1, 2, 3) for mark in marks(rows, side)} <= {"*", "=", "~"}


def test_rows_without_a_verdict_share_one_false_discovery_rate_of_each_side() -> None:
    """Marks are SciPy's Benjamini–Hochberg over the rows of one side, headlines apart."""
    random = np.random.default_rng(8)
    columns = []
    for name, shift in (("a", 0.0), ("b", 0.02), ("c", 0.05)):
        column_ = side_of(name, 1.0, 40)
        for run in column_.runs:
            for place in range(40):
                run.quantities.put(f"q.n{place}", math.exp(shift * (place % 2) + random.normal(0, 0.015)))
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
    table = compared(tmp_path / "x", a=two, b=two, c=inserts)
    headlines = [row.key for row in table.rows if row.headline]
    assert 4 <= len(headlines) <= MAX_HEADLINES
    assert {"operations", "statements", "disk_vda_await", "server_cpu_per_operation"} <= set(headlines)
    assert not [key for key in headlines if key.endswith(("per_commit", "per_statement", "CPU-second"))]
    assert "disk_vdb_await" not in headlines
    assert table.row("disk_vdb_await") is not None


def test_costs_are_those_of_a_statement_where_operations_differ(whole_table: Table) -> None:
    headlines = [row.key for row in whole_table.rows if row.headline]
    assert "server_cpu_per_statement" in headlines
    assert not [key for key in headlines if key.endswith(("per_operation", "per_commit", "CPU-second"))]
