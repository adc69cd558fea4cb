"""Windows of the measure phase: late reads, wraps, threads and processes that come and go, set clocks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from loadprint.errors import InputError
from loadprint.metrics.sources import SERVER_RESTARTED
from loadprint.reading.cpusets import parse_cpus
from reads import known, measured
from recordings import SECOND, agreed, change_column, change_json, change_rows, make_run

SWITCHES = "threads.server.voluntary_ctxt_switches"


@pytest.mark.parametrize("below", [100, 1500])
def test_a_wrapped_disk_time_is_added_back_and_reported(tmp_path: Path, below: int) -> None:
    """It wraps before the window, or in it."""
    run = make_run(tmp_path / "run")
    change_column(
        run / "server/disk.parquet", "write_ms", lambda row: (2**32 - below + row["write_ms"]) % 2**32
    )
    found = measured(run).quantities
    assert found.values["disk.vda.write_ms"].rate == pytest.approx(0.120)
    assert any("wrapped" in note for note in found.warnings) == (below == 1500)


def test_threads_that_start_or_end_are_counted_and_reported(tmp_path: Path) -> None:
    path = make_run(tmp_path / "run") / "server/threads.parquet"
    table = pq.read_table(path)
    counters = dict.fromkeys(table.column_names[5:], 0)
    born = {"role": "server", "pid": 900, "tid": 77, "comm": "connection", **counters}
    rows = [{**born, "tick": tick, "voluntary_ctxt_switches": 40 * (tick - 5)} for tick in range(5, 11)]
    pq.write_table(pa.Table.from_pylist(table.to_pylist() + rows, table.schema), path)
    found = measured(agreed(path)).quantities
    assert found.values[SWITCHES].rate == pytest.approx(1500 + 40 * 5 / 20)
    assert any("server threads ended" in note for note in found.notes)


@pytest.mark.parametrize(
    ("given", "expected"), [("0-2,5", (0, 1, 2, 5)), ([1, 0], (0, 1)), (3, (3,)), ("", None)]
)
def test_cpu_lists(given: object, expected: object) -> None:
    assert parse_cpus(given, "here") == expected


def test_a_pid_that_is_used_again_is_another_process(tmp_path: Path) -> None:
    """The second process has used far more than the first: nothing may be subtracted across."""
    run, half = make_run(tmp_path / "run"), 11

    def reborn(row: dict[str, Any]) -> dict[str, Any]:
        if row["role"] == "server" and row["tick"] >= half:
            more = dict.fromkeys(("utime", "stime", "voluntary_ctxt_switches", "on_cpu_ns"), 10**9)
            more["starttime"] = 500
            return {name: value + more.get(name, 0) if name in more else value for name, value in row.items()}
        return row

    for name in ("process", "threads"):
        change_rows(run / f"server/{name}.parquet", reborn)
    result = measured(run)
    window, values = known(result.window), result.quantities.values
    seconds = window.last - window.first
    # 9 + 3 ticks of 10 ms a second, but for the second in which one ended and the other began
    assert values["process.server.cpu"].rate == pytest.approx(0.12 * (seconds - 1) / seconds)
    assert SERVER_RESTARTED in result.quantities.warnings
    assert values["threads.server.number"].rate == 2
    # the second thread is born in the window and counts from zero, as every such thread does
    second = 1000 + 1500 * window.last + 10**9
    assert values[SWITCHES].count == 1500 * (half - 1 - window.first) + second


def test_a_probe_that_is_read_late_has_a_window_of_its_own(tmp_path: Path) -> None:
    """On a stalled host a background read outlasts its tick: those at both ends are not entirely inside."""
    run = make_run(tmp_path / "run")
    plain = measured(run)
    window = known(plain.window)

    def late(row: dict[str, Any]) -> dict[str, Any]:
        if row["probe"] in ("nic", "threads") and row["tick"] == window.first:
            row["start_ns"] -= SECOND
        if row["probe"] in ("nic", "threads") and row["tick"] == window.last:
            row["end_ns"] += 10 * SECOND
        return row

    result = measured(change_rows(run / "server/ticks.parquet", late))
    other = known(result.window)
    assert (other.first, other.last) == (window.first, window.last)
    assert other.ends("nic") == other.ends("threads") == (window.first + 1, window.last - 1)
    for name in ("nic.veth0.rx_bytes", SWITCHES):
        rate = plain.quantities.values[name].rate
        assert result.quantities.values[name].rate == pytest.approx(rate), name


@pytest.mark.parametrize("hours", [1, -1])
def test_a_clock_that_is_set_while_recording_moves_nothing_within_one_boot(
    tmp_path: Path, hours: int
) -> None:
    run = make_run(tmp_path / "run")
    plain = measured(run)
    change_column(
        run / "server/ticks.parquet",
        "realtime_ns",
        lambda row: row["realtime_ns"] + (hours * 3600 * SECOND if row["tick"] >= 7 else 0),
    )
    assert measured(run).quantities.values == plain.quantities.values

    # Between hosts only the realtime clock relates the two, and it is unknown which half of it was right.
    change_json(run / "server/fingerprint.json", boot_id="another")
    with pytest.raises(InputError, match="the clock was set by 3600 s during the recording"):
        measured(run)
