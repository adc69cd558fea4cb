"""What is served, judged by promtool and by node_exporter itself."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from .endpoints import FIXTURES, LASTING, Metrics, fetch, node_exporter, serving, wait_for

# Memory and netstat have the kernel's own names in node_exporter too; promtool accepts both.
KERNEL_NAMES = re.compile(
    r"node_(memory|netstat|sockstat)_\w+ metric names should be written in 'snake_case'"
)


def lint(text: str) -> list[str]:
    """What promtool finds, but for names that are node_exporter's."""
    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False
    )
    assert checked.returncode in (0, 3), checked.stderr
    result = (checked.stdout + checked.stderr).splitlines()
    return [line for line in result if not KERNEL_NAMES.match(line)]


def failed(text: str) -> list[str]:
    """The probes that did not succeed."""
    success = Metrics.parse(text).values["loadprint_probe_success"]
    return [dict(labels)["probe"] for labels, ok in success.items() if not ok]


def test_promtool_has_nothing_to_say(tmp_path: Path) -> None:
    own = f"server={os.getpid()}"
    with serving(tmp_path / "serve.log", "--process", own, "--cpuset", "server=0", "--full-matrix") as url:
        # a probe that is slow to answer succeeds at a later scrape
        text = wait_for("every probe", lambda: None if failed(text := fetch(url)) else text)
    assert lint(text) == []
    assert "loadprint_process_utime_seconds_total" in Metrics.parse(text).values

    run = tmp_path / "run"
    record = ["--out", run, "--interval", "100ms", "--process", own]
    with serving(tmp_path / "record.log", *record, verb="record") as url:
        text = fetch(url)
    assert lint(text) == []
    assert Metrics.parse(text).values["node_context_switches_total"]
    assert (run / "server/cpu.parquet").exists()


def test_a_recorder_serves_its_last_tick(tmp_path: Path) -> None:
    with serving(tmp_path / "log", "--out", tmp_path / "run", "--interval", "1h", verb="record") as url:
        first, second = (Metrics.parse(fetch(url)).values for _ in range(2))
    for name in (
        "node_context_switches_total",
        "node_cpu_seconds_total",
        "loadprint_sample_timestamp_seconds",
    ):
        assert first[name] == second[name], name


def test_open_metrics_ends_as_it_must(tmp_path: Path) -> None:
    with serving(tmp_path / "log", "--probes", "cpu,memory") as url:
        text = fetch(url, "application/openmetrics-text; version=1.0.0")
    assert text.endswith("# EOF\n")
    assert "# TYPE node_cpu_seconds counter\n# UNIT node_cpu_seconds seconds\nnode_cpu_seconds_total{" in text
    assert not [line for line in text.splitlines() if re.match(r"# TYPE \S+_total counter", line)]


def common(ours: Metrics, theirs: Metrics) -> list[str]:
    """The names that both have; types and units must be the same."""
    names = sorted(name for name in ours.values if name.startswith("node_") and name in theirs.values)
    assert len(names) > 90, names
    for name in names:
        assert ours.types[name] == theirs.types[name], name
    return names


def test_a_fake_host_is_the_same_to_node_exporter(tmp_path: Path) -> None:
    """Every value of every name that both have is equal, bit for bit."""
    proc, sys = FIXTURES / "proc", FIXTURES / "sys"
    node = [f"--path.procfs={proc}", f"--path.sysfs={sys}", "--no-collector.netdev.netlink"]
    roots = ["--proc-root", proc, "--sys-root", sys, "--full-matrix", "--without", "ebpf"]
    with (
        serving(tmp_path / "ours", *roots) as our_url,
        node_exporter(tmp_path / "theirs", *node) as their_url,
    ):
        ours, theirs = Metrics.parse(fetch(our_url)), Metrics.parse(fetch(their_url))
    names = common(ours, theirs)
    # It leaves out `lo` where it reads /proc/net/dev, and has it where it asks by netlink.
    loopback = frozenset({("device", "lo")})
    for name in names:
        alike = {labels: value for labels, value in ours.values[name].items() if labels != loopback}
        assert alike == theirs.values[name], name
    for wanted in (
        "cpu_guest_seconds",
        "disk_flush_requests_time_seconds",
        "network_receive_bytes",
        "interrupts",
    ):
        assert f"node_{wanted}_total" in names
    for wanted in (
        "memory_MemFree_bytes",
        "vmstat_pgfault",
        "netstat_Tcp_RetransSegs",
        "sockstat_TCP_mem_bytes",
    ):
        assert f"node_{wanted}" in names


def test_this_host_is_the_same_to_node_exporter(tmp_path: Path) -> None:
    """Its counters are between those of our scrapes before and after it."""
    scrapes = ["--min-interval", "0s", "--full-matrix", "--without", "ebpf"]
    with (
        serving(tmp_path / "ours", *scrapes) as our_url,
        node_exporter(tmp_path / "theirs", *LASTING) as their_url,
    ):
        before, theirs, after = (Metrics.parse(fetch(url)) for url in (our_url, their_url, our_url))
    for name in common(before, theirs):
        assert {frozenset(dict(labels)) for labels in before.values[name]} == {
            frozenset(dict(labels)) for labels in theirs.values[name]
        }, name
        if theirs.types[name] != "counter":
            continue
        for labels, value in theirs.values[name].items():
            # The kernel documents that these two may decrease.
            if dict(labels).get("mode") in ("iowait", "idle"):
                continue
            own = (before.values[name], after.values[name])
            if not all(labels in each for each in own):
                # A device or a line without any count may be left out by one of the two; others come and go.
                assert value == 0 or any(labels in each for each in own), (name, labels)
                continue
            assert before.values[name][labels] <= value <= after.values[name][labels], (name, labels)
