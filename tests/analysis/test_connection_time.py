"""The time of the load's connections by transaction type, by the generator's results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from loadprint.tables.table import Group
from reads import known, table_of
from recordings import Host, make_execution

# of 21 s and 4 connections
TYPES = {
    "new_order": {"count": 2100, "latency_ms": {"mean": 20.0}},
    "payment": {"count": 4200, "latency_ms": {"mean": 5.0}},
}


def group(path: Path, *results: dict[str, Any]) -> Group | None:
    """The group of two sides, each with one result."""
    sides = {name: [Host(result=result)] for name, result in zip(("one", "two"), results, strict=True)}
    make_execution(path, sides, "one")
    groups = table_of(path).groups
    return next((group for group in groups if group.key == "connection_time"), None)


def values(shown: Group, column: int = 0) -> dict[str, float | None]:
    return {row.label: row.cells[column].value for row in shown.rows}


def test_the_types_and_the_rest_are_all_of_the_time(tmp_path: Path) -> None:
    shown = known(group(tmp_path / "x", {"transactions": TYPES}, {"transactions": TYPES}))
    assert values(shown) == pytest.approx({"new_order": 50.0, "payment": 25.0, "between transactions": 25.0})
    assert {row.view for row in shown.rows} == {"measured"}


def test_an_open_loop_waits_without_a_connection(tmp_path: Path) -> None:
    late = {kind: {**reported, "wait_ms_mean": 1.0} for kind, reported in TYPES.items()}
    shown = known(group(tmp_path / "x", {"transactions": TYPES}, {"transactions": late}))
    assert values(shown, 1) == pytest.approx(
        {"new_order": 47.5, "payment": 20.0, "between transactions": 32.5}
    )


def test_a_type_without_count_or_latency_has_the_reason(tmp_path: Path) -> None:
    odd = TYPES | {"payment": {"count": 4200, "latency_ms": {}}, "delivery": {"count": 0, "latency_ms": {}}}
    shown = known(group(tmp_path / "x", {"transactions": odd}, {"transactions": TYPES, "threads": None}))
    assert values(shown) == {
        "new_order": pytest.approx(50.0),
        "payment": None,
        "delivery": 0.0,
        "between transactions": None,
    }
    notes = {row.label: [cell.notes for cell in row.cells] for row in shown.rows}
    reason = ("the generator does not report count and mean latency of payment",)
    unknown = ("the generator does not report its connections",)
    assert notes["payment"] == notes["between transactions"] == [reason, unknown]


def test_one_type_needs_no_rows(tmp_path: Path) -> None:
    alone = {"transactions": {"event": TYPES["payment"]}}
    assert group(tmp_path / "x", alone, alone) is None
