"""Which rows are shown: as many as the published table has, all that have inputs, costs; names and widths."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import insert, oltp
from loadprint.commands.operands import resolve
from loadprint.commands.registry import COMMANDS
from loadprint.comparison.compare_sides import compare
from loadprint.rendering import layout, render_text
from loadprint.rendering.footnotes import Footnotes
from loadprint.rendering.layout import Layout
from loadprint.tables import views
from loadprint.tables.table import Table
from recordings import Host, Rows, make_execution, make_run
from test_hardware_rows import limits, processor
from test_probe_rows import HISTOGRAM, histogram, inside, kernel

LABEL = 32

# The per-operation metrics of a database benchmark, each with the row that shows it. `{}` is the data disk.
METRICS = {
    "tps": "operations",
    "qps_client": "statements",
    "qps_questions": "questions",
    "qps_queries": "queries",
    "nopm": "nopm",
    "tpm": "tpm",
    "lat_avg_ms": "latency_mean",
    "lat_p50_ms": "latency_p50",
    "lat_p95_ms": "latency_p95",
    "lat_p99_ms": "latency_p99",
    "lat_p999_ms": "latency_p999",
    "lat_max_ms": "latency_max",
    "tps_cv": "throughput_cv",
    "tps_min_over_median": "throughput_min_over_median",
    "err_per_kop": "errors_per_kop",
    "err_per_kop of 1213": "errors_1213_per_kop",
    "retries_per_kop": "retries_per_kop",
    "db_cpu_pct": "process_server_cpu",
    "db_cpu_us_per_op": "server_cpu_per_operation",
    "db_usr_us_per_op": "server_user_per_operation",
    "db_sys_us_per_op": "server_system_per_operation",
    "db_sys_share": "process_server_system_share",
    "client_cpu_us_per_op": "load_cpu_per_operation",
    "host_cpu_util_pct": "cpu_host_utilisation",
    "host_kernel_of_busy_pct": "cpu_host_kernel_share",
    "host_iowait_pct": "cpu_host_iowait",
    "instr_per_op": "instructions_per_operation",
    "ipc": "ipc",
    "llc_miss_per_op": "cache_misses_per_operation",
    "ctx_switch_per_op": "switches_per_operation",
    "vol_ctx_switch_per_op": "voluntary_switches_per_operation",
    "intr_per_op": "interrupts_per_operation",
    "disk_read_kb_per_op": "disk_read_kb_per_operation",
    "disk_write_kb_per_op": "disk_write_kb_per_operation",
    "disk_reads_per_op": "disk_reads_per_operation",
    "disk_writes_per_op": "disk_writes_per_operation",
    "disk_await_ms": "disk_vda_await",
    "disk_flush_per_op": "disk_flushes_per_operation",
    "net_rx_b_per_op": "net_rx_per_operation",
    "net_tx_b_per_op": "net_tx_per_operation",
    "proto_rx_b_per_op": "bytes_received_per_operation",
    "proto_tx_b_per_op": "bytes_sent_per_operation",
    "roundtrips_per_op": "round_trips_per_operation",
    "prepares_per_exec": "prepares_per_execute",
    "redo_b_per_op": "redo_per_operation",
    "fsync_per_op": "fsyncs_per_operation",
    "rows_read_per_op": "rows_read_per_operation",
    "bp_miss_ratio": "buffer_pool_miss",
    "pages_flushed_per_op": "pages_flushed_per_operation",
    "disk_per_redo_byte": "disk_write_per_redo_byte",
    "dirty_pct": "dirty_pages",
    "ckpt_age_frac": "checkpoint_age_max",
    "flush_burst": "flush_burst",
    "row_lock_wait_us_per_op": "row_lock_wait_per_operation",
    "qcache_hit_ratio": "qcache_hits",
    "joules_per_kop": "energy_per_operation",
}
# comparisons of more than two cells have a separate command
COMMAND_OF = {
    "speedup_n": "sweep",
    "efficiency_n": "sweep",
    "usl_sigma": "usl",
    "usl_kappa": "usl",
    "usl_lambda": "usl",
    "n_max": "usl",
    "cif": "ab",
}
STATUS = {
    "Questions": 2000 * 41,
    "Queries": 2100 * 41,
    "Com_stmt_prepare": 41,
    "Com_stmt_execute": 4100,
    "Com_stmt_close": 0,
    "Com_prepare_sql": 0,
    "Bytes_received": 90_000,
    "Bytes_sent": 800_000,
    "Innodb_rows_read": 5000,
    "Innodb_row_lock_time": 300,
    "Innodb_buffer_pool_reads": 10,
    "Innodb_buffer_pool_read_requests": 5000,
    "Qcache_hits": 40,
    "Qcache_inserts": 30,
    "Qcache_not_cached": 30,
}


def flushing(ticks: range) -> dict[str, tuple[Rows, dict[str, Any]]]:
    """The MySQL probe of `inside`, and pages that are flushed in every second."""
    rows, described = inside(ticks)["mysql"]
    flushed: Rows = [
        {"metric": "Innodb_buffer_pool_pages_flushed", "tick": t, "value": 40 * t, "text": None}
        for t in ticks
    ]
    return {"mysql": (sorted(rows + flushed, key=lambda row: row["metric"]), described)}


def everything(ticks: range) -> dict[str, tuple[Rows, dict[str, Any]]]:
    """All probes that a recorder can have, as far as the tests know them."""
    block = histogram({"device": "vda", "operation": "read", "stage": "device"}, [0, 900, 90, 0], 1, ticks)
    tcp = [
        {"port": "3306", "side": "accepted", "peer": "remote", "retransmits": 0, "opened": 0, **row}
        for row in histogram({}, [500, 400, 0, 0], 1, ticks)
    ]
    return (
        kernel(ticks)
        | processor(ticks)
        | limits(ticks)
        | flushing(ticks)
        | {"ebpf_block": (block, HISTOGRAM), "ebpf_tcp": (tcp, HISTOGRAM)}
    )


def full(k: int = 0, **changes: Any) -> Host:
    """A host with every probe, and a generator that reports every figure."""
    result = {
        "errors": 41,
        "errors_by_code": {"1213": 41},
        "generator": "native",
        "details": {"nopm": 5000.0, "tpm": 11000.0},
        "transactions": {"event": {"count": 20_000, "latency_ms": {"p50": 9.0, "p95": 20.0, "p99": 30.0}}},
    }
    return replace(oltp(k), seconds=40, more=everything, result=result, grown=STATUS, **changes)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Three repeats of two sides with every probe."""
    sides = {"old": [full(k) for k in (0, 1, 2)], "new": [full(k, switches=1800 + k) for k in (0, 1, 2)]}
    actual, declared = resolve([str(make_execution(tmp_path_factory.mktemp("x") / "x", sides, "old"))])
    return compare(actual, declared)


