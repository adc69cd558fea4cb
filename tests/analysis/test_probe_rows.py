"""Quantities of probes beyond their formulas (test_formulas.py): wraps, births, sums, and what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest
from loadprint.metrics.sources_hardware import siblings_of
from reads import quantities
from recordings import Host, Rows, Tables, histogram, histograms, make_run, metrics


def kernel(ticks: range) -> Tables:
    """Seven waits a second of more than 4 µs, none for the network; fsyncs that begin in mid-window."""
    waits = histogram(ticks, [0, 0, 0, 7], 3_000_000_000, role="server", state="lock")
    none = histogram(ticks, [0, 0, 0, 0], 0, role="server", state="network")
    fsyncs = histogram(ticks, [0, 0, 20, 0], 60_000, born=8, role="server", syscall="fsync")
    return {"ebpf_sched": histograms([waits, none]), "ebpf_syscall_latency": histograms([fsyncs])}


def test_histograms_without_values_and_of_entities_that_appear_in_the_window(tmp_path: Path) -> None:
    found = quantities(make_run(tmp_path / "run", Host(seconds=20, more=kernel)))
    # beyond the last bound there is only a least value
    assert found.values["sched.server.lock.p99"].rate == pytest.approx(4e-6)
    assert found.values["sched.server.network.sum"].rate == 0
    assert found.get("sched.server.network.p50") is None
    assert "did not occur" in found.why("sched.server.network.p50")
    # cumulative counts of its last tick, over the whole window
    assert found.values["syscall_latency.server.fsync.count"].count == 20 * 21


def test_statements_and_bytes_of_the_probe_are_not_the_loads(tmp_path: Path) -> None:
    def probe(ticks: range) -> Tables:
        return {"mysql": metrics(ticks, {"loadprint.queries": 3, "loadprint.bytes_sent": 700})}

    # the generator's window has 21 seconds: 300 questions and 9000 bytes a second, one question its own
    grown = {"Questions": 300 * 21 + 1, "Bytes_sent": 9000 * 21, "Bytes_received": 40 * 21}
    found = quantities(make_run(tmp_path / "run", Host(seconds=20, more=probe, grown=grown)))
    assert found.values["status.Questions"].rate == pytest.approx(300 - 3)
    assert found.values["status.Bytes_sent"].rate == pytest.approx(9000 - 700)
    assert found.values["status.Bytes_received"].rate == pytest.approx(40)
    assert "Qcache_hits" in found.why("mysql.qcache_hits")


TABLE = {"shape": "table"}
RANGE = 1_000_000


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
    assert actual.values["energy.package"].rate == pytest.approx(0.3)
    assert actual.values["energy.dram"].rate == pytest.approx(0.05)
    assert not actual.warnings


def test_both_threads_of_a_core_in_one_set_are_each_others_siblings() -> None:
    cpus = [{"cpu": n, "package": 0, "core": n % 2} for n in range(4)]
    fingerprint = {"cpus": {"list": cpus}}
    assert siblings_of(fingerprint, (0, 1)) == (2, 3)
    assert siblings_of(fingerprint, (0, 2)) == (0, 2)
    assert siblings_of(fingerprint, None) == (0, 1, 2, 3)
    assert siblings_of({}, (0, 1)) == ()


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
