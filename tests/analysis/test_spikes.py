"""Checkpoint spikes in series with spikes of the test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from loadprint.reading.time_series import Series
from loadprint.series import spikes
from reads import quantities
from recordings import Host, make_run, of_mysql

CAPACITY = 100_000_000.0


def _series(seconds: int = 120, **values: Any) -> dict[str, Series]:
    """Quiet series: flushing 200 pages a second at a third of the capacity, 1000 operations a second."""
    random = np.random.default_rng(7)
    middle, reads = np.arange(seconds) + 0.5, np.arange(seconds + 1.0)
    made = {
        spikes.FLUSHED: (middle, random.normal(200, 20, seconds)),
        spikes.AGE: (reads, np.full(seconds + 1, 0.33 * CAPACITY)),
        spikes.CAPACITY: (reads, np.full(seconds + 1, CAPACITY)),
        spikes.EVENTS: (middle, random.normal(1000, 50, seconds)),
    }
    given = {key: values.get(key, both) for key, both in made.items()}
    return {key: Series(at, of, 0.0, at) for key, (at, of) in given.items()}


def _with(
    series: dict[str, Series],
    begin: int,
    end: int,
    *,
    age: float = 0.9,
    flushed: float = 1500,
    left: float = 0.5,
) -> dict[str, Series]:
    """Put a spike into whole seconds: checkpoint age, pages flushed, and what is left of throughput."""
    made = dict(series)
    for key, value in ((spikes.FLUSHED, flushed), (spikes.AGE, age * CAPACITY), (spikes.EVENTS, 1000 * left)):
        values = made[key].values.copy()
        values[begin : end + (key == spikes.AGE)] = value
        made[key] = replace(made[key], values=values)
    return made


def test_every_spike_is_found_where_it_is() -> None:
    series = _with(_with(_series(), 40, 44), 90, 92, left=0.2)

    result = spikes.find(series)

    assert [(spike.begin_s, spike.end_s, spike.what) for spike in result] == [
        (40, 44, spikes.STALL),
        (90, 92, spikes.STALL),
    ]
    assert result[0].throughput_drop == pytest.approx(0.5, abs=0.02)
    assert result[1].throughput_drop == pytest.approx(0.8, abs=0.02)


@pytest.mark.parametrize(
    "short_of", [{"age": 0.74}, {"flushed": 550}, {"end": 41}], ids=["age", "flushing", "two seconds"]
)
def test_what_is_just_short_of_a_spike_is_none(short_of: dict[str, float]) -> None:
    end = int(short_of.pop("end", 44))

    assert spikes.find(_with(_series(), 40, end, **short_of)) == ()


def test_flushing_without_a_throughput_drop_is_no_stall() -> None:
    (result,) = spikes.find(_with(_series(), 40, 44, left=0.75))
    assert result.what == spikes.HELD
    assert result.throughput_drop == pytest.approx(0.25, abs=0.02)

    series = _with(_series(), 40, 44)
    del series[spikes.EVENTS]
    (result,) = spikes.find(series)
    assert (result.what, result.throughput_drop) == (spikes.UNKNOWN, None)


def test_a_quiet_run_has_none_and_hardly_bursts() -> None:
    assert spikes.find(_series(3600)) == ()
    assert spikes.flush_burst(_series(3600)) == pytest.approx(1.23, abs=0.05)


def test_the_score_is_p99_over_the_median() -> None:
    series = _series(100)
    values = np.concatenate([np.full(95, 10.0), np.full(5, 250.0)])
    series[spikes.FLUSHED] = replace(series[spikes.FLUSHED], values=values)

    assert spikes.flush_burst(series) == 25


def test_a_median_of_nothing_gives_no_score_but_still_finds_spikes() -> None:
    series = _series()
    series[spikes.FLUSHED] = replace(series[spikes.FLUSHED], values=np.zeros(120))
    assert spikes.flush_burst(series) is None
    assert "no page was flushed" in spikes.why_no_burst(series)
    assert spikes.find(series) == ()

    series = _with(series, 40, 44)
    assert spikes.flush_burst(series) is None
    assert [(s.begin_s, s.end_s) for s in spikes.find(series)] == [(40, 44)]


def test_missed_ticks_are_neither_spikes_nor_errors() -> None:
    series = _with(_series(), 40, 50)
    for key in (spikes.FLUSHED, spikes.AGE, spikes.EVENTS):
        values = series[key].values.copy()
        values[[0, 45, 80]] = np.nan
        series[key] = replace(series[key], values=values)

    assert [(s.begin_s, s.end_s) for s in spikes.find(series)] == [(40, 45), (46, 50)]
    assert spikes.flush_burst(series) is not None


def test_short_series_and_missing_probes_say_why() -> None:
    short = _with(_series(25), 10, 14)
    assert spikes.find(short) == ()
    assert spikes.flush_burst(short) is None
    assert (
        spikes.why_no_spikes(short) == spikes.why_no_burst(short) == "the series is shorter than 30 seconds"
    )

    assert spikes.find({}) == ()
    assert spikes.flush_burst({}) is None
    assert "pages flushed" in spikes.why_no_spikes({})
    lacking = _series()
    del lacking[spikes.CAPACITY]
    assert "redo capacity" in spikes.why_no_spikes(lacking)
    assert spikes.flush_burst(lacking) is not None


def test_the_warm_up_does_not_count() -> None:
    series = _with(_series(), 2, 6)
    early = {key: replace(one, seconds=one.seconds - 20) for key, one in series.items()}

    assert spikes.find(early) == ()


def test_a_recording_with_a_spike_and_one_without_the_probe(tmp_path: Path) -> None:
    values: dict[str, int | Callable[[int], int]] = {
        "Innodb_buffer_pool_pages_flushed": lambda tick: 100 * tick + 1900 * min(max(tick - 19, 0), 5),
        "Innodb_redo_log_current_lsn": lambda tick: 1090 if 20 <= tick <= 25 else 1030,
        "Innodb_redo_log_checkpoint_lsn": lambda tick: 1000,
        "Innodb_redo_log_capacity_resized": lambda tick: 100,
    }

    host = Host(seconds=40, more=of_mysql(values), series=lambda second: 20 if 18 <= second < 24 else 100)
    with_spike = quantities(make_run(tmp_path / "spike", host))
    without = quantities(make_run(tmp_path / "plain", Host(seconds=40)))

    assert with_spike.values["mysql.checkpoint_spikes"].rate == 1
    assert with_spike.values["mysql.flush_burst"].rate == 20
    assert without.get("mysql.checkpoint_spikes") is None
    assert "mysql" in without.why("mysql.flush_burst")


def test_where_the_redo_capacity_is_a_setting_spikes_are_looked_for_too(tmp_path: Path) -> None:
    """MariaDB, and MySQL before 8.0.30, have no status counter of it."""
    probe = of_mysql({"Innodb_checkpoint_age": lambda tick: 300})
    variables = {"innodb_log_file_size": "1000", "innodb_log_files_in_group": "2"}
    series = quantities(make_run(tmp_path / "run", Host(variables=variables, more=probe))).series
    assert set(series[spikes.CAPACITY].values) == {2000.0}
