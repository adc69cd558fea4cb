"""`loadprint inspect` of complete, torn and damaged run directories."""

from __future__ import annotations

import json
import re
import socket
import subprocess
from pathlib import Path

import pytest
from damage import ask
from loadprint.commands.inspect.inspect_run import inspect
from programs import COLLECT
from recordings import make_run


def test_a_whole_run(tmp_path: Path) -> None:
    report = inspect(make_run(tmp_path / "run"))
    role = report.roles[0]
    assert (report.manifest, report.problems) == ("intact", ())
    assert report.phases == (("measure", 21.0),)
    assert (role.ticks, role.missed, role.ended, role.torn_bytes) == (23, 0, "signal", 0)
    assert role.recorder_core_share == pytest.approx(0.01)
    assert role.recorder_cpu_us_per_sample == pytest.approx(10_000, rel=0.05)
    assert role.recorder_cpu_steps == 22
    assert role.recorder_rss_bytes == 8 << 20
    energy = next(probe for probe in role.probes if probe.name == "energy")
    assert (energy.status, energy.ticks, energy.reason) == ("unavailable", 0, "no powercap here")


def test_an_endpoint_that_was_down_is_reported(tmp_path: Path) -> None:
    """Its scrapes are recorded with `up` 0: the probe did not fail."""
    with socket.socket() as held:  # bound and not listening: connections are refused
        held.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{held.getsockname()[1]}/metrics"
        asked = [
            "--interval",
            "100ms",
            "--duration",
            "1s",
            "--probes",
            "cpu,scrape",
            "--scrape",
            f"node={url}",
        ]
        subprocess.run([COLLECT, "record", "--out", tmp_path / "run", *asked], check=True, timeout=600)
    probe = next(probe for probe in inspect(tmp_path / "run").roles[0].probes if probe.name == "scrape")
    assert (probe.failed, probe.ticks > 0) == (0, True)
    counts = re.fullmatch(r"node down in (\d+) of (\d+) scrapes \((.*refused.*)\)", probe.reason)
    assert counts, probe.reason
    assert counts[1] == counts[2]


def test_a_torn_run_names_the_command_that_finishes_it(tmp_path: Path) -> None:
    path = make_run(tmp_path / "run")
    (path / "server" / "journal").write_bytes(b"LPJRNL\0\1")
    (path / "manifest.json").unlink()
    output = ask("inspect", path).out
    assert f"loadprint-collect finish {path}" in output
    assert "manifest missing" in output


def test_a_file_that_does_not_match_the_manifest_is_named(tmp_path: Path) -> None:
    path = make_run(tmp_path / "run")
    (path / "server" / "nic.parquet").write_bytes(b"PAR1")
    (path / "load" / "server.json").unlink()
    report = json.loads(ask("inspect", path, "--format", "json").out)
    assert report["manifest"] == "broken"
    assert any("server/nic.parquet has 4 bytes" in text for text in report["problems"])
    assert any("load/server.json" in text for text in report["problems"])
