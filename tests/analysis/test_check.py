"""Mistakes of the configuration: every rule speaks where its mistake is made, and nowhere else."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from conftest import Golden
from damage import ask, refused
from loadprint.commands.check.check_report import RULES, judge
from loadprint.commands.check.subject import Subject
from loadprint.commands.check.subject_sources import recorded
from loadprint.judging.effective import Server
from loadprint.metrics.limits import NO_QUOTA
from loadprint.metrics.quantities import Quantities
from loadprint.reading.documents import Scalar
from loadprint.reading.run_documents import Fingerprint, LoadResult, ServerRecord
from programs import COLLECT, ROOT, printed
from recordings import Host, change_json, make_execution, make_run, write_json

FAKE = ROOT / "tests" / "fixtures" / "host" / "t0"
GIB = 1 << 30

# a host and a server without a mistake: two sockets, bare metal, data on a dedicated disk
FIXTURES = ROOT / "tests" / "fixtures" / "check"
FINGERPRINT: dict[str, Any] = json.loads((FIXTURES / "fingerprint.json").read_text())
VARIABLES: dict[str, str] = json.loads((FIXTURES / "server.json").read_text())["variables"]
RESULT = LoadResult(threads=64, protocol="ps", options={"tables": 8})
RATES = {
    "cgroup.server.throttled": 0.0,
    "cpu.server.steal": 0.0,
    "cpu.server.cores": 4.0,
    "max(sockets.load.tcp_tw)": 3.0,
}


def subject(
    facts: Mapping[str, Any] | None = None,
    variables: Mapping[str, str] | None = None,
    rates: Mapping[str, float] | None = None,
    version: str = "8.4.0",
    **changed: Any,
) -> Subject:
    """This test's host and server with some facts changed; a number in a path is a place in a list."""
    host = copy.deepcopy(FINGERPRINT)
    for path, value in (facts or {}).items():
        *outer, last = [int(name) if name.isdigit() else name for name in path.split("/")]
        inner: Any = host
        for name in outer:
            inner = inner[name]
        inner[last] = value
    measured = Quantities()
    for name, rate in {**RATES, **(rates or {})}.items():
        measured.put(name, rate)
    server = Server.of(ServerRecord(version=version, variables={**VARIABLES, **(variables or {})}))
    cpus: dict[str, Any] = {"server_cpus": (0, 1, 2, 3), "load_cpus": (4, 5, 6, 7)}
    known = {
        "measured": measured,
        "result": RESULT,
        "data_bytes": 100.0 * GIB,
        **cpus,
        **changed,
    }
    return Subject("db1", Fingerprint.model_validate(host), server, **known)


def test_a_host_without_a_mistake_has_no_finding_and_nothing_unknown() -> None:
    report = judge([subject()])
    assert (report.findings, report.unknown) == ((), ())
    assert len(report.passed) == len(RULES)


