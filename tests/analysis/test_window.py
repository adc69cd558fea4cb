"""Counters to increases: wraps, resets, backward steps; and a window whose percentages are known by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from loadprint.derived import DISK, KERNEL, LATENCY, THROUGHPUT, cpu_metrics
from loadprint.errors import InputError
from loadprint.gather import Measured, gather, parse_cpus
from loadprint.queries import Store
from loadprint.recording import open_run
from loadprint.rows import evaluate
from loadprint.window import increase
from recordings import Host, make_run


def readings(*values: float) -> np.ndarray:
    return np.array(values, dtype=float)


def test_a_counter_rises_by_last_minus_first() -> None:
    found = increase(readings(5, 7, 7, 20))
    assert found is not None
    assert (found.amount, found.wraps, found.resets) == (15, 0, 0)


def test_a_32_bit_counter_that_wraps_keeps_counting() -> None:
    found = increase(readings(2**32 - 10, 2**32 - 1, 4, 9))
    assert found is not None
    assert (found.amount, found.wraps, found.resets) == (19, 1, 0)


def test_a_reset_counts_on_from_zero_and_is_said() -> None:
    found = increase(readings(1000, 1010, 3, 8))
    assert found is not None
    assert (found.amount, found.wraps, found.resets) == (10 + 3 + 5, 0, 1)


def test_iowait_may_step_back() -> None:
    found = increase(readings(100, 110, 108, 120), may_step_back=True)
    assert found is not None
    assert (found.amount, found.resets) == (20, 0)


def test_fields_the_kernel_does_not_print_are_not_zero() -> None:
    assert increase(readings(np.nan, np.nan)) is None


def measured(path: Path, host: Host | None = None) -> Measured:
    return gather(open_run(make_run(path, host)), Store())


def value(run: Measured, key: str) -> float:
    table = (
        *cpu_metrics("server"),
        *cpu_metrics("load"),
        *(m.of("vda") for m in DISK),
        *KERNEL,
        *THROUGHPUT,
        *LATENCY,
    )
    found, why = evaluate(next(metric for metric in table if metric.key == key), run)
    assert found is not None, why
    return found


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("cpu_server_user", 10.0),
        ("cpu_server_system", 4.0),
        ("cpu_server_iowait", 20.0),
        ("cpu_server_utilisation", 15.0),
        ("cpu_server_kernel_share", 100 * 5 / 15),
        ("cpu_load_utilisation", 40.0),
        ("process_server_cpu", 0.12),
        ("disk_vda_r_await", 0.002),
        ("disk_vda_w_await", 0.003),
        ("disk_vda_await", 0.0028),
        ("disk_vda_write_kb", 1600 * 512.0),
        ("disk_vda_wareq", 40 * 512.0),
        ("disk_vda_util", 10.0),
        ("switches_server", 1500.0),
        ("switches_host", 4000.0),
        ("interrupts_server", 300.0),
        ("pressure_io", 5.0),
        ("operations", 100.0),
        ("latency_p99", 0.030),
    ],
)
def test_values_known_by_hand(tmp_path: Path, key: str, expected: float) -> None:
    assert value(measured(tmp_path / "run"), key) == pytest.approx(expected, rel=1e-9)


def test_ticks_outside_the_phase_do_not_count(tmp_path: Path) -> None:
    run = measured(tmp_path / "run", Host(seconds=20))
    assert run.window is not None
    assert (run.window.first, run.window.last) == (1, 21)
    assert run.window.ticks == 21


def test_a_value_under_three_steps_of_its_source_is_flagged(tmp_path: Path) -> None:
    cpus = {"0": {"user": 10, "idle": 90}, "1": {"idle": 100}}
    run = measured(tmp_path / "run", Host(seconds=2, cpus=cpus, server_ticks={"utime": 1, "stime": 0}))
    found, said = evaluate(next(m for m in cpu_metrics("server") if m.key == "process_server_cpu"), run)
    assert found is not None
    assert "three times" in said


def test_a_wrapped_disk_time_is_added_back_and_said(tmp_path: Path) -> None:
    path = make_run(tmp_path / "run")
    table = pq.read_table(path / "server" / "disk.parquet")
    times = [int(value or 0) for value in table["write_ms"].to_pylist()]
    wrapped = [(2**32 - 100 + value) % 2**32 for value in times]
    place = table.schema.get_field_index("write_ms")
    pq.write_table(table.set_column(place, "write_ms", pa.array(wrapped)), path / "server" / "disk.parquet")
    run = gather(open_run(path), Store())
    assert value(run, "disk_vda_w_await") == pytest.approx(0.003)
    whole = [2**32 - 1500 + value for value in times]
    pq.write_table(
        table.set_column(place, "write_ms", pa.array([v % 2**32 for v in whole])),
        path / "server" / "disk.parquet",
    )
    run = gather(open_run(path), Store())
    assert value(run, "disk_vda_w_await") == pytest.approx(0.003)
    assert any("wrapped" in note for note in run.quantities.oddities)


def test_threads_that_come_and_go_are_counted_and_said(tmp_path: Path) -> None:
    path = make_run(tmp_path / "run")
    rows = pq.read_table(path / "server" / "threads.parquet").to_pylist()
    fields = (
        "voluntary_ctxt_switches",
        "nonvoluntary_ctxt_switches",
        "on_cpu_ns",
        "run_delay_ns",
        "timeslices",
    )
    born = {"role": "server", "pid": 900, "tid": 77, "comm": "connection"}
    rows += [{"tick": t, **born, **dict.fromkeys(fields, 0), fields[0]: 40 * (t - 5)} for t in range(5, 11)]
    meta = pq.read_schema(path / "server" / "threads.parquet").metadata
    pq.write_table(
        pa.Table.from_pylist(rows).replace_schema_metadata(meta), path / "server" / "threads.parquet"
    )
    run = gather(open_run(path), Store())
    assert value(run, "switches_server") == pytest.approx(1500 + 40 * 5 / 20)
    assert any("server threads ended" in note for note in run.quantities.notes)


def test_a_probe_without_a_table_is_missing_with_its_reason(tmp_path: Path) -> None:
    path = make_run(tmp_path / "run")
    (path / "server" / "pressure.parquet").unlink()
    run = gather(open_run(path), Store())
    found, why = evaluate(next(m for m in KERNEL if m.key == "pressure_io"), run)
    assert found is None
    assert "pressure" in why


@pytest.mark.parametrize(
    ("given", "expected"), [("0-2,5", (0, 1, 2, 5)), ([1, 0], (0, 1)), (3, (3,)), ("", None)]
)
def test_cpu_lists(given: object, expected: object) -> None:
    assert parse_cpus(given, "here") == expected


def test_a_broken_cpu_list_names_its_place() -> None:
    with pytest.raises(InputError, match="here: 'zero' is no CPU list"):
        parse_cpus("zero", "here")
