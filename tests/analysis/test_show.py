"""`loadprint show`: one run, or a part of it, as a table."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from conftest import oltp
from damage import ask
from every_table import complete_host
from reads import known, quantities
from recordings import Host, change_column, make_run

KEPT = Path(__file__).parents[1] / "recordings" / "v1" / "oltp"


def cells(*words: object) -> dict[str, list[float | None]]:
    """The figures of every row: mean, p95, maximum, per CPU-second."""
    shown = ask("show", *words, "--format", "json").document
    assert {tuple(pivot["columns"]) for pivot in shown["pivots"]} == {("mean", "p95", "max", "per CPU-s")}
    return {
        f"{pivot['title']}: {row}": figures
        for pivot in shown["pivots"]
        for row, figures in zip(pivot["rows"], pivot["cells"], strict=True)
    }


def test_means_are_those_of_compare_and_rates_are_also_per_cpu_second() -> None:
    rows = ask("compare", KEPT, KEPT, "--all", "--format", "json").rows
    cpu = quantities(KEPT).values["process.server.cpu"].rate
    shown = cells(KEPT)
    for name, key in (
        ("Throughput and latency: client statements", "statements"),
        ("CPU, server's set: %usr", "cpu_server_user"),
        ("Disk of the data: written", "disk_vda_write_kb"),
        ("Network: sent", "nic_veth_tx"),
    ):
        mean, _, _, per_cpu = shown[name]
        value = rows[key]["cells"][0]["value"]
        assert mean == pytest.approx(value)
        assert per_cpu == (None if key == "cpu_server_user" else pytest.approx(value / cpu))


def test_p95_and_maximum_are_over_the_intervals_of_the_window() -> None:
    disk = [row for row in pq.read_table(KEPT / "server/disk.parquet").to_pylist() if row["device"] == "vda"]
    series = quantities(KEPT).series["disk.vda.writes"]
    inside = (series.seconds - series.half >= 0) & (series.seconds + series.half <= 20)
    writes = series.values[inside]
    _, high, most, _ = cells(KEPT)["Disk of the data: writes"]
    assert (high, most) == pytest.approx((np.quantile(writes, 0.95), writes.max()))
    # a quotient of two increases, not a mean of quotients
    rows = sorted(disk, key=lambda row: row["tick"])
    times, counts = (np.diff([row[name] for row in rows]) for name in ("write_ms", "writes"))
    waits = times[counts > 0] / counts[counts > 0]
    largest = cells(KEPT)["Disk of the data: w_await"][2]  # s
    assert np.isclose(waits, 1000 * known(largest), rtol=1e-9).any()


def test_a_part_has_its_own_values_and_not_those_of_the_whole_phase(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", Host(seconds=20, events=100))
    change_column(
        run / "server/disk.parquet", "reads", lambda row: row["reads"] + 50 * max(0, row["tick"] - 11)
    )
    whole, part = cells(run), cells(run, "--from", 0, "--to", 9)
    later = cells(run, "--from", 12)
    name = "Disk of the data: reads"
    assert [part[name][0], later[name][0]] == pytest.approx([10, 60])
    assert 10 < (whole[name][0] or 0) < 60
    assert part["Throughput and latency: operations"][0] == pytest.approx(101)  # 100, 101, 102, 100 …
    assert "Throughput and latency: latency p95" in whole
    assert "Throughput and latency: latency p95" not in part


@pytest.mark.parametrize("words", [("--from", 5, "--to", 4), ("--to", 500), ("--from", -1)])
def test_a_part_that_is_none_is_refused(words: tuple[object, ...]) -> None:
    assert "is not a part of a measure phase of 20.0 s" in ask("show", KEPT, *words).line


def test_every_format_has_every_row(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", oltp())
    text, csv = ask("show", run).out, ask("show", run, "--format", "csv").out
    assert all(name.partition(": ")[2] in text for name in cells(run))
    written = cells(run)["Disk of the data: written"][0]
    assert f"disk_of_the_data,B/s,written,mean,{written}" in csv
    assert re.search(rf"written kB/s +{known(written) / 1024:,.0f} ", text)
    assert len(csv.splitlines()) == 1 + 4 * len(cells(run))
    assert len(cells(run, "--all")) > len(cells(run))
    assert "| %usr % |" in ask("show", run, "--format", "markdown").out


def test_what_is_of_the_whole_phase_only_is_not_in_a_part(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", complete_host(seconds=60))
    whole, part = cells(run, "--all"), cells(run, "--all", "--from", 10, "--to", 50)
    assert "Inside MySQL: flush burst, p99 / median" in whole
    assert [name for name in part if "burst" in name or name.endswith(": latency p99")] == []
    assert {name for name in part if name.startswith("Inside MySQL")} < set(whole)
    # states have a course too
    assert None not in whole["Inside MySQL: threads running (mean)"][:3]


def test_no_course_mixes_seconds_of_the_generator_and_of_the_recorder() -> None:
    """Costs are of both: their seconds begin at different times."""
    for words in ((), ("--from", 0, "--to", 9.5)):
        _, high, most, _ = cells(KEPT, "--all", *words)["Cost per operation: server CPU"]
        assert (high, most) == (None, None)


def test_a_counter_that_restarted_is_a_warning(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", Host(seconds=20))
    change_column(
        run / "server/disk.parquet", "reads", lambda row: row["reads"] if row["tick"] < 9 else row["tick"]
    )
    shown = ask("show", run, "--format", "json").document
    assert any("disk.vda.reads was reset 1x" in text for text in shown["warnings"])