ONE_CORE = {"list": [{"cpu": cpu, "package": 0, "core": 0, "siblings": "0-1"} for cpu in (0, 1)], "numa": []}
THREE = {"list": [{"cpu": cpu, "siblings": str(cpu)} for cpu in range(3)], "numa": []}
DATA, DISK, SYSCTL = "storage/0", "block_devices/0", "sysctl"
MISTAKES: list[tuple[str, Subject]] = [
    ("governor", subject({"governor": ["performance", "powersave"]})),
    ("boost", subject({"boost": True})),
    ("clocksource", subject({"clocksource": "hpet"})),
    ("few_cpus", subject({"cpus": ONE_CORE})),
    ("little_room", subject({"cpus": THREE})),
    ("shared_cores", subject({"cpus/list/0/siblings": "0,4", "cpus/list/4/siblings": "0,4"})),
    ("cpu_quota", subject({"limits/cpu_quota_us": 150_000, "limits/cpu_period_us": 100_000})),
    ("mitigations", subject({"cmdline": "quiet mitigations=off"})),
    ("thp", subject({"thp/enabled": "always"})),
    ("swap", subject({"memory/swap_kB": 8 << 20})),
    ("numa_balancing", subject({f"{SYSCTL}/kernel.numa_balancing": "1"})),
    ("zone_reclaim", subject({f"{SYSCTL}/vm.zone_reclaim_mode": "1"})),
    ("ports", subject({f"{SYSCTL}/net.ipv4.ip_local_port_range": "60000 60999"})),
    ("recorder_cpus", subject({"recorder/cpus": "0-7"})),
    ("file_system", subject({f"{DATA}/filesystem": "nfs4"})),
    ("copy_on_write", subject({f"{DATA}/filesystem": "btrfs"})),
    ("loop_device", subject({f"{DATA}/disks": ["loop0"], f"{DISK}/name": "loop0"})),
    ("os_disk", subject({"root/disks": ["nvme0n1"]})),
    ("io_scheduler", subject({f"{DISK}/scheduler": "bfq"})),
    ("io_scheduler", subject({f"{DISK}/scheduler": "mq-deadline"})),
    ("iostats", subject({f"{DISK}/iostats": False})),
    ("write_cache", subject({f"{DISK}/write_cache": "write through"})),
    ("barriers", subject({f"{DATA}/options": "rw,noatime,nobarrier"})),
    ("mount_sync", subject({f"{DATA}/options": "rw,noatime,sync"})),
    ("atime", subject({f"{DATA}/options": "rw"})),
    ("journal", subject({"storage/1/disks": ["nvme0n1"]})),
    ("buffer_pool_default", subject(variables={"innodb_buffer_pool_size": str(128 << 20)})),
    ("buffer_pool_large", subject(variables={"innodb_buffer_pool_size": str(60 * GIB)})),
    ("redo_small", subject(variables={"innodb_redo_log_capacity": str(100 << 20)})),
    ("durability", subject(variables={"innodb_flush_log_at_trx_commit": "2"})),
    ("durability", subject(variables={"innodb_doublewrite": "OFF"})),
    ("durability", subject(variables={"innodb_flush_method": "O_DIRECT_NO_FSYNC"})),
    ("query_cache", subject(variables={"query_cache_type": "ON", "query_cache_size": "1048576"})),
    ("page_cache", subject(variables={"innodb_flush_method": "fsync"})),
    ("io_capacity", subject(variables={"innodb_io_capacity": "200"})),
    ("query_logs", subject(variables={"general_log": "ON"})),
    ("query_logs", subject(variables={"slow_query_log": "ON", "long_query_time": "0.000000"})),
    ("performance_schema", subject(variables={"performance_schema": "ON"})),
    ("max_connections", subject(variables={"max_connections": "50"})),
    ("prepared_statements", subject(variables={"max_prepared_stmt_count": "4000"})),
    ("throttled", subject(rates={"cgroup.server.throttled": 0.3})),
    ("steal", subject({"virtualisation/guest": True}, rates={"cpu.server.steal": 0.2})),
    ("time_wait", subject(rates={"max(sockets.load.tcp_tw)": 20_000.0})),
    ("data_ratio", subject(data_bytes=8.0 * GIB)),
    # all data fit into the small pool
    (
        "data_ratio",
        subject(variables={"innodb_buffer_pool_size": str(128 << 20)}, data_bytes=float(64 << 20)),
    ),
    ("numa_interleave", subject({"recorder/cpus": "2-3"}, server_cpus=(0, 1, 4, 5), load_cpus=(2, 3))),
]


def test_one_mistake_is_one_finding(golden: Golden) -> None:
    """The golden file has evidence and fix of each mistake, with the names of this host."""
    lines = []
    for rule, mistaken in MISTAKES:
        (finding,) = judge([mistaken]).findings
        assert finding.id == rule
        lines.append(f"{finding.severity} {rule}: {finding.evidence}\n    {finding.fix}\n")
    golden("check.txt", "".join(lines))
    assert {rule for rule, _ in MISTAKES} == {rule.id for rule in RULES}


@pytest.mark.parametrize(
    ("version", "variables", "fix"),
    [
        (
            "9.7.4",
            {"innodb_redo_log_capacity": str(64 << 20)},
            "SET GLOBAL innodb_redo_log_capacity = 4294967296",
        ),
        (
            "8.0.12",
            {"innodb_log_files_in_group": "2"},
            "innodb_log_file_size=2147483648 in the configuration",
        ),
        ("10.11.19-MariaDB", {}, "SET GLOBAL innodb_log_file_size = 4294967296"),
        ("10.6.18-MariaDB", {}, "innodb_log_file_size=4294967296 in the configuration, and a restart"),
    ],
)
def test_a_fix_names_a_variable_that_the_version_has(
    version: str, variables: Mapping[str, str], fix: str
) -> None:
    small: dict[str, Scalar] = {"innodb_log_file_size": str(32 << 20), **variables}
    server = Server.of(ServerRecord(version=version, variables=small))
    report = judge([Subject("db1", Fingerprint.model_validate(FINGERPRINT), server, server_cpus=(0, 4))])
    fixes = {finding.id: finding.fix for finding in report.findings}
    assert fixes["redo_small"].startswith(fix)
    assert fixes["numa_interleave"] == "numactl --interleave=all, or a CPU set of one node"


