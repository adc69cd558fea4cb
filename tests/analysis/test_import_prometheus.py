"""Imports from saved responses of Prometheus, snapshots and invalid files; a live one: tests/exporter."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from column_units import other_units
from damage import ask, refused
from loadprint.importing.exposition import samples, series_text

FIXTURES = Path(__file__).parents[1] / "fixtures"
MANY_LABELS = ",".join(f'label{number}="v"' for number in range(100_000))


def table(run: Path, probe: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(run / "server" / f"{probe}.parquet").to_pylist()
    return rows


def test_a_kept_answer(tmp_path: Path) -> None:
    run = imported(tmp_path, FIXTURES / "import" / "query_range.json")[0]
    cpu = {(row["cpu"], row["tick"]): row for row in table(run, "cpu")}
    # the sum of the CPUs is made where it is read
    assert (cpu["0", 0]["user"], cpu["1", 0]["user"], cpu["all", 0]["user"]) == (123_456, 1, None)
    assert (cpu["all", 1]["ctxt"], cpu["0", 1]["ctxt"]) == (5000, None)
    assert ("1", 2) not in cpu
    disk = table(run, "disk")
    assert [(row["device"], row["read_sectors"], row["read_ms"]) for row in disk] == [("vda", 8, 12)] * 3
    memory = {row["metric"]: row["value"] for row in table(run, "memory")}
    assert memory == {"Active(anon)": 4, "HugePages_Total": 0}
    assert {row["metric"] for row in table(run, "vmstat")} == {"pgfault"}
    assert other_units(run) == []
    assert {row["metric"] for row in table(run, "tcp")} == {"Tcp.RetransSegs"}
    others = [(row["endpoint"], row["metric"], row["value"]) for row in table(run, "scrape")]
    mysql = 'mysql_up{instance="127.0.0.1:9104",job="mysqld"}'
    assert others[3:] == [("127.0.0.1:9104", mysql, 1.0)] * 3
    fingerprint = json.loads((run / "server" / "fingerprint.json").read_text())
    assert (fingerprint["host"], fingerprint["kernel"]) == ("db1", "6.1.0")


def test_snapshots_have_the_time_of_their_name_or_file(tmp_path: Path) -> None:
    body = (
        (FIXTURES / "scrape" / "node_exporter.prom").read_text().replace("\nnode_time_seconds ", "\nnode_t ")
    )
    names = (
        "node-2026-11-21T12:00:00Z.prom",
        "node-20261121120010.prom",
        "node-1795262420.prom",
        "last.prom",
    )
    for name in names:
        (tmp_path / name).write_text(body)
    os.utime(tmp_path / "last.prom", (1_795_262_430, 1_795_262_430))
    run, _ = imported(tmp_path, *(tmp_path / name for name in names))
    ticks = [row["realtime_ns"] // 10**9 for row in table(run, "ticks") if row["probe"] == "cpu"]
    assert ticks == [1_795_262_400 + 10 * k for k in range(4)]
    lines = [line for line in body.splitlines() if not line.startswith("#")]
    held = [row for row in table(run, "scrape") if row["tick"] == 0]
    assert 100 < len(held) < len(lines)
    assert ask("inspect", run).status == 0


def test_the_parser_reads_what_the_recorder_reads() -> None:
    for name in ("node_exporter.prom", "mysqld_exporter.prom", "prometheus.prom"):
        body = (FIXTURES / "scrape" / name).read_text()
        lines = [line for line in body.splitlines() if not line.startswith("#")]
        result = list(samples(Path(name), body))
        assert len(result) == len(lines)
        for line, sample in zip(lines, result, strict=True):
            series, _, value = line.rpartition(" ")
            assert repr(sample.value) == repr(float(value))
            assert sorted(series_text(sample.name, sample.labels)) == sorted(series)
    (counter,) = samples(Path("odd"), '# TYPE a counter\na 1 # {trace="x"} 0.5\n')
    assert (counter.name, counter.value) == ("a", 1.0)
    odd = r'{"a.b", "c d"="e\\\"\n}, {",f="g"} 1 5' + "\n"
    (sample,) = samples(Path("odd"), odd)
    assert (sample.name, sample.labels) == ("a.b", {"c d": 'e\\"\n}, {', "f": "g"})
    assert series_text(sample.name, sample.labels) == r'{"a.b","c d"="e\\\"\n}, {",f="g"}'


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "contains no sample"),
        ("{", "not JSON at line 1"),
        ('{"status": "error", "error": "bad query"}', "is an error response of Prometheus: bad query"),
        ('{"data": {"resultType": "vector", "result": []}}', "type 'vector', not 'matrix'"),
        ('{"data": {"resultType": "matrix", "result": [{"metric": {}}]}}', "series 0: is not a series"),
        ('{"data": {"resultType": "matrix", "result": []}}', "contains no sample"),
        ('[{"metric": {"__name__": "a"}, "values": [[1, "x"]]}]', "series 0: is not a series"),
        ('[{"metric": {"__name__": "a"}, "values": [[1, "1"]]}]', "contains 1 points in time"),
        ('[{"metric": {"__name__": "a"}, "histograms": []}]', "is a native histogram"),
        ("a 1\nb\n", "line 2: `b` is not a sample"),
        ('a{b="c} 1\n', "line 1"),
        ("<html>\n", "line 1"),
        ("a 1\na " + "9" * 400, "line 2"),
        (f"a{{{MANY_LABELS}}} 1\n", "line 1"),
    ],
)
def test_unusable_files_are_one_line(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "saved"
    path.write_text(content)
    assert said in refused(*command(tmp_path, path))
    assert not (tmp_path / "run").exists()


def test_a_time_that_a_snapshot_states_is_its_time(tmp_path: Path) -> None:
    paths = []
    for second in (0, 10, 20):
        paths.append(tmp_path / f"2026-11-21T13:00:0{second // 10}Z.prom")
        stated = 1_795_262_400.25 + second
        paths[-1].write_text(
            f"# TYPE node_time_seconds gauge\nnode_time_seconds {stated:.12e}\n{CPU} {second}\n"
        )
    imported(tmp_path, *paths)
    times = [row["realtime_ns"] for row in table(tmp_path / "run", "ticks") if row["probe"] == "cpu"]
    assert times == [1_795_262_400_250_000_000 + 10**10 * k for k in range(3)]


CPU = 'node_cpu_seconds_total{cpu="0",mode="user"}'


def command(tmp_path: Path, *paths: Path, options: Sequence[str] = ()) -> list[object]:
    return ["import", "prometheus", *paths, "--out", tmp_path / "run", *options]


def imported(tmp_path: Path, *paths: Path, options: Sequence[str] = ()) -> tuple[Path, str]:
    """The run, and the notes that are printed."""
    answer = ask(*command(tmp_path, *paths, options=options))
    assert answer.status == 0, answer.line
    return tmp_path / "run", answer.line


def saved(path: Path, *series: tuple[dict[str, str], Mapping[float, float]]) -> Path:
    """A range query's response: labels and values by time."""
    result = [
        {"metric": labels, "values": [[at, str(value)] for at, value in points.items()]}
        for labels, points in series
    ]
    path.write_text(json.dumps(result))
    return path


