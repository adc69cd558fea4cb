"""Run directories of imports: they open, compare, and never appear incomplete."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from damage import ask
from loadprint.commands.inspect.inspect_run import inspect
from loadprint.errors import InputError
from loadprint.importing.imported import LAYOUTS, Imported, ImportedTable
from loadprint.importing.writer import write_run

BEGIN = 1_700_000_000_000_000_000


def _recording(busy: int = 30) -> Imported:
    """Five points two seconds apart; the host's CPU is `busy` ticks of 100 a second in user mode."""
    ticks = range(5)
    cpu = ImportedTable(
        "cpu",
        [*ticks, *ticks],
        {
            "cpu": ["all"] * 5 + ["0"] * 5,
            "user": [2 * busy * t for t in ticks] * 2,
            "idle": [200 * t - 2 * busy * t for t in ticks] * 2,
            **{name: [0] * 10 for name in ("nice", "system", "iowait", "irq", "softirq", "steal")},
            "ctxt": [600 * t for t in ticks] + [None] * 5,
        },
    )
    # the network was not read at the third point
    some = [0, 1, 3, 4]
    nic = ImportedTable(
        "nic",
        some,
        {
            "interface": ["eth0"] * 4,
            "rx_bytes": [20_480.0 * t for t in some],
            "tx_bytes": [4096.0 * t for t in some],
        },
    )
    scrape = ImportedTable("scrape", [1, 0], {"metric": ["b", "a"], "value": [1.5, float("nan")]})
    times = [BEGIN + 2_000_000_000 * t for t in ticks]
    return Imported("test", ["a file"], times, [cpu, nic, scrape], {"host": "db9"})


def test_an_imported_run_opens_and_compares(tmp_path: Path) -> None:
    one, two = write_run(tmp_path / "one", _recording()), write_run(tmp_path / "two", _recording(60))
    report = inspect(one)
    assert (report.manifest, report.status, report.phases) == ("intact", "complete", (("measure", 8.0),))
    assert [(probe.name, probe.ticks, probe.skipped) for probe in report.roles[0].probes] == [
        ("cpu", 5, 0),
        ("nic", 4, 1),
        ("scrape", 2, 3),
    ]
    assert ask("inspect", one).status == 0
    answer = ask("compare", one, two, "--all", "--format", "json")
    rows = answer.rows
    values = [cell["value"] for cell in rows["cpu_server_utilisation"]["cells"]]
    assert values == pytest.approx([30.0, 60.0])
    assert rows["switches_host"]["cells"][0]["value"] == pytest.approx(300.0)
    assert rows["nic_eth0_rx"]["cells"][0]["value"] == pytest.approx(10_240.0)
    # quantities that were not measured have a reason
    operations = rows["operations"]["cells"][0]
    assert operations["value"] is None
    assert "result.json is missing" in answer.document["footnotes"][operations["notes"][0] - 1]


def test_the_files_have_the_documented_format(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", _recording())
    disk = pq.read_table(run / "server" / "scrape.parquet")
    assert disk.column_names == ["metric", "tick", "value"]
    assert disk["metric"].to_pylist() == ["a", "b"]
    cpu = pq.read_table(run / "server" / "cpu.parquet")
    assert cpu.column_names == ["tick", *LAYOUTS["cpu"].entity, *LAYOUTS["cpu"].columns]
    assert cpu["cpu"].to_pylist() == ["0"] * 5 + ["all"] * 5
    assert cpu["softirqs"].null_count == 10
    fingerprint = json.loads((run / "server" / "fingerprint.json").read_text())
    assert fingerprint["host"] == "db9"
    assert fingerprint["kernel"] is None


def test_what_is_there_is_not_written_over(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", _recording())
    with pytest.raises(InputError, match="already exists; give a new directory"):
        write_run(run, _recording())
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="already exists"):
        write_run(tmp_path / "file", _recording())
    with pytest.raises(InputError, match="File exists; give another"):
        write_run(tmp_path / "file" / "run", _recording())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "run"]


def test_a_recording_without_a_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a file: contains no table that is imported; import"):
        write_run(tmp_path / "run", Imported("test", ["a file"], [BEGIN, BEGIN + 1], []))


def test_an_import_into_an_empty_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_run(Path(), _recording())
    assert inspect(tmp_path).manifest == "intact"
