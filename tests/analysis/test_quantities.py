"""Quantities of a window: wraps, births, restarts, set clocks, sums, what is missing; queries of files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from damage import ask
from loadprint.errors import InputError
from loadprint.metrics.hardware import siblings_of
from loadprint.metrics.host import SERVER_RESTARTED
from loadprint.reading.cpusets import parse_cpus
from loadprint.reading.queries import Store
from loadprint.reading.run_documents import Fingerprint
from reads import known, measured, quantities
from recordings import (
    SECOND,
    Host,
    Rows,
    Tables,
    agreed,
    change_column,
    change_json,
    change_metadata,
    change_rows,
    histogram,
    histograms,
    make_run,
    metrics,
    of_mysql,
)

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
    first, last = window.ends("cpu")
    seconds = last - first
    # 9 + 3 ticks of 10 ms a second, but for the second in which one ended and the other began
    assert values["process.server.cpu"].rate == pytest.approx(0.12 * (seconds - 1) / seconds)
    assert SERVER_RESTARTED in result.quantities.warnings
    assert values["threads.server.number"].rate == 2
    # the second thread is born in the window and counts from zero, as every such thread does
    second = 1000 + 1500 * last + 10**9
    assert values[SWITCHES].count == 1500 * (half - 1 - first) + second


def test_a_probe_that_is_read_late_has_a_window_of_its_own(tmp_path: Path) -> None:
    """On a stalled host a background read outlasts its tick: those at both ends are not entirely inside."""
    run = make_run(tmp_path / "run")
    plain = measured(run)
    first, last = known(plain.window).ends("cpu")

    def late(row: dict[str, Any]) -> dict[str, Any]:
        if row["probe"] in ("nic", "threads") and row["tick"] == first:
            row["start_ns"] -= SECOND
        if row["probe"] in ("nic", "threads") and row["tick"] == last:
            row["end_ns"] += 10 * SECOND
        return row

    result = measured(change_rows(run / "server/ticks.parquet", late))
    other = known(result.window)
    assert other.ends("cpu") == (first, last)
    assert other.ends("nic") == other.ends("threads") == (first + 1, last - 1)
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


def kernel(ticks: range) -> Tables:
    """Seven waits a second of more than 4 µs, none for the network; fsyncs that begin in mid-window."""
    waits = histogram(ticks, [0, 0, 0, 7], 3_000_000_000, role="server", state="lock")
    none = histogram(ticks, [0, 0, 0, 0], 0, role="server", state="network")
    fsyncs = histogram(ticks, [0, 0, 20, 0], 60_000, born=8, role="server", syscall="fsync")
    return {"ebpf_sched": histograms([waits, none]), "ebpf_syscall_latency": histograms([fsyncs])}


def test_histograms_without_values_and_of_entities_that_appear_in_the_window(tmp_path: Path) -> None:
    found = quantities(make_run(tmp_path / "run", Host(seconds=20, more=kernel)))
    # beyond the last bound there is only a least value
    assert found.values["p99(ebpf_sched.server.lock.buckets)"].rate == pytest.approx(4e-6)
    assert found.values["ebpf_sched.server.network.sum_ns"].rate == 0
    assert found.get("p50(ebpf_sched.server.network.buckets)") is None
    assert "did not occur" in found.why("p50(ebpf_sched.server.network.buckets)")
    # cumulative counts of its last tick, over the whole window
    assert found.values["ebpf_syscall_latency.server.fsync.buckets"].count == 20 * 21


def test_statements_and_bytes_of_the_probe_are_not_the_loads(tmp_path: Path) -> None:
    probe = of_mysql({"loadprint.queries": 3, "loadprint.bytes_sent": 700})
    # the generator's window has 21 seconds: 300 questions and 9000 bytes a second, one question its own
    grown = {"Questions": 300 * 21 + 1, "Bytes_sent": 9000 * 21, "Bytes_received": 40 * 21}
    found = quantities(make_run(tmp_path / "run", Host(seconds=20, more=probe, grown=grown)))
    assert found.values["server.questions"].rate == pytest.approx(300 - 3)
    assert found.values["server.bytes_sent"].rate == pytest.approx(9000 - 700)
    assert found.values["server.bytes_received"].rate == pytest.approx(40)
    assert found.why("mysql.Qcache_hits") == "this server does not report Qcache_hits"


TABLE = {"shape": "table"}
RANGE = 4_000_000  # µJ: the meters wrap several times, and each interval is less than an eighth


def processor(ticks: range) -> Tables:
    """200 instructions to 100 cycles, counted half of the time; 300 kµJ a second that wrap at 1 J."""
    events = {"cycles": (100, 4), "instructions": (200, 4), "branches": (None, 0)}
    perf: Rows = [
        {"tick": t, "event": event, "cpus": "server", "value": rate and rate * t}
        | {"enabled_ns": 8 * t, "running_ns": running * t}
        for event, (rate, running) in events.items()
        for t in ticks
    ]
    zones = {
        ("intel-rapl", "package-0"): 300_000,
        ("intel-rapl", "package-0/core"): 200_000,
        ("intel-rapl", "package-0/dram"): 50_000,
        ("intel-rapl", "psys"): 900_000,
        ("intel-rapl-mmio", "package-0"): 300_000,
    }
    energy: Rows = [
        {"tick": t, "control": control, "zone": zone, "energy_uj": rate * t % RANGE}
        | {"max_energy_range_uj": RANGE}
        for (control, zone), rate in zones.items()
        for t in ticks
    ]
    return {"perf": (perf, TABLE), "energy": (energy, TABLE)}


def limits(ticks: range) -> Tables:
    """A group that was held back in a quarter of its periods, inside one that was in a tenth."""
    listed = (("/", 0, None), ("/db", 10, 200_000), ("/db/mysqld", 25, 100_000))
    groups: Rows = [
        {"tick": t, "role": "server", "path": path, "quota_us": quota, "nr_periods": 100 * t}
        | {"nr_throttled": throttled * t, "throttled_us": 20_000 * t, "throttled_ns": None}
        for path, throttled, quota in listed
        for t in ticks
    ]
    rates = {"bw_in": 3, "pps": 0}
    drivers = {
        f"{n}.{name}_allowance_exceeded": rate for name, rate in rates.items() for n in ("ens5", "ens6")
    }
    return {"cgroup": (groups, TABLE), "ethtool": metrics(ticks, drivers)}


def test_events_are_those_of_the_servers_set_scaled_to_all_of_the_time(tmp_path: Path) -> None:
    actual = quantities(make_run(tmp_path / "run", Host(more=processor)))
    assert actual.values["perf.server.cycles"].rate == pytest.approx(200)
    assert actual.values["perf.server.instructions"].rate == pytest.approx(400)
    assert actual.get("perf.server.branches") is None
    assert "no free counter" in actual.why("perf.server.branches")


def test_energy_is_whole_across_the_wraps_of_its_own_range(tmp_path: Path) -> None:
    actual = quantities(make_run(tmp_path / "run", Host(more=processor)))
    assert actual.values["energy.package.energy_uj"].rate == pytest.approx(0.3)
    assert actual.values["energy.dram.energy_uj"].rate == pytest.approx(0.05)
    assert not actual.warnings


def test_both_threads_of_a_core_in_one_set_are_each_others_siblings() -> None:
    # another die of the package has a core 0 too
    cpus = [{"cpu": n, "package": 0, "core": 0, "siblings": f"{n % 2},{n % 2 + 2}"} for n in range(4)]
    fingerprint = Fingerprint.model_validate({"cpus": {"list": cpus}})
    assert siblings_of(fingerprint, (0, 1)) == (2, 3)
    assert siblings_of(fingerprint, (0, 2)) == (0, 2)
    assert siblings_of(fingerprint, None) == (0, 1, 2, 3)
    assert siblings_of(Fingerprint(), (0, 1)) == ()


def test_quotas_of_nested_groups_and_allowances_of_all_interfaces(tmp_path: Path) -> None:
    actual = quantities(make_run(tmp_path / "run", Host(more=limits)))
    assert actual.values["cgroup.server.throttled"].rate == pytest.approx(0.25)
    assert actual.values["cgroup.server.held"].rate == pytest.approx(0.02)
    assert actual.values["allowance.bw_in"].rate == pytest.approx(6)
    assert actual.values["allowance.pps"].rate == 0


def test_status_at_both_ends_stands_in_for_the_probe(tmp_path: Path) -> None:
    # MariaDB: the reads of its handlers include temporary tables and sorts
    grown = {"Rows_read": 210, "Innodb_row_lock_time": 4200, "Innodb_data_fsyncs": 63}
    grown |= {f"Handler_read_{how}": 999 for how in ("first", "last", "next", "prev", "rnd", "rnd_next")}
    actual = quantities(make_run(tmp_path / "run", Host(grown=grown)))
    assert actual.values["mysql.rows_read"].rate == pytest.approx(10)
    assert actual.values["mysql.row_lock_ms"].rate == pytest.approx(0.2)
    assert actual.values["mysql.fsyncs"].rate == pytest.approx(3)
    assert actual.get("mysql.redo") is None


def table(path: Path, ticks: list[int], values: list[float] | list[int]) -> Path:
    kind = pa.float64() if isinstance(values[0], float) else pa.uint64()
    columns = {"tick": pa.array(ticks, pa.uint32()), "value": pa.array(values, kind)}
    pq.write_table(pa.table(columns), path)
    return path


def larger(than: float) -> str:
    return f"SELECT tick, value::DOUBLE AS value FROM t WHERE value > {than}"


def test_the_same_query_of_another_file_gives_the_other_files_rows(tmp_path: Path) -> None:
    store = Store()
    first = table(tmp_path / "a.parquet", [0, 1, 2], [5, 6, 7])
    second = table(tmp_path / "b.parquet", [3, 4, 5], [50, 60, 70])
    assert store.fetch(first, larger(5))["value"].tolist() == [6.0, 7.0]
    assert store.fetch(second, larger(5))["value"].tolist() == [50.0, 60.0, 70.0]
    assert store.fetch(second, larger(55))["value"].tolist() == [60.0, 70.0]
    assert store.fetch(first, larger(5), between=[(0, 1)])["value"].tolist() == [6.0]
    assert store.fetch(first, larger(0), at=(0, 2))["value"].tolist() == [5.0, 7.0]


def test_whole_numbers_and_fractions_are_doubles(tmp_path: Path) -> None:
    store = Store()
    whole = table(tmp_path / "whole.parquet", [0, 1], [1, 2**63])
    broken = table(tmp_path / "broken.parquet", [0, 1], [1.5, 2.5])
    for path, wanted in ((whole, [1.0, 2.0**63]), (broken, [1.5, 2.5]), (whole, [1.0, 2.0**63])):
        result = store.fetch(path, "SELECT value::DOUBLE AS value FROM t")["value"]
        assert result.tolist() == wanted
        assert result.dtype == "float64"


def test_names_with_signs_of_patterns_and_quotes_are_one_file(tmp_path: Path) -> None:
    store = Store()
    for name in ("it's.parquet", "run[1].parquet", "a*.parquet", "b?.parquet"):
        path = table(tmp_path / name, [0], [len(name)])
        table(tmp_path / "ab.parquet", [0], [0])
        assert store.fetch(path, larger(0))["value"].tolist() == [float(len(name))]


def test_a_missing_column_is_an_error(tmp_path: Path) -> None:
    path = table(tmp_path / "a.parquet", [0], [1])
    with pytest.raises(InputError, match=r"a\.parquet: cannot be read"):
        Store().fetch(path, "SELECT absent FROM t")


def sets_of(run: Path) -> Path:
    """Give the server both CPUs of the run."""
    facts = run / "server/fingerprint.json"
    change_json(facts, cpusets={"server": [0, 1], "load": [1]})
    change_json(run / "run.json", roles={"server": {"cpus": [0, 1]}, "load": {"cpus": [1]}})
    return run


def test_one_cpu_whose_idle_time_jumps_back_has_no_sum(tmp_path: Path) -> None:
    """The kernel's correction is larger than any step back, and the other CPU hides it in the sum."""
    run = sets_of(make_run(tmp_path / "run"))
    whole = quantities(run)
    change_column(
        run / "server/cpu.parquet",
        "idle",
        lambda row: 1_000_000 + row["idle"] - 3000 * (row["cpu"] == "0" and row["tick"] > 10),
    )
    found = quantities(run)
    assert found.get("cpu.server.idle") is None
    assert found.why("cpu.server.idle").startswith("it fell from 1,00")
    assert found.values["cpu.server.user"] == whole.values["cpu.server.user"]
    assert found.falls == 1
    [warning] = [text for text in found.warnings if "add up to" in text]
    assert "the server set's CPU times add up to 38 %" in warning
    assert not [text for text in whole.warnings if "add up to" in text]


