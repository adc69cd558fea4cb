"""Processor counters, energy, clock, siblings, quotas, allowances and sockets, on a host known by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from loadprint.metrics.gather import gather
from loadprint.metrics.quantities import Quantities
from loadprint.metrics.sources_hardware import siblings_of
from loadprint.reading.counters import increase
from loadprint.reading.queries import Store
from loadprint.reading.recording import open_run
from recordings import Host, Rows, make_run, write_json, write_manifest

Probes = dict[str, tuple[Rows, dict[str, Any]]]
RANGE = 1_000_000
TABLE = {"shape": "table"}


def quantities(path: Path, more: Callable[[range], Probes], host: Host | None = None) -> Quantities:
    made = make_run(path, Host(more=more) if host is None else host)
    return gather(open_run(made), Store()).quantities


def processor(ticks: range) -> Probes:
    """200 instructions to 100 cycles, counted half of the time; 300 kµJ a second that wrap at 1 J."""
    events = {"cycles": 100, "instructions": 200, "cache_misses": 7}
    perf: Rows = [
        {"tick": t, "event": event, "cpus": cpus, "value": rate * t, "enabled_ns": 8 * t, "running_ns": 4 * t}
        for event, rate in events.items()
        for cpus in ("load", "server")
        for t in ticks
    ]
    perf += [
        {
            "tick": t,
            "event": "branches",
            "cpus": "server",
            "value": None,
            "enabled_ns": 8 * t,
            "running_ns": 0,
        }
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
        {
            "tick": t,
            "control": control,
            "zone": zone,
            "energy_uj": rate * t % RANGE,
            "max_energy_range_uj": RANGE,
        }
        for (control, zone), rate in zones.items()
        for t in ticks
    ]
    clock: Rows = [
        {"tick": t, "cpu": cpu, "khz": khz + t % 2}
        for cpu, khz in (("0", 3_000_000), ("1", 1_000_000))
        for t in ticks
    ]
    return {"perf": (perf, TABLE), "energy": (energy, TABLE), "frequency": (clock, TABLE)}


def limits(ticks: range) -> Probes:
    """A group that was held back in a quarter of its periods, inside one that was in a tenth."""
    groups: Rows = [
        {
            "tick": t,
            "role": role,
            "path": path,
            "nr_periods": 100 * t,
            "nr_throttled": throttled * t,
            "throttled_us": 20_000 * t,
            "throttled_ns": None,
            "quota_us": quota,
        }
        for role, path, throttled, quota in (
            ("server", "/", 0, None),
            ("server", "/db", 10, 200_000),
            ("server", "/db/mysqld", 25, 100_000),
        )
        for t in ticks
    ]
    names = {"bw_in": 3, "pps": 0}
    drivers: Rows = [
        {"metric": f"{nic}.{name}_allowance_exceeded", "tick": t, "value": rate * t}
        for name, rate in names.items()
        for nic in ("ens5", "ens6")
        for t in ticks
    ]
    sockets: Rows = [
        {
            "tick": t,
            "role": role,
            "namespace": "1",
            "tcp_tw": 40 + t if role == "load" else 0,
            "active_opens": 6 * t if role == "load" else 0,
            "passive_opens": 0,
            "retrans_segs": 0,
        }
        for role in ("load", "server")
        for t in ticks
    ]
    volumes: Rows = [
        {
            "tick": t,
            "controller": "nvme0",
            **{f"{name}_exceeded_us": 0 for name in ("volume_throughput", "instance_iops")},
            "volume_iops_exceeded_us": 250_000 * t,
            "instance_throughput_exceeded_us": None,
        }
        for t in ticks
    ]
    return {
        "cgroup": (groups, TABLE),
        "ethtool": (drivers, {"shape": "metrics"}),
        "sockets": (sockets, TABLE),
        "nvme": (volumes, TABLE),
    }


def test_events_are_those_of_the_servers_set_scaled_to_all_of_the_time(tmp_path: Path) -> None:
    actual = quantities(tmp_path / "run", processor)
    rates = {name: quantity.rate for name, quantity in actual.values.items()}
    assert rates["perf.server.cycles"] == pytest.approx(200)
    assert rates["perf.server.instructions"] == pytest.approx(400)
    assert actual.get("perf.server.branches") is None
    assert "no free counter" in actual.why("perf.server.branches")


def test_energy_is_whole_across_the_wraps_of_its_own_range(tmp_path: Path) -> None:
    actual = quantities(tmp_path / "run", processor)
    package, dram = actual.get("energy.package"), actual.get("energy.dram")
    assert package is not None
    assert dram is not None
    assert package.rate == pytest.approx(0.3)
    assert dram.rate == pytest.approx(0.05)
    assert not actual.warnings


def test_a_fall_below_half_of_the_range_is_a_reset() -> None:
    wrapped = increase(np.array([900.0, 50.0]), wraps=(1000.0,))
    reset = increase(np.array([280.0, 300.0, 50.0]), wraps=(1000.0,))
    assert wrapped is not None
    assert reset is not None
    assert (wrapped.amount, wrapped.wraps, wrapped.resets) == (150.0, 1, 0)
    assert (reset.amount, reset.wraps, reset.resets) == (70.0, 0, 1)


def test_the_clock_is_that_of_the_servers_cpus(tmp_path: Path) -> None:
    actual = quantities(tmp_path / "run", processor)
    mean, least = actual.get("frequency.server.mean"), actual.get("frequency.server.least")
    assert mean is not None
    assert least is not None
    assert mean.rate == pytest.approx(3e9, rel=1e-6)
    assert least.rate == 3e9


def test_the_sibling_of_the_servers_cpu_is_the_loads(tmp_path: Path) -> None:
    path = make_run(tmp_path / "run")
    fingerprint = path / "server" / "fingerprint.json"
    told = json.loads(fingerprint.read_text())
    told["cpus"]["list"][1]["core"] = 0
    write_json(fingerprint, told)
    write_manifest(path)
    actual = gather(open_run(path), Store()).quantities
    user = actual.get("cpu.siblings.user")
    assert user is not None
    assert user.rate == pytest.approx(0.30)
    apart = gather(open_run(make_run(tmp_path / "apart")), Store()).quantities
    assert "no CPU shares a core" in apart.why("cpu.siblings.user")


def test_both_threads_of_a_core_in_one_set_are_each_others_siblings() -> None:
    cpus = [{"cpu": n, "package": 0, "core": n % 2} for n in range(4)]
    fingerprint = {"cpus": {"list": cpus}}
    assert siblings_of(fingerprint, (0, 1)) == (2, 3)
    assert siblings_of(fingerprint, (0, 2)) == (0, 2)
    assert siblings_of(fingerprint, None) == (0, 1, 2, 3)
    assert siblings_of({}, (0, 1)) == ()


def test_quotas_allowances_volumes_and_ports(tmp_path: Path) -> None:
    actual = quantities(tmp_path / "run", limits)
    rates = {name: quantity.rate for name, quantity in actual.values.items()}
    assert rates["cgroup.server.throttled"] == pytest.approx(0.25)
    assert rates["cgroup.server.held"] == pytest.approx(0.02)
    assert rates["allowance.bw_in"] == pytest.approx(6)
    assert rates["allowance.pps"] == 0
    assert rates["nvme.volume_iops"] == pytest.approx(0.25)
    assert rates["sockets.load.time_wait"] == 61
    assert rates["sockets.load.active_opens"] == pytest.approx(6)


def test_status_at_both_ends_stands_in_for_the_probe(tmp_path: Path) -> None:
    # MariaDB: the reads of its handlers include temporary tables and sorts
    grown = {"Rows_read": 210, "Innodb_row_lock_time": 4200, "Innodb_data_fsyncs": 63}
    grown |= {f"Handler_read_{how}": 999 for how in ("first", "last", "next", "prev", "rnd", "rnd_next")}
    actual = gather(open_run(make_run(tmp_path / "run", Host(grown=grown))), Store()).quantities
    rates = {name: quantity.rate for name, quantity in actual.values.items()}
    assert rates["mysql.rows_read"] == pytest.approx(10)
    assert rates["mysql.row_lock_ms"] == pytest.approx(0.2)
    assert rates["mysql.fsyncs"] == pytest.approx(3)
    assert actual.get("mysql.redo") is None


def test_errors_by_number_and_the_spread_of_the_seconds(tmp_path: Path) -> None:
    def stalls(second: int) -> int:
        return 25 if second == 4 else 100

    told = {"errors": 42, "errors_by_code": {"1213": 21, "1205": 21}, "generator": "native"}
    path = make_run(tmp_path / "run", Host(series=stalls, result=told))
    rates = {n: q.rate for n, q in gather(open_run(path), Store()).quantities.values.items()}
    assert rates["load.errors.1213"] == pytest.approx(1)
    assert rates["load.retries"] == pytest.approx(2)
    assert rates["load.worst_second"] == pytest.approx(0.25)
    assert rates["load.cv"] == pytest.approx(np.std([25, *[100] * 19], ddof=1) / np.mean([25, *[100] * 19]))
