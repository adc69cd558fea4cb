"""Parquet tables with other columns or invalid values, missing probes, and empty runs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from damage import RICH, ask
from recordings import BOOT, SECOND, Host, make_run, write_json
from test_sentences import Case


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A good run and one to damage, with tables of every shape and no manifest."""
    parent = tmp_path_factory.mktemp("tables")
    host = replace(Case().host(), seconds=6)
    made = make_run(parent / "good", host), make_run(parent / "bad", host)
    for run in made:
        (run / "manifest.json").unlink()
    return made


@pytest.mark.parametrize(
    ("name", "column", "value", "kind"),
    [
        ("ticks", "tick", None, pa.uint32()),
        ("ticks", "probe", 5, pa.int64()),
        ("ticks", "start_ns", float("nan"), pa.float64()),
        ("ebpf_sched", "role", None, pa.string()),
        ("ebpf_sched", "buckets", None, pa.list_(pa.uint64())),
        ("threads", "role", None, pa.string()),
    ],
)
def test_rows_without_a_name_or_a_time_are_refused(
    runs: tuple[Path, Path], name: str, column: str, value: object, kind: pa.DataType
) -> None:
    good, bad = runs
    path = bad / "server" / f"{name}.parquet"
    kept = path.read_bytes()
    table = pq.read_table(path)
    place = table.schema.get_field_index(column)
    pq.write_table(table.set_column(place, column, pa.array([value] * len(table), kind)), path)
    try:
        answer = ask("compare", good, bad)
    finally:
        path.write_bytes(kept)
    assert answer.status == 2
    assert f"{name}.parquet" in answer.line


def test_probes_missing_on_one_side_are_reported(tmp_path: Path) -> None:
    good, bad = make_run(tmp_path / "good", RICH), make_run(tmp_path / "bad", RICH)
    for name in ("disk", "threads", "pressure"):
        (bad / "server" / f"{name}.parquet").unlink()
    (bad / "manifest.json").unlink()
    answer = ask("compare", good, bad, "--format", "json")
    assert answer.status == 0
    for key in (("kernel", "switches_server"), ("kernel", "pressure_io")):
        known, lost = answer.cells[key]
        assert known["value"] is not None
        assert lost["value"] is None
        assert lost["notes"]


def test_zero_operations_give_no_cost_and_no_ratio(tmp_path: Path) -> None:
    nothing = replace(RICH, events=0, statements=0, commits=0, series=lambda second: 0)
    good, bad = make_run(tmp_path / "good", RICH), make_run(tmp_path / "bad", nothing)
    answer = ask("compare", good, bad, "--format", "json")
    assert answer.status == 0
    busy, idle = answer.cells["cost_operation", "server_cpu_per_operation"]
    assert busy["value"] is not None
    assert idle["value"] is None
    footnotes = json.loads(answer.out)["footnotes"]
    assert "nothing to divide by" in footnotes[idle["notes"][0] - 1]


@pytest.mark.parametrize("seconds", [0, -1])
def test_one_sample_or_none_is_refused(tmp_path: Path, seconds: int) -> None:
    good, bad = make_run(tmp_path / "good", RICH), make_run(tmp_path / "bad", Host(seconds=6))
    stamps = [json.loads(line) for line in (bad / "load" / "phases.jsonl").read_text().splitlines()]
    stamps[1]["monotonic_ns"] = stamps[0]["monotonic_ns"] + (seconds + 1) * SECOND + 1
    (bad / "load" / "phases.jsonl").write_text("".join(json.dumps(stamp) + "\n" for stamp in stamps))
    (bad / "manifest.json").unlink()
    answer = ask("compare", good, bad)
    assert answer.status == 2
    assert "fewer than two ticks" in answer.line


def test_a_clock_that_stepped_between_hosts_is_refused(tmp_path: Path) -> None:
    good, bad = make_run(tmp_path / "good", RICH), make_run(tmp_path / "bad", RICH)
    (bad / "manifest.json").unlink()
    path = bad / "server" / "ticks.parquet"
    table = pq.read_table(path)
    told = table["realtime_ns"].to_numpy().tolist()
    ticks = table["tick"].to_numpy().tolist()
    stamps = [
        at + (3600 * SECOND if tick > max(ticks) / 2 else 0) for tick, at in zip(ticks, told, strict=True)
    ]
    place = table.schema.get_field_index("realtime_ns")
    pq.write_table(table.set_column(place, "realtime_ns", pa.array(stamps)), path)
    assert ask("compare", good, bad).status == 0  # on one host nothing hangs on that clock
    stamps_of_load = (bad / "load" / "phases.jsonl").read_text().replace(BOOT, "another boot")
    (bad / "load" / "phases.jsonl").write_text(stamps_of_load)
    answer = ask("compare", good, bad)
    assert answer.status == 2
    assert "the clock was set by 3600 s" in answer.line


def test_different_hosts_are_reported_before_any_number(tmp_path: Path) -> None:
    good, bad = make_run(tmp_path / "good", RICH), make_run(tmp_path / "bad", replace(RICH, host="db2"))
    fingerprint = json.loads((bad / "server" / "fingerprint.json").read_text())
    fingerprint["cpus"]["model"] = "Other CPU"
    write_json(bad / "server" / "fingerprint.json", fingerprint)
    (bad / "manifest.json").unlink()
    answer = ask("compare", good, bad)
    assert answer.status == 0
    assert "Other CPU" in answer.out.partition("Throughput")[0]
