"""Values as shares of what was measured to be possible, and files of ceilings that cannot be used."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from conftest import insert, oltp
from loadprint.commands.operands import resolve
from loadprint.comparison.compare_sides import compare
from loadprint.errors import InputError
from loadprint.rendering import render_csv, render_json, render_text
from loadprint.tables import views
from loadprint.tables.ceilings import Ceiling, read
from loadprint.tables.table import Table
from recordings import make_execution, write_json

WRITES = {
    "quantity": "disk.data.write_sectors",
    "value": 4_096_000,
    "tool": "fio 3.33",
    "command": "fio --rw=write --bs=1M",
    "date": "2026-11-20",
    "claimed": 8_192_000,
}
SENT = {"quantity": "nic.*.tx_bytes", "value": 10_240_000, "tool": "iperf3 3.12", "date": "2026-11-20"}
OTHER_HOST = {**SENT, "quantity": "nic.veth0.rx_bytes", "host": "elsewhere"}
MEMORY = {"quantity": "memory.read_bytes", "value": 2e10, "tool": "stream 5.10", "date": "2026-11-20"}


@pytest.fixture
def execution(tmp_path: Path) -> Path:
    """One repeat of two sides: ceilings need no statistics."""
    return make_execution(tmp_path / "execution", {"oltp": [oltp()], "insert": [insert()]}, "oltp")


def table_of(execution: Path, *entries: dict[str, Any], given: tuple[Ceiling, ...] | None = None) -> Table:
    if entries:
        write_json(execution / "ceilings.json", {"format_version": 1, "ceilings": list(entries)})
    sides, declared = resolve([str(execution)])
    return compare(sides, declared, given_ceilings=given)


def test_a_row_shows_its_share_of_the_ceiling(execution: Path) -> None:
    table = table_of(execution, WRITES, SENT, OTHER_HOST, MEMORY)
    written, sent, received = (
        table.row(key) for key in ("disk_vda_write_kb", "nic_veth0_tx", "nic_veth0_rx")
    )
    assert written is not None
    assert sent is not None
    assert received is not None
    # 1600 sectors of 512 B are 819,200 B/s; the other side writes as much
    assert [cell.of_ceiling for cell in written.cells] == pytest.approx([0.2, 0.2])
    assert [cell.of_claimed for cell in written.cells] == pytest.approx([0.1, 0.1])
    assert [cell.of_ceiling for cell in sent.cells] == pytest.approx([0.1, 0.1])
    assert [cell.of_claimed for cell in sent.cells] == [None, None]
    assert [cell.of_ceiling for cell in received.cells] == [None, None]
    note = written.notes[-1]
    assert "4,000 kB/s, measured 2026-11-20 by fio 3.33" in note
    assert "limit is 8,000 kB/s" in note
    assert dict(table.facts)["ceilings"] == "no row shows memory.read_bytes"
    # waits and sizes have no share of a ceiling, which is a rate
    waits = table.row("disk_vda_w_await")
    assert waits is not None
    assert waits.cells[0].of_ceiling is None


def test_the_share_stands_below_its_row_and_in_the_files(execution: Path) -> None:
    table = views.usual(table_of(execution, WRITES))
    lines = render_text.render(table).splitlines()
    place = next(n for n, line in enumerate(lines) if line.startswith("  written"))
    assert lines[place + 1].split() == ["of", "its", "ceiling", "%", "20.0", "20.0"]
    assert lines[place + 2].split() == ["of", "the", "vendor's", "limit", "%", "10.0", "10.0"]
    assert max(map(len, lines)) <= render_text.WIDTH
    rows = list(csv.DictReader(io.StringIO(render_csv.render(table))))
    told = [row["of_ceiling"] for row in rows if row["metric"] == "disk_vda_write_kb"]
    assert [float(share) for share in told] == pytest.approx([0.2, 0.2])
    assert '"of_ceiling": 0.2' in render_json.render(table)


def test_a_row_with_a_ceiling_is_in_every_view(execution: Path) -> None:
    whole = {**SENT, "quantity": "host.ctxt", "value": 8000}
    assert views.usual(table_of(execution)).row("switches_host") is None
    row = views.usual(table_of(execution, whole)).row("switches_host")
    assert row is not None
    assert row.cells[0].of_ceiling == pytest.approx(0.5)


def test_a_list_given_by_hand_stands_in_for_the_file(execution: Path) -> None:
    given = (Ceiling("disk.vda.write_sectors", 819_200.0, "dd", "", "2026-11-20"),)
    row = table_of(execution, WRITES, given=given).row("disk_vda_write_kb")
    assert row is not None
    assert row.cells[0].of_ceiling == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("document", "what"),
    [
        ({}, "has no list `ceilings`"),
        ({"ceilings": {}}, "has no list `ceilings`"),
        ({"format_version": 2, "ceilings": []}, "format version 2"),
        ({"ceilings": [7]}, "ceiling 1: is not an object"),
        ({"ceilings": [SENT, {**SENT, "value": 0}]}, "ceiling 2: `value` is not a positive number"),
        ({"ceilings": [{**SENT, "value": "10 MB/s"}]}, "`value` is not a positive number"),
        ({"ceilings": [{**SENT, "value": True}]}, "`value` is not a positive number"),
        ({"ceilings": [{**SENT, "claimed": -1}]}, "`claimed` is not a positive number"),
        ({"ceilings": [{**SENT, "date": None}]}, "`date` is missing or not a text"),
        ({"ceilings": [{**SENT, "tool": ""}]}, "`tool` is missing or not a text"),
        ({"ceilings": [{**SENT, "host": 4}]}, "`host` is not a text"),
        ({"ceilings": [SENT, SENT]}, "`nic.*.tx_bytes` occurs twice"),
    ],
)
def test_a_spoiled_file_says_which_entry(tmp_path: Path, document: dict[str, Any], what: str) -> None:
    path = tmp_path / "ceilings.json"
    write_json(path, document)
    with pytest.raises(InputError) as caught:
        read(path)
    assert what in str(caught.value)
    assert "ceilings.json" in str(caught.value)


@pytest.mark.parametrize("value", ["Infinity", "1e999", "NaN"])
def test_a_value_that_is_not_finite_is_refused(tmp_path: Path, value: str) -> None:
    path = tmp_path / "ceilings.json"
    text = json.dumps({"ceilings": [{**SENT, "value": "HERE"}]})
    path.write_text(text.replace('"HERE"', value))
    with pytest.raises(InputError, match=r"ceilings\.json: .*(not a number|too large)"):
        read(path)