def cpu(**labels: str) -> dict[str, str]:
    return {"__name__": "node_cpu_seconds_total", "cpu": "0", "mode": "user", **labels}


@pytest.mark.parametrize("later", [0, 7])
@pytest.mark.parametrize("name", ["node_cpu_seconds_total", "node_memory_Dirty_bytes", "node_vmstat_pgfault"])
def test_hosts_behind_one_instance_are_refused_by_their_labels(
    tmp_path: Path, later: float, name: str
) -> None:
    series = [
        ({**cpu(instance="agent", host=host, zone=zone), "__name__": name}, {at: at, at + 9: at + 9})
        for host, zone, at in (("a", "x", 10), ("b", "x", 10 + later), ("c", "y", 10))
    ]
    path = saved(tmp_path / "saved.json", *series)
    for options, said in (
        ([], '(host "a", "b", "c"; zone "x", "y"); select one, as --instance host=a'),
        (["--instance", "host=d"], "--instance host=d: has no metric of node_exporter; available: a, b, c"),
        (["--instance", "zone=x"], 'contain several hosts (host "a", "b")'),
    ):
        assert said in refused(*command(tmp_path, path, options=options))
    imported(tmp_path, path, options=["--instance", "agent", "--instance", "host=b"])
    assert len(table(tmp_path / "run", "scrape")) == 4


