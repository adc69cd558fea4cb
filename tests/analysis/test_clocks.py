"""The clocks of several hosts: offset, drift and steps change no figure, and the header reports them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from damage import ask
from host_recordings import measure_clock, skew, split
from loadprint.errors import InputError
from loadprint.metrics.gather import Measured
from loadprint.reading.queries import Store
from loadprint.reading.recording import open_run
from loadprint.series.series import run_series
from loadprint.tables.clocks_line import clocks_text
from reads import measured
from recordings import SECOND, change_column, change_rows, make_run

KEYS = ("cpu.server.user", "nic.veth0.tx_bytes", "threads.server.voluntary_ctxt_switches", "load.events")


def figures(run: Measured) -> list[float]:
    return [run.quantities.values[key].rate for key in KEYS]


def growing(path: Path) -> Path:
    """A run of two hosts whose server works harder every second, so that a wrong window has other figures."""
    run = split(path)
    return change_column(run / "server/nic.parquet", "tx_bytes", lambda row: 1000 * row["tick"] ** 2)


@pytest.mark.parametrize("seconds", [4, -4, 12])
def test_a_wrong_clock_of_the_load_changes_nothing_if_the_offset_was_measured(
    tmp_path: Path, seconds: int
) -> None:
    right, wrong = growing(tmp_path / "right"), growing(tmp_path / "wrong")
    measure_clock(right)
    skew(wrong, seconds)
    measure_clock(wrong, ahead=seconds)

    expected, result = measured(right), measured(wrong)

    assert figures(result) == pytest.approx(figures(expected), rel=1e-9)
    assert (result.window and result.window.first) == (expected.window and expected.window.first)
    way = "ahead of" if seconds > 0 else "behind"
    assert clocks_text([result]) == (
        f"load1 {abs(seconds)},000 ms {way} db1 ± 0.2 ms, drift under 19 ppm; aligned"
    )
    for key, series in run_series(open_run(wrong), Store()).items():
        assert series.seconds == pytest.approx(run_series(open_run(right), Store(), [key])[key].seconds)


def test_without_a_measured_offset_the_header_and_the_comparability_report_it(tmp_path: Path) -> None:
    run = growing(tmp_path / "run")
    skew(run, 4)

    assert clocks_text([measured(run)]) == (
        "the offset between load1 and db1 is not known: clock.jsonl is missing; taken as 0"
    )
    other = growing(tmp_path / "measured")
    measure_clock(other)
    comparable = ask("compare", run, other, "--format", "text").out
    assert "run has no record of the offset between its hosts' clocks" in " ".join(comparable.split())


def test_the_drift_is_followed(tmp_path: Path) -> None:
    run = growing(tmp_path / "run")
    measure_clock(run, ahead=-0.0003, drift=50e-6)

    assert clocks_text([measured(run)]) == "load1 0.31 ms behind db1 ± 0.2 ms, drift 50 ppm; aligned"


@pytest.mark.parametrize("step", [60, -60, -3])
def test_a_step_of_the_servers_clock_changes_no_rate_and_is_reported(tmp_path: Path, step: int) -> None:
    plain, stepped = growing(tmp_path / "plain"), growing(tmp_path / "stepped")
    measure_clock(plain)
    set_clock(stepped, step)
    measure_clock(stepped, server_step=step)

    result = measured(stepped)

    assert figures(result) == pytest.approx(figures(measured(plain)), rel=1e-9)
    sign = "+" if step > 0 else "−"
    assert clocks_text([result]).endswith(
        f"db1's clock was set by {sign}{abs(step)} s during the run; aligned on the monotonic clock"
    )


def test_a_step_of_the_loads_clock_changes_no_rate_and_is_reported(tmp_path: Path) -> None:
    plain, stepped = growing(tmp_path / "plain"), growing(tmp_path / "stepped")
    measure_clock(plain)
    measure_clock(stepped, load_step=60)

    result = measured(stepped)

    assert figures(result) == pytest.approx(figures(measured(plain)), rel=1e-9)
    assert "load1's clock was set by +60 s during the run" in clocks_text([result])


def test_a_step_on_one_host_is_reported(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    set_clock(run, 60)

    assert clocks_text([measured(run)]) == (
        "db1's clock was set by +60 s during the run; rates are on the monotonic clock"
    )
    assert clocks_text([measured(make_run(tmp_path / "calm"))]) == ""


def test_a_late_read_in_the_background_is_no_step(tmp_path: Path) -> None:
    """The recorder stores a late read at the next tick, with the stamps of the read."""
    run = growing(tmp_path / "run")

    def late(row: dict[str, Any]) -> dict[str, Any]:
        if row["probe"] == "nic" and row["tick"] in (9, 14, 15):
            return {**row, **{name: row[name] - round(1.02 * SECOND) for name in ("start_ns", "end_ns")}}
        return row

    change_rows(run / "server/ticks.parquet", late)

    assert run_series(open_run(run), Store(), ["nic"])["nic.veth0.tx_bytes"].seconds[0] == pytest.approx(
        0, abs=0.01
    )
    assert "was set" not in clocks_text([measured(run)])


def test_a_broken_reading_of_the_clocks_is_refused_with_its_line(tmp_path: Path) -> None:
    run = growing(tmp_path / "run")
    measure_clock(run)
    path = run / "load" / "clock.jsonl"
    before, after = path.read_text().splitlines()
    path.write_text(f"{before}\n{after[:40]}\n")
    assert len(open_run(run).exchanges) == 1  # a crash cut off the last line

    path.write_text(json.dumps(json.loads(before) | {"bound_ns": "0.2 ms"}) + f"\n{after}\n")
    with pytest.raises(InputError, match=r"clock.jsonl line 1: is not a reading of two clocks"):
        open_run(run)


def set_clock(run: Path, seconds: int) -> None:
    """Set the clock of the server at tick 9."""
    by = seconds * SECOND
    path = run / "server/ticks.parquet"
    change_column(path, "realtime_ns", lambda row: row["realtime_ns"] + (by if row["tick"] >= 9 else 0))