def test_no_metric_goes_missing(table: Table) -> None:
    missing = [f"{name}: no row {key}" for name, key in METRICS.items() if table.row(key) is None]
    empty = [
        f"{name}: {key} has no value"
        for name, key in METRICS.items()
        if (row := table.row(key)) is not None and any(cell.value is None for cell in row.cells)
    ]
    assert missing + empty == []
    assert set(COMMAND_OF.values()) <= set(COMMANDS)


def test_every_row_says_its_formula_and_fits(table: Table) -> None:
    rows = [row for group in table.groups for row in group.rows]
    assert len({row.key for row in rows}) == len(rows)
    assert [row.label for row in rows if len(row.label) > LABEL or not row.formula] == []
    for view in (views.usual(table), views.all_of(table)):
        assert max(map(len, render_text.render(view).splitlines())) <= render_text.WIDTH


def test_values_are_those_of_the_hosts_rates(table: Table) -> None:
    def value(key: str) -> float:
        row = table.row(key)
        assert row is not None
        assert row.cells[0].value is not None
        return row.cells[0].value

    operations = value("operations")
    assert value("ipc") == pytest.approx(2)
    assert value("instructions_per_operation") == pytest.approx(400 / operations, rel=1e-3)
    assert value("energy_per_operation") == pytest.approx(0.3 / operations, rel=1e-3)
    assert value("rows_read_per_operation") == pytest.approx(5000 / 41 / operations, rel=1e-3)
    assert value("row_lock_wait_per_operation") == pytest.approx(0.3 / 41 / operations, rel=1e-3)
    assert value("disk_write_per_redo_byte") == pytest.approx(1600 * 512 / 5000)
    assert value("prepares_per_execute") == pytest.approx(0.01)
    assert value("errors_1213_per_kop") == pytest.approx(1000 / operations, rel=1e-3)
    assert value("process_server_system_share") == pytest.approx(25)
    assert value("cpu_host_utilisation") == pytest.approx((15 + 40) / 2)