def test_facts_that_differ_are_null(tmp_path: Path) -> None:
    """Such as those of two hosts behind one address, or of a kernel that was replaced."""
    info = [
        ({"__name__": "node_uname_info", "nodename": "a", "release": release}, {at: 1.0})
        for release, at in (("6.1", 1.0), ("6.2", 2.0))
    ]
    run, notes = imported(tmp_path, saved(tmp_path / "saved.json", *info, (cpu(), {1: 1, 2: 2})))
    fingerprint = json.loads((run / "server" / "fingerprint.json").read_text())
    assert (fingerprint["host"], fingerprint["kernel"]) == ("a", None)
    assert "several values of release: 6.1, 6.2\n" in notes


def test_a_label_that_only_one_host_has_selects_it(tmp_path: Path) -> None:
    path = saved(tmp_path / "saved.json", (cpu(), {1: 1, 2: 2}), (cpu(replica="b"), {1: 5, 2: 9}))
    assert "several hosts" in refused(*command(tmp_path, path))
    run, _ = imported(tmp_path, path, options=["--instance", "replica="])
    assert [row["user"] for row in table(run, "cpu") if row["cpu"] == "0"] == [100, 200]


def test_labels_of_devices_are_not_hosts(tmp_path: Path) -> None:
    received = "node_network_receive_bytes_total"
    series = [
        ({"__name__": received, "device": name, "ifalias": alias}, {1.0: 1.0, 2.0: 2.0})
        for name, alias in NICS
    ]
    series += [
        ({"__name__": "node_memory_numa_MemFree", "node": node}, {1.0: 4096.0, 2.0: 4096.0}) for node in "01"
    ]
    run, _ = imported(tmp_path, saved(tmp_path / "saved.json", *series))
    assert {row["interface"] for row in table(run, "nic")} == {"eth0", "eth1"}
    assert len(table(run, "scrape")) == 4


NICS = [("eth0", "inside"), ("eth1", "outside")]


# one host at one time, as before and since node_exporter 0.16
OLD = """node_cpu{cpu="cpu3",mode="user"} 5.25
node_cpu{cpu="cpu3",mode="guest"} 0.5
node_context_switches 7
node_intr 8
node_forks 9
node_procs_running 2
node_disk_reads_completed{device="sda"} 11
node_disk_sectors_read{device="sda"} 16
node_disk_bytes_read{device="sda"} 8192
node_disk_bytes_written{device="sda"} 4096
node_disk_read_time_ms{device="sda"} 1500
node_disk_io_time_ms{device="sda"} 250
node_disk_io_time_weighted{device="sda"} 750
node_network_receive_bytes{device="eth0"} 1000
node_network_transmit_frame{device="eth0"} 3
node_network_transmit_compressed{device="eth0"} 4
node_network_transmit_multicast{device="eth0"} 5
node_memory_Active_anon 4096
node_memory_Committed_AS 2048
node_memory_HugePages_Total 12
node_vmstat_pgfault 13
node_time 1795000000.5
"""
NEW = """node_cpu_seconds_total{cpu="3",mode="user"} 5.25
node_cpu_guest_seconds_total{cpu="3",mode="user"} 0.5
node_context_switches_total 7
node_intr_total 8
node_forks_total 9
node_procs_running 2
node_disk_reads_completed_total{device="sda"} 11
node_disk_read_bytes_total{device="sda"} 8192
node_disk_written_bytes_total{device="sda"} 4096
node_disk_read_time_seconds_total{device="sda"} 1.5
node_disk_io_time_seconds_total{device="sda"} 0.25
node_disk_io_time_weighted_seconds_total{device="sda"} 0.75
node_network_receive_bytes_total{device="eth0"} 1000
node_network_transmit_colls_total{device="eth0"} 3
node_network_transmit_carrier_total{device="eth0"} 4
node_network_transmit_compressed_total{device="eth0"} 5
node_memory_Active_anon_bytes 4096
node_memory_Committed_AS_bytes 2048
node_memory_HugePages_Total 12
node_vmstat_pgfault 13
node_time_seconds 1795000000.5
"""
TABLES = ("cpu", "disk", "nic", "memory", "vmstat", "ticks")


def versions(tmp_path: Path, *bodies: str) -> tuple[dict[str, list[dict[str, Any]]], str]:
    """The tables of the run of these snapshots, each with one a second later, and the notes."""
    tmp_path.mkdir()
    paths = []
    for number, body in enumerate(bodies):
        for second in (0, 1):
            paths.append(tmp_path / f"{number}.{second}.prom")
            paths[-1].write_text(body.replace("1795000000.5", f"{1_795_000_000.5 + second}"))
    run, notes = imported(tmp_path, *paths)
    return {name: table(run, name) for name in TABLES}, notes


