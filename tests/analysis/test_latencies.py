"""Latencies by transaction type from load/latency.parquet: sums, figures, parts of the measured time."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from loadprint.commands.report import distributions
from loadprint.errors import InputError
from loadprint.reading.latencies import LatencyHistogram, added, read
from loadprint.reading.queries import Store
from loadprint.reading.recording import Run, open_run
from reads import known
from recordings import Host, change_column, change_rows, make_run, write_latencies

MS = 1_000_000
KEPT = Path(__file__).parents[1] / "recordings" / "v1"


def histogram(run: Path, *segments: tuple[float, float]) -> LatencyHistogram | None:
    """The latencies of `event` within parts of `measure`, in seconds from its start; all without parts."""
    opened = open_run(run)
    begin = begin_of(opened)
    spans = [(begin + first * 1e9, begin + last * 1e9) for first, last in segments]
    return read(replace(opened, segments=tuple(spans) or None), Store()).get("event")


def begin_of(run: Run) -> int:
    measure = known(run.phase("measure"))
    return measure.begin_ns


def count(run: Path, *segments: tuple[float, float]) -> int:
    found = histogram(run, *segments)
    return found.total if found else 0


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Five seconds of 1, 2, 4, 8 and 16 latencies."""
    seconds = [[5 * MS] * 2**second for second in range(5)]
    return write_latencies(make_run(tmp_path / "run", Host(seconds=5)), "event", seconds)


def test_figures_are_those_of_hdrhistogram(tmp_path: Path) -> None:
    values = np.random.default_rng(3).lognormal(math.log(3 * MS), 0.8, 10_000).astype(int)
    values[:3] = 0, 1, 2047
    made = make_run(tmp_path / "run", Host(seconds=4))
    actual = known(histogram(write_latencies(made, "event", values.reshape(4, -1).tolist())))
    assert actual.total == 10_000
    assert actual.mean == pytest.approx(values.mean() / 1e9, rel=5e-4)
    assert actual.minimum == 0
    shares = np.array([0.0, 0.5, 0.95, 0.999, 1.0])
    exact = np.quantile(values, shares, method="inverted_cdf")
    # the highest value of the bucket, which is less than a thousandth above the lowest
    found = actual.quantiles(shares) * 1e9
    assert (found >= exact - 0.5).all()
    assert (found <= exact * (1 + 2**-10)).all()
    assert actual.maximum == pytest.approx(found[-1] / 1e9)


def test_the_latencies_of_the_generator_are_those_of_its_result() -> None:
    kept = open_run(KEPT / "tproc_c")
    result = kept.result.transactions
    actual = read(kept, Store())
    assert actual.keys() == result.keys()
    for kind, latencies in actual.items():
        wanted, known = result[kind].count, result[kind].latency_ms
        assert latencies.total == wanted
        quantiles = latencies.quantiles(np.array([0.5, 0.95, 0.99, 0.999]))
        figures = np.array([latencies.minimum, *quantiles, latencies.maximum])
        words = ("min", "p50", "p95", "p99", "p999", "max")
        assert figures * 1e3 == pytest.approx([known[word] for word in words], rel=1e-12)
        assert latencies.mean * 1e3 == pytest.approx(known["mean"], rel=5e-4)


def test_only_intervals_inside_of_a_segment_count(run: Path) -> None:
    assert count(run) == 31
    assert count(run, (0, 5)) == 31
    assert count(run, (1, 2)) == 2
    assert count(run, (1, 2), (3, 5)) == 2 + 8 + 16
    assert count(run, (0.5, 2.5)) == 2, "an interval that is partly inside does not count"
    assert count(run, (1, 2), (1, 3)) == 2 + 4, "nothing counts twice"
    assert count(run, (1.1, 1.9)) == 0


def test_an_interval_without_latencies_is_a_gap(run: Path) -> None:
    change_rows(run / "load/latency.parquet", lambda row: None if row["second"] == 2 else row)
    assert count(run, (3, 4)) == 8, "it begins a second before its end, not with the gap"


