"""Rows have the values that their formulas give: by hand, of kept recordings, and in the shown unit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import Golden
from damage import ask
from loadprint.catalogue.dimensions import dimension, flaw
from loadprint.catalogue.files import catalogue
from loadprint.catalogue.formula import Formula
from loadprint.catalogue.metric import Metric
from recordings import Host, Rows, Tables, counters, histogram, histograms, make_run, metrics

KEPT = Path(__file__).parents[1] / "recordings" / "v1"
# their tests compute the ledgers from states and samples, and the spikes from series
ELSEWHERE = ("time_", "cputime_", "connections_storage", "checkpoint_spikes")


def values_of(*runs: Path) -> list[dict[str, Any]]:
    """The values of all rows of each run."""
    answer = ask("compare", *runs, "--all", "--format", "json")
    assert answer.status == 0, answer.line
    return [
        {key: cells[place]["value"] for (_, key), cells in answer.cells.items()} for place in range(len(runs))
    ]


def test_the_values_of_kept_recordings_and_of_a_run_with_every_table(complete: Path, golden: Golden) -> None:
    """In base units. Between different operations there are also costs per statement, commit and CPU-second.

    The values were those of an independent computation from the columns of the files when they were written.
    """
    found = [*values_of(KEPT / "oltp", KEPT / "insert"), values_of(complete, complete)[0]]
    keys = sorted({key for values in found for key in values if not key.startswith(ELSEWHERE)})
    rows = [[values.get(key) for values in found] for key in keys]
    lines = [
        " ".join([key, *("-" if value is None else f"{value:.7g}" for value in row)])
        for key, row in zip(keys, rows, strict=True)
    ]
    golden("values.txt", "\n".join(["row oltp insert complete", *lines]) + "\n")


def by_hand(ticks: range) -> Tables:
    """Tables of few readings with round numbers."""
    plain: dict[str, Rows] = {
        "energy": counters(
            ticks,
            {"energy_uj": 5_000_000},
            control="intel-rapl",
            zone="package-0",
            max_energy_range_uj=2**38,
        ),
        "frequency": [{"tick": tick, "cpu": "0", "khz": 1_000_000 * tick} for tick in ticks],
        # the first event was scheduled in half of the time
        "perf": [
            row
            for event, value, running in (("cycles", 1000, 500), ("instructions", 3000, 1000))
            for row in counters(
                ticks,
                {"value": value, "enabled_ns": 1000, "running_ns": running},
                event=event,
                cpus="server",
            )
        ],
        "cgroup": counters(
            ticks,
            {"nr_periods": 10, "nr_throttled": 2, "throttled_us": 50_000},
            role="server",
            path="/",
            quota_us=100,
            throttled_ns=None,
        ),
        "ebpf_syscalls": [
            row
            for syscall, calls in (("fsync", 3), ("fdatasync", 4), ("read", 90))
            for row in counters(ticks, {"count": calls, "errors": 0}, role="server", syscall=syscall)
        ],
        "sockets": [
            row | {"tcp_tw": 10 * row["tick"]}
            for row in counters(ticks, {"active_opens": 11}, role="server", namespace="1")
        ],
    }
    mysql: dict[str, int | Callable[[int], int]] = {
        "Innodb_buffer_pool_reads": 5,
        "Innodb_buffer_pool_read_requests": 1000,
        "Innodb_row_lock_time": 30,
        "Innodb_data_fsyncs": 12,
        "Innodb_buffer_pool_pages_dirty": lambda tick: 100 * tick,
        "Innodb_buffer_pool_pages_data": lambda _: 1000,
    }
    waited = {"time_ns": 6000, "count": 1000, "user_ns": 0, "system_ns": 0}
    plain["ebpf_states"] = counters(ticks, waited, role="server", threads="connection", state="run queue")
    waits = histogram(ticks, (0, 970, 20, 10), 6000, role="server", state="run queue")
    return {name: (rows, {"shape": "table"}) for name, rows in plain.items()} | {
        "mysql": metrics(ticks, mysql),
        "vmstat": metrics(ticks, {"pswpin": 7}),
        "ebpf_sched": histograms([waits]),
    }


# in base units; the rates are those of `Host` and `by_hand`, read at ticks 1, 2 and 3
BY_HAND = {
    "cpu_server_user": 10,  # % of CPU 0: 10 of 100 ticks
    "cpu_server_utilisation": 10 + 4 + 1,
    "cpu_server_kernel_share": 100 * (4 + 1) / (10 + 4 + 1),
    "cpu_host_iowait": 20 / 2,  # of two CPUs
    "process_server_cpu": (9 + 3) / 100,  # of 100 ticks a second
    "process_server_rss": 2048 * 4096,
    "disk_vda_r_await": 20e-3 / 10,
    "disk_vda_await": (20e-3 + 120e-3) / (10 + 40),
    "disk_vda_f_await": 16e-3 / 8,
    "disk_vda_write_kb": 1600 * 512,
    "disk_vda_wareq": 1600 * 512 / 40,
    "disk_vda_aqu": 140e-3,
    "disk_vda_util": 100 * 100e-3,
    "nic_veth0_tx": 1_024_000,
    "switches_server": 1500,
    "pressure_cpu": 100 * 50_000e-6,
    "latency_p95": 20e-3,
    "statements": 2000,
    "server_cpu_per_operation": (9 + 3) / 100 / 100,
    "disk_write_kb_per_operation": 1600 * 512 / 100,
    "power_package": 5,
    "frequency_server_mean": 2e9,
    "frequency_server_least": 1e9,
    "perf_cycles": 1000 / 0.5,
    "ipc": 3000 / (1000 / 0.5),
    "cgroup_throttled": 100 * 2 / 10,
    "cgroup_held": 50_000e-6,
    "syncs_server": 3 + 4,
    "syscalls_server": 3 + 4 + 90,
    "opens_server": 11,
    "time_wait_server": 10 * 3,
    "swapped_in": 7 * 4096,
    "buffer_pool_miss": 100 * 5 / 1000,
    "row_lock": 30e-3,
    "fsyncs_per_operation": 12 / 100,
    "dirty_pages": 100 * 200 / 1000,
    "waiting_run_queue": 6e-6,
    "runq_p50": (1000 + 1999) / 2 * 1e-9,  # the middle of its bucket
    "runq_p99": (2000 + 3999) / 2 * 1e-9,
}


def test_rows_by_hand(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", Host(seconds=2, more=by_hand))
    found = values_of(run, run)[0]
    assert {key: found[key] for key in BY_HAND} == pytest.approx(BY_HAND)


def test_the_page_prints_formulas_with_their_unit(tmp_path: Path) -> None:
    assert ask("report", KEPT / "oltp", "-o", tmp_path / "page.html").status == 0
    page = (tmp_path / "page.html").read_text()
    assert 'data-tip="disk.vda.write_sectors, in B/s' in page
    assert 'data-tip="disk.vda.writes' in page


ROWS = [row for rows in catalogue().groups.values() for row in rows]
# of variables of the server, whose units are not recorded
WITHOUT_UNIT = {"connections_storage", "rows_changed"}
OPERATION = catalogue().works["operation"][0].formula
ROWS += [
    replace(cost.metric, formula=cost.metric.formula.per(OPERATION))
    for cost in catalogue().costs
    if not cost.row.only_per
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.key)
def test_the_unit_of_a_row_is_that_of_its_formula(row: Metric) -> None:
    assert (dimension(row.formula.tree) is None) == (row.key in WITHOUT_UNIT)
    assert (row.shown == "%") == row.formula.text.startswith("100 ×")
    assert flaw(row) == ""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("mean(memory.HugePages_Free)", ""),
        ("status.Com_commit", "/s"),
        ("status.Bytes_sent", "kB/s"),
        ("mysql.Innodb_row_lock_time / mysql.Innodb_row_lock_waits", "ms"),
        ("variables.innodb_buffer_pool_size", "MiB"),
        ("variables.max_connections", ""),
        ("energy.package.energy_uj", "W"),
        ("frequency.server.mean_khz", "MHz"),
        ("storage.data.write_sectors", "kB/s"),
        ("process.server.cpu", "cores"),
        ("100 * process.server.cpu / cpu.server.cores", "%"),
        ("disk.vda.absent | 0", "/s"),
        ("max(vmstat.pgmajfault - 5, 0)", "/s"),
        ('"nic.eth0.100.rx_bytes" / load.queries', "B"),
        ('p99("ebpf_sched.server.run queue.buckets")', "µs"),
        ("p50(ebpf_block_size.vda.read.buckets)", "kB"),
        ("scrape.anything", "W"),
    ],
)
def test_a_unit_that_fits_or_is_not_known_is_accepted(text: str, shown: str) -> None:
    assert flaw(Metric("a", "a", shown, Formula.parse(text))) == ""