def test_names_of_both_versions_fill_the_same_columns(tmp_path: Path) -> None:
    (new, of_new), (old, of_old) = versions(tmp_path / "new", NEW), versions(tmp_path / "old", OLD)
    assert new == old
    assert (of_new, of_old) == ("", "")
    assert (old["disk"][0]["read_sectors"], old["disk"][0]["weighted_ms"]) == (16, 750)
    assert {row["metric"]: row["value"] for row in old["memory"]}["Active(anon)"] == 4


@pytest.mark.parametrize("newer_last", [True, False])
def test_the_newer_name_counts_where_a_tick_has_both(newer_last: bool, tmp_path: Path) -> None:
    stale = OLD.replace("5.25", "5").replace("4096", "1024")
    bodies = (stale, NEW) if newer_last else (NEW, stale)
    assert versions(tmp_path / "both", *bodies) == versions(tmp_path / "new", NEW)


def test_metrics_of_no_known_version_are_listed(tmp_path: Path) -> None:
    odd = "node_memory_MemFree_ratio 0.5\nnode_disk_read_bytes 7\nnode_cpu_seconds 5\nnode_load1 1\n"
    tables, notes = versions(tmp_path / "odd", OLD + odd)
    assert "node_cpu_seconds, node_disk_read_bytes, node_memory_MemFree_ratio\n" in notes
    assert len(tables["memory"]) == 2 * 3


def test_a_negative_count_is_no_reading(tmp_path: Path) -> None:
    reads = {"__name__": "node_disk_reads_completed_total", "device": "sda"}
    unlimited = {"__name__": "node_netstat_Tcp_MaxConn"}
    path = saved(tmp_path / "saved.json", (reads, {1: 1, 2: -1, 3: 4}), (unlimited, {1: -1, 2: -1}))
    run, notes = imported(tmp_path, path)
    assert "negative values are no readings: node_disk_reads_completed_total\n" in notes
    assert [(row["tick"], row["reads"]) for row in table(run, "disk")] == [(0, 1), (2, 4)]
    assert [row["value"] for row in table(run, "tcp")] == [-1, -1]


def test_a_sample_that_is_given_twice_counts_once(tmp_path: Path) -> None:
    path = saved(tmp_path / "saved.json", (cpu(), {1: 1, 2: 2}), ({"__name__": "a"}, {1: float("nan")}))
    run, _ = imported(tmp_path, path, path)
    assert len(table(run, "scrape")) == 1


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (('[{"metric": {"__name__": "a"}, "values": [[5, "1"], [5, "2"]]}]',), "`a` has two values at 5 s"),
        (
            (
                '[{"metric": {"__name__": "a", "b": "c"}, "values": [[5, "1"], [6, "1"]]}]',
                '[{"metric": {"b": "c", "__name__": "a"}, "values": [[6, "NaN"]]}]',
            ),
            '1.json: `a{b="c"}` has two values at 6 s since 1970, 1 and nan',
        ),
        (("a 1\na 1\na 2\n",), "`a` has two values"),
        (("node_time_seconds 5\na 1\n", "node_time_seconds 5\na 2\n"), "`a` has two values at 5 s"),
    ],
)
def test_two_values_of_one_series_at_one_time_are_refused(
    tmp_path: Path, contents: tuple[str, ...], message: str
) -> None:
    paths = [tmp_path / f"{number}.json" for number, _ in enumerate(contents)]
    for path, content in zip(paths, contents, strict=True):
        path.write_text(content)
    assert message in refused(*command(tmp_path, *paths))


def test_one_of_several_hosts_must_be_selected(tmp_path: Path) -> None:
    path = saved(
        tmp_path / "saved.json", *((cpu(instance=of), {1.0: 1.0, 2.0: 2.0}) for of in ("db1", "db2"))
    )
    for options, said in (
        ([], '(instance "db1", "db2"); select one, as --instance db1'),
        (["--instance", "db3"], "available: db1, db2"),
    ):
        assert said in refused(*command(tmp_path, path, options=options))
    run, _ = imported(tmp_path, path, options=["--instance", "db2"])
    assert {row["endpoint"] for row in table(run, "scrape")} == {"db1"}
    assert json.loads((run / "server" / "fingerprint.json").read_text())["host"] == "db2"
