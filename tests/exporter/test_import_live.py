"""An import from a real Prometheus that scrapes a real node_exporter."""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from loadprint.__main__ import main
from ports import free_port
from programs import running, wait_for

from .endpoints import fetch

LONG_S = 120.0  # nothing here should take them


def query(server: str, path: str, **parameters: str) -> str:
    """Answer of a Prometheus that may still be starting."""

    def answer() -> str | None:
        try:
            return fetch(f"{server}/api/v1/{path}?{urllib.parse.urlencode(parameters)}")
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return None

    return str(wait_for(f"an answer of {server}", answer, LONG_S))


def until(server: str, promise: str) -> None:
    """Wait until an expression gives something."""
    wait_for(promise, lambda: json.loads(query(server, "query", query=promise))["data"]["result"], LONG_S)


def until_scraped(server: str, since: float) -> None:
    """Wait until node_exporter has answered a scrape of a later time; on a slow machine one may fail."""
    until(server, f"timestamp(up) > {since} and up == 1")


def proc_stat() -> list[int]:
    return [int(word) for word in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]


def table(run: Path, probe: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(run / "server" / f"{probe}.parquet").to_pylist()
    return rows


PROBES = ("cpu", "disk", "nic", "pressure", "memory", "vmstat", "tcp", "scrape")
ENTITY = ("tick", "cpu", "device", "interface", "resource", "severity", "metric", "endpoint")


def samples_of(run: Path, probe: str) -> int:
    """Values that were imported."""
    return sum(row[name] is not None for row in table(run, probe) for name in row.keys() - ENTITY)


def test_a_real_prometheus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    node, own = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
    config = tmp_path / "prometheus.yml"
    jobs = f"[{{job_name: node, static_configs: [{{targets: ['{node}']}}]}}]"
    config.write_text(f"global: {{scrape_interval: 500ms}}\nscrape_configs: {jobs}\n")
    server = f"http://{own}"
    earliest = proc_stat()
    files = [f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'tsdb'}"]
    with (
        running(["prometheus-node-exporter", f"--web.listen-address={node}"]),
        running(["prometheus", *files, f"--web.listen-address={own}"]),
    ):
        until(server, "up == 1")
        # a scrape ends before the next one: its values are between those read before and after it
        begin = time.time()
        until_scraped(server, begin)
        early = proc_stat()
        until(server, "sum_over_time(up[1h]) > 8")
        late, past = proc_stat(), time.time()
        until_scraped(server, past)
        end = time.time() + 0.5  # the last step of the range may be one before its end
        until_scraped(server, end)
        latest = proc_stat()
        raw = query(server, "query", query='{job="node"}[1h]')
        ranged = query(
            server,
            "query_range",
            query='{job="node"}',
            start=f"{begin:.3f}",
            end=f"{end:.3f}",
            step="500ms",
        )
    (tmp_path / "raw.json").write_text(raw)
    (tmp_path / "ranged.json").write_text(ranged)
    one, two = tmp_path / "one", tmp_path / "two"
    assert main(["import", "prometheus", str(tmp_path / "raw.json"), "--out", str(one)]) == 0
    assert main(["import", "prometheus", str(tmp_path / "ranged.json"), "--out", str(two)]) == 0
    said = capsys.readouterr().out
    assert "tables " in said
    assert "cpu" in said

    # every sample that Prometheus kept is in one of the tables
    kept = sum(len(series["values"]) for series in json.loads(raw)["data"]["result"])
    held = sum(samples_of(one, probe) for probe in PROBES)
    assert held == kept
    assert kept > 1000

    # the CPU time of the window is the kernel's, in its own unit: within the scrapes at both ends
    names = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
    imported = 0
    times = sorted(table(two, "cpu"), key=lambda row: row["tick"])
    for cpu in range(os.cpu_count() or 1):
        first, *_, last = (row for row in times if row["cpu"] == str(cpu))
        imported += sum(last[name] - first[name] for name in names)
        assert all(isinstance(last[name], int) for name in names)
    # each CPU's counters are cut to whole ticks
    slack = len(names) * (os.cpu_count() or 1)
    least, most = sum(late) - sum(early) - slack, sum(latest) - sum(earliest) + slack
    assert least <= imported <= most, (least, imported, most)

    assert main(["inspect", str(one)]) == 0
    capsys.readouterr()
    assert main(["compare", str(one), str(two), "--all", "--format", "json"]) == 0
    compared = json.loads(capsys.readouterr().out)
    rows = {row["key"]: row for group in compared["groups"] for row in group["rows"]}
    for key in ("cpu_server_utilisation", "switches_host", "interrupts_host", "pressure_cpu"):
        assert all(cell["value"] is not None for cell in rows[key]["cells"]), key
    assert rows["operations"]["cells"][0]["value"] is None
