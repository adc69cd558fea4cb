"""The generator's intervals: lengths by their stamps, rates per second, gaps."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from damage import ask
from loadprint.judging import steady
from loadprint.metrics.gather import Measured, gather
from loadprint.reading.queries import Store
from loadprint.reading.recording import open_run
from loadprint.reading.time_series import Series
from recordings import MEASURE, REALTIME, SECOND, Host, change_rows, make_run, write_table

COUNTS = ("events", "queries", "reads", "writes", "others")
Row = tuple[float, Any]


def recording(path: Path, rows: Sequence[Row | dict[str, Any]]) -> Path:
    """Make a run with this series: (end, events) or columns of each row; ends in seconds."""
    made = make_run(path, Host(seconds=60))
    table = []
    for place, row in enumerate(rows):
        columns = dict(row) if isinstance(row, dict) else {"end": row[0], "events": row[1]}
        end = round(columns.pop("end") * SECOND)
        stamps = {"monotonic_ns": MEASURE + end, "realtime_ns": REALTIME + end}
        table.append({"second": place, "type": "event", **stamps, **columns})
    write_table(made / "load" / "throughput.parquet", table, {"probe": "throughput", "shape": "table"})
    (made / "manifest.json").unlink()
    return made


def read(path: Path) -> tuple[Measured, Series]:
    """What a comparison and a chart see of a run's series."""
    measured = gather(open_run(path), Store(), brief=True)
    return measured, measured.quantities.series["load.events"]


def noisy(count: int) -> list[float]:
    return [float(round(rate)) for rate in np.random.default_rng(11).normal(1000, 50, count)]


def test_a_count_is_divided_by_the_length_of_its_interval(tmp_path: Path) -> None:
    counts = [5000, 5100, 4900, 5050, 4950, 5000]
    rows = [(10.0 * place + 10.01, count) for place, count in enumerate(counts)]
    measured, series = read(recording(tmp_path / "run", rows))

    assert np.allclose(measured.events_per_second, np.array(counts) / 10, rtol=0.002)
    assert measured.step_s == pytest.approx(10)
    assert np.allclose(series.values, np.array(counts) / 10, rtol=0.002)
    assert np.allclose(series.half, 5, atol=0.01)
    assert measured.quantities.why("load.cv") == "the generator reports every 10 s, not every second"


def test_closing_rows_of_each_column_are_one_interval(tmp_path: Path) -> None:
    """What sysbench's runs of a minute had: a line short, then a row for each column."""
    events = noisy(61)
    rows: list[Any] = [
        {"end": place + 1.0, **dict.fromkeys(COUNTS, count)} for place, count in enumerate(events[:60])
    ]
    # written when sysbench had ended, a second after the window
    rows += [{"end": 62 + place / 1e6, name: events[60]} for place, name in enumerate(COUNTS)]
    path = recording(tmp_path / "run", rows)
    measured, series = read(path)

    assert len(measured.events_per_second) == len(series.values) == 61
    assert np.allclose(measured.events_per_second, events)
    assert series.seconds[-1] + float(np.asarray(series.half)[-1]) == pytest.approx(61)
    assert ask("compare", path, path).status == 0


@pytest.mark.parametrize(
    ("rows", "events", "charted"),
    [
        # a line that came late changes no rate
        ([(end, 100) for end in (1, 2, 4.0, 4.001, 5, 6)], [100] * 6, [100] * 5),
        # the last part of a second belongs to the second before
        ([(1, 100), (2, 100), (3, 100), (3.2, 20)], [100] * 3, [100] * 3),
        # a first report that counts from before the window is a gap
        ([(3, 500), (13, 500), (23, 500), (33, 500)], [math.nan, 50, 50, 50], [math.nan, 50, 50, 50]),
    ],
)
def test_rates_of_reports_at_odd_times(
    tmp_path: Path, rows: list[Row], events: list[float], charted: list[float]
) -> None:
    measured, series = read(recording(tmp_path / "run", rows))
    assert measured.events_per_second.tolist() == pytest.approx(events, rel=0.01, nan_ok=True)
    assert series.values.tolist() == pytest.approx(charted, rel=0.01, nan_ok=True)


def test_lengths_too_unlike_have_no_common_steps(tmp_path: Path) -> None:
    ends = [place / 1e6 for place in range(1, 30)] + [20.0, 60.0]
    measured, series = read(recording(tmp_path / "run", [(end, 100) for end in ends]))

    assert len(measured.events_per_second) == 0
    assert series.values[-1] == pytest.approx(2.5)


def test_missing_seconds_are_gaps(tmp_path: Path) -> None:
    rows = [(place + 1, None if place == 8 else 100 + place) for place in range(60)]
    path = recording(tmp_path / "run", rows)
    gaps = (0, 20, 21)
    change_rows(path / "load/throughput.parquet", lambda row: None if row["second"] in gaps else row)
    measured, _ = read(path)

    result = measured.events_per_second
    assert np.flatnonzero(np.isnan(result)).tolist() == [0, 8, 20, 21]
    assert result[1:8].tolist() == list(range(101, 108))
    assert result[22:].tolist() == pytest.approx(range(122, 160))
    assert steady.together([measured]) is not None


ODD: dict[str, Callable[[int], Any]] = {
    "all null": lambda place: None,
    "all zero": lambda place: 0.0,
    "constant": lambda place: 500.0,
    "infinite": lambda place: float("inf"),
    "one infinite": lambda place: float("inf") if place == 30 else 500.0 + place % 7,
    "1e308": lambda place: 1e308,
    "one 1e308": lambda place: 1e308 if place == 30 else 500.0 + place % 7,
    "1e-90": lambda place: 1e-90 * (1 + place % 7),
    "negative": lambda place: -5.0,
    "every other one": lambda place: 500.0 + place % 7 if place % 2 else None,
    "one of all": lambda place: 500.0 if place == 30 else None,
}


@pytest.mark.parametrize("name", ODD)
def test_every_command_takes_odd_values(tmp_path: Path, name: str) -> None:
    good = make_run(tmp_path / "good", Host(seconds=60))
    odd = recording(tmp_path / "odd", [(place + 1, ODD[name](place)) for place in range(60)])
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        answer = ask("compare", good, odd, "--all")
        assert (answer.status, answer.line) == (0, "")
        assert "nan" not in answer.out.lower().replace("nanosecond", "")
        assert ask("report", good, odd, "-o", tmp_path / "page.html").status == 0


def test_odd_values_give_a_reason_for_the_missing_spread(tmp_path: Path) -> None:
    for place, name in enumerate(("all null", "infinite", "1e308", "negative", "all zero")):
        rows = [(second + 1, ODD[name](second)) for second in range(60)]
        run = open_run(recording(tmp_path / str(place), rows))
        result = gather(run, Store(), brief=True)
        assert "fewer than 5 seconds" in result.quantities.why("load.cv"), name
    rows = [(second + 1, ODD["one infinite"](second)) for second in range(60)]
    result = gather(open_run(recording(tmp_path / "one", rows)), Store(), brief=True)
    assert result.quantities.values["load.cv"].rate == pytest.approx(0.004, abs=0.001)