def test_sections_are_in_the_order_of_the_published_table(table: Table) -> None:
    shown = views.usual(table)
    sections = list(dict.fromkeys(group.section for group in shown.groups))
    assert sections == [
        "WORKLOAD",
        "CPU METRICS",
        "DISK METRICS",
        "NETWORK METRICS",
        "OTHER METRICS",
        "COSTS",
    ]
    assert 60 <= sum(len(group.rows) for group in shown.groups) <= 100


def test_marks_and_values_do_not_depend_on_the_view(table: Table) -> None:
    usual, whole = views.usual(table), views.all_of(table)
    rows = [row for group in usual.groups for row in group.rows]
    assert len(rows) < sum(len(group.rows) for group in whole.groups)
    for row in rows:
        other = whole.row(row.key)
        assert other is not None
        assert [(v.centre, v.low, v.mark) for v in row.versus if v] == [
            (v.centre, v.low, v.mark) for v in other.versus if v
        ]


def test_footnotes_are_numbered_as_they_are_met_and_all_are_used(table: Table) -> None:
    text = render_text.render(views.usual(table))
    shown = views.usual(table)
    footnotes = Footnotes(shown)
    cited = [footnotes.numbers((*row.notes, *(n for c in row.cells for n in c.notes))) for row in shown.rows]
    assert list(dict.fromkeys(number for row in cited for number in row)) == list(
        range(1, len(footnotes.texts) + 1)
    )
    assert len(footnotes.texts) < len(Footnotes(table).texts)
    assert all(
        f"{number} {note}" in " ".join(text.split()) for number, note in Layout(shown).numbered_footnotes()
    )
    assert f"{sum(len(g.rows) for g in table.groups) - sum(len(g.rows) for g in shown.groups)} more" in text


def test_a_group_of_nothing_but_zeros_is_named_and_not_shown(tmp_path: Path) -> None:
    idle = {"vda": {"writes": 40, "write_sectors": 80}, "vdb": {}}
    quiet: dict[str, dict[str, int]] = {"veth0": {}, "lo": {}}
    paths = [make_run(tmp_path / name, Host(disks=idle, nics=quiet)) for name in ("a", "b")]
    sides, declared = resolve([str(path) for path in paths])
    table = compare(sides, declared)
    assert not any(group.key.startswith("nic_") for group in table.groups)
    text = "\n".join(views.usual(table).method)
    assert "more rows with --all" in text


def test_of_an_nvme_namespace_with_multipath_only_its_paths_are_shown(tmp_path: Path) -> None:
    host = oltp()
    disks = dict.fromkeys(("vda", "nvme0n1", "nvme0c0n1", "nvme1n1"), host.disks["vda"])
    paths = [make_run(tmp_path / name, replace(host, disks=disks)) for name in ("a", "b")]
    sides, declared = resolve([str(path) for path in paths])
    table = compare(sides, declared)
    shown = {group.title for group in table.groups if group.key.startswith("disk_")}
    assert shown == {"Disk vda (data, redo)", "Disk nvme0c0n1", "Disk nvme1n1"}