def test_a_cpu_that_goes_offline_is_reported(tmp_path: Path) -> None:
    run = sets_of(make_run(tmp_path / "run"))
    change_rows(
        run / "server/cpu.parquet",
        lambda row: row if row["cpu"] != "1" or row["tick"] < 18 else None,
    )
    found = quantities(run)
    assert "a CPU of the server set went online or offline in the window" in found.warnings
    assert found.values["cpu.server.cores"].rate == pytest.approx(1.8)
    assert found.values["cpu.server.user"].rate == pytest.approx(0.1 + 0.3 * 0.8)


def test_cpus_that_are_never_online_together_have_the_times_of_each(tmp_path: Path) -> None:
    run = sets_of(make_run(tmp_path / "run"))
    change_rows(
        run / "server/cpu.parquet",
        lambda row: row if (row["tick"] < 12) == (row["cpu"] == "0") else None,
    )
    found = quantities(run)
    assert found.values["cpu.server.cores"].rate == pytest.approx(0.95)
    assert found.values["cpu.server.user"].rate == pytest.approx(0.1 * 0.5 + 0.3 * 0.45)
    assert not [text for text in found.warnings if "of the server set add up to" in text]
    course = found.series["cpu.server.user"].values
    assert course[~np.isnan(course)] == pytest.approx([0.1] * 11 + [0.3] * 10)


@pytest.mark.parametrize("bits", [None, 0, 2000, 64])
def test_a_width_that_no_counter_has_is_no_width(tmp_path: Path, bits: int | None) -> None:
    run = make_run(tmp_path / "run")
    change_metadata(run / "server/disk.parquet", lambda of: of["columns"]["writes"].update(bits=bits))
    found = quantities(run)
    assert found.values["disk.vda.writes"].rate == pytest.approx(40)


def test_what_a_read_left_out_is_a_warning(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    reason = "not read: 1 cell (line 2: field: `x` is not its value)"
    path = run / "server/ticks.parquet"
    change_column(path, "reason", lambda row: reason if row["probe"] == "disk" else None)
    warnings = [
        text for text in ask("compare", run, run, "--verbose").out.splitlines() if "probe disk" in text
    ]
    assert "reads were incomplete (not read: 1 cell (line 2:" in warnings[0]