def test_an_interval_begins_where_one_without_latencies_ended(run: Path) -> None:
    """The throughput has every interval: the third one was late."""
    change_rows(run / "load/latency.parquet", lambda row: None if row["second"] == 2 else row)
    path, begin = run / "load/throughput.parquet", begin_of(open_run(run))
    table = pq.read_table(path)
    stamps = begin + np.array([1, 2, 3.25, 4, 5, 6]) * 1e9
    pq.write_table(table.append_column("monotonic_ns", pa.array(stamps.astype(int))), path)
    assert count(run, (3, 4)) == count(run, (3.25, 4)) == 8
    assert count(run, (3.3, 4)) == 0


def test_a_histogram_of_the_whole_run_is_in_no_part_of_it(run: Path) -> None:
    """An external generator prints one histogram at its end."""
    path = run / "load/latency.parquet"
    change_rows(path, lambda row: row | {"second": 0} if row["second"] == 4 else None)
    assert count(run) == count(run, (0, 5)) == 16
    assert count(run, (0, 4)) == count(run, (4, 5)) == 0


@pytest.mark.parametrize("column", ["from_ns", "to_ns", "count", "second", "monotonic_ns"])
@pytest.mark.parametrize("value", [None, -1, 2**63 - 1, math.nan])
def test_a_value_that_none_writes_is_left_out_or_refused(run: Path, column: str, value: float | None) -> None:
    kind = pa.float64() if isinstance(value, float) else pa.int64()
    path = run / "load/latency.parquet"
    change_column(path, column, lambda row: value if row["second"] == 3 else row[column], kind)
    with suppress(InputError):
        assert count(run) in {31, 31 - 8}
        assert count(run, (0, 5)) <= count(run)


def test_a_table_without_rows_has_no_latencies(run: Path) -> None:
    change_rows(run / "load/latency.parquet", lambda _: None)
    assert count(run) == count(run, (0, 5)) == 0


def test_added_histograms_have_the_values_of_both() -> None:
    def of(counts: list[int], lowers: list[float]) -> LatencyHistogram:
        return LatencyHistogram(np.array(counts), np.array(lowers), np.array(lowers) + 1)

    sums = added([of([1, 2], [3.0, 5.0]), of([4, 8], [1.0, 5.0])])
    assert sums.lowers.tolist() == [1, 3, 5]
    assert sums.uppers.tolist() == [2, 4, 6]
    assert sums.counts.tolist() == [4, 1, 10]


def test_the_histogram_of_a_side_has_all_values(run: Path, tmp_path: Path) -> None:
    other = make_run(tmp_path / "other", Host(seconds=5))
    write_latencies(other, "event", [range(0, 400 * MS, MS // 10)])
    sides = [(place, place, open_run(path)) for place, path in enumerate((run, other))]
    (percentiles,), (shown,) = distributions.latency(sides, 2, Store())
    assert percentiles.source == "latency.parquet"
    assert shown.totals == (31, 4000)
    assert [sum(shares) for shares in shown.shares if shares is not None] == pytest.approx([1, 1])
    five = np.searchsorted(shown.edges, 0.005) - 1
    assert shown.shares[0] is not None
    assert shown.shares[0][five] == 1
    assert shown.edges[-1] == pytest.approx(0.4, rel=1e-3)


def test_a_recording_with_a_log_of_latencies_has_the_quantiles_of_its_result() -> None:
    """Older recordings have an HdrHistogram log, load/latency.hlog, which is read no longer."""
    kept = open_run(KEPT / "oltp")
    assert (kept.path / "load/latency.hlog").is_file()
    assert read(kept, Store()) == {}
    (percentiles,), none = distributions.latency([(0, 0, kept)], 1, Store())
    assert none == ()
    assert percentiles.source == "result.json, a few quantiles: there is no latency.parquet"