def test_an_interface_that_one_side_did_not_use_has_no_ratio(tmp_path: Path) -> None:
    near = replace(oltp(), nics={"veth0": {}, "lo": {"rx_bytes": 50_000, "tx_bytes": 50_000}})
    paths = [make_run(tmp_path / "far", oltp()), make_run(tmp_path / "near", near)]
    sides, declared = resolve([str(path) for path in paths])
    table = compare(sides, declared)
    sent = table.row("nic_veth0_tx")
    assert sent is not None
    assert [cell.value for cell in sent.cells] == [1_024_000, 0]
    versus = sent.versus[1]
    assert versus is not None
    assert versus.kind == "none"
    assert "no traffic of near over veth0" in versus.notes[0]


def test_the_command_shows_the_view_that_is_asked_for(tmp_path: Path) -> None:
    runs = [str(make_run(tmp_path / "a", oltp())), str(make_run(tmp_path / "b", insert()))]

    def rows(*words: str) -> set[str]:
        command = [sys.executable, "-m", "loadprint", "compare", *runs, "--format", "csv", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return {row["metric"] for row in csv.DictReader(io.StringIO(done.stdout))}

    usual, everything, per_op = rows(), rows("--all"), rows("--per-op")
    assert per_op < everything
    assert usual < everything
    assert {"server_cpu_per_operation", "server_user_per_commit"} <= per_op
    assert not any(key.startswith(("cpu_", "disk_vda", "latency")) for key in per_op)
    assert "cpu_host_utilisation" in everything - usual


def test_what_is_noted_of_every_value_stands_once_at_the_head(tmp_path: Path) -> None:
    bound = replace(oltp(), cpus={"0": dict(oltp().cpus["0"]), "1": {"user": 80, "system": 5, "idle": 15}})
    paths = [make_run(tmp_path / "free", oltp()), make_run(tmp_path / "bound", bound)]
    sides, declared = resolve([str(path) for path in paths])
    table = views.usual(compare(sides, declared))
    row = table.row("operations")
    assert row is not None
    told = [note for note in row.cells[1].notes if "client-bound" in note]
    assert told != []  # in the value, and so in the files that machines read
    lifted = layout.with_common_notes_at_heads(table)
    assert set(told) <= set(lifted.sides[1].notes)
    assert not any(set(told) & set(r.cells[1].notes) for g in lifted.groups for r in g.rows)
    assert lifted.sides[0].notes == table.sides[0].notes


def test_statements_that_a_generator_does_not_count_are_the_servers_on_all_sides(tmp_path: Path) -> None:
    grown = {"Questions": 21 * 500 + 1, "Com_commit": 21 * 50}
    told = replace(oltp(), grown=grown)
    silent = replace(told, operation="new order", result={"queries": None, "commits": None})
    sides, declared = resolve([str(make_run(tmp_path / "a", told)), str(make_run(tmp_path / "b", silent))])
    table = compare(sides, declared)
    titles = [group.title for group in table.groups]
    assert "Cost per client statement (the server's Questions)" in titles
    assert "Cost per commit (the server's Com_commit)" in titles
    for key, wanted in (("server_cpu_per_statement", 0.12 / 500), ("server_cpu_per_commit", 0.12 / 50)):
        row = table.row(key)
        assert row is not None
        assert [cell.value for cell in row.cells] == pytest.approx([wanted, wanted])
        assert row.versus[1] is not None
        assert row.versus[1].centre == pytest.approx(1)
    bought = table.row("statements_per_CPU-second")
    assert bought is not None
    assert bought.cells[1].value == pytest.approx(500 / 0.12)