def test_the_kernel_reports_which_cpus_share_a_core() -> None:
    # both dies of the package number their cores from 0
    dies = [{"cpu": cpu, "package": 0, "core": cpu % 4, "siblings": str(cpu)} for cpu in range(8)]
    assert judge([subject({"cpus/list": dies})]).findings == ()
    for cpu in dies:
        del cpu["siblings"]
    report = judge([subject({"cpus/list": dies})])
    assert dict(report.unknown)["shared_cores"] == "the kernel did not report which CPUs share a core"


def test_a_rule_without_its_fact_is_unknown() -> None:
    report = judge([Subject("empty", Fingerprint())])
    assert report.findings == ()
    reasons = dict(report.unknown)
    assert reasons["thp"] == "thp.enabled was not recorded, or is not available on this host"
    assert reasons["durability"].startswith("no server variables")
    assert not report.passed


def test_without_a_quota_the_server_was_not_throttled() -> None:
    measured = Quantities()
    for name, rate in RATES.items():
        if not name.startswith("cgroup"):
            measured.put(name, rate)
    measured.mark_missing("cgroup.server", NO_QUOTA)
    report = judge([subject(measured=measured)])
    assert (report.findings, report.unknown) == ((), ())


def test_a_malformed_fact_is_refused_or_unknown(tmp_path: Path) -> None:
    path = tmp_path / "odd.json"
    write_json(path, FINGERPRINT | {"storage": "x"})
    assert "`storage` is text, not a list" in ask("check", "--fingerprint", path).line
    report = judge([subject({"sysctl/vm.swappiness": "many"})])
    assert "does not have the form" in dict(report.unknown)["swap"]


def test_this_host_is_read_through_the_recorder(tmp_path: Path) -> None:
    """Runs the recorder with a data directory in memory."""
    answer = ask("check", "--collector", COLLECT, "--data-dir", "/dev/shm", "--format", "json")
    assert answer.status == 1
    [one] = [finding for finding in answer.document["findings"] if finding["id"] == "file_system"]
    assert (one["severity"], one["evidence"]) == ("error", "/dev/shm is on tmpfs, memory")
    variables = tmp_path / "variables.json"
    write_json(variables, {"version": "8.4.0", **VARIABLES, "general_log": "ON"})
    sets = ["--cpuset", "server=0", "--cpuset", "load=0"]
    answer = ask("check", "--collector", COLLECT, *sets, "--server-json", variables)
    assert answer.status == 1
    assert "error    shared_cores: CPU 0 is in both sets" in answer.out
    assert "error    query_logs: " in answer.out
    assert max(map(len, answer.out.splitlines())) <= 100
    write_json(variables, {"workload": "oltp", "latency": {"p95_ms": 1}})
    refused = ask("check", "--collector", COLLECT, "--server-json", variables)
    assert (refused.status, "contains no server variables" in refused.line) == (2, True)


def test_a_fingerprint_of_another_host(tmp_path: Path) -> None:
    """The fake host, as its recorder would print it."""
    roots = [f"--proc-root={FAKE / 'proc'}", f"--sys-root={FAKE / 'sys'}"]
    (tmp_path / "fake.json").write_text(printed(COLLECT, "fingerprint", *roots))
    sets = ["--cpuset", "server=0-1", "--cpuset", "load=2-3"]
    answer = ask("check", "--fingerprint", tmp_path / "fake.json", *sets, "--format", "json")
    findings = answer.document
    assert answer.status == int(findings["failed"])
    assert {"shared_cores", "thp"} <= {
        *findings["passed"],
        *(finding["id"] for finding in findings["findings"]),
    }


def test_a_run_and_an_execution_are_judged_by_what_they_recorded(tmp_path: Path) -> None:
    relaxed = Host(variables={**VARIABLES, "innodb_flush_log_at_trx_commit": "0"})
    sides = {"safe": [Host(variables=VARIABLES)], "fast": [relaxed]}
    execution = make_execution(tmp_path / "x", sides, "safe")
    report = judge(recorded(execution))
    [one] = [finding for finding in report.findings if finding.id == "durability"]
    assert one.where == ("b1-fast-r1",)
    answer = ask("check", execution)
    assert (answer.status, "(in 1 of 2: b1-fast-r1)" in " ".join(answer.out.split())) == (0, True)
    run = change_json(make_run(tmp_path / "r") / "server/fingerprint.json", clocksource="acpi_pm")
    assert ask("check", run).status == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["/nonexistent"], "no such run directory"),
        (["--collector", "/nonexistent"], "no such program"),
        (["--data-dir", "/nonexistent"], "not a directory of this host"),
        (["--cpuset", "server=x"], "cpuset"),
        (["--fingerprint", "/nonexistent"], "No such file"),
        (["run", "--cpuset", "server=0"], "applies to a live host only"),
    ],
)
def test_bad_input_is_one_line_and_status_two(words: list[str], said: str) -> None:
    assert said in refused("check", *words)
