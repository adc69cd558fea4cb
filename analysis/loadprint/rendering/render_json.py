"""Renders a table as JSON: the dataclasses of table.py, numbers in base units, absent ones null."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from loadprint.rendering.footnotes import Footnotes
from loadprint.tables.table import Cell, Row, Table, Versus


def render(table: Table) -> str:
    """Return one JSON object; notes are numbers of `footnotes`, from 1."""
    footnotes = Footnotes(table)
    document = {
        "format_version": 1,
        "sides": [asdict(side) | {"notes": footnotes.numbers(side.notes)} for side in table.sides],
        "reference": table.reference,
        "facts": table.facts,
        "warnings": table.warnings,
        "groups": [
            {
                "key": group.key,
                "title": group.title,
                "rows": [_row(row, footnotes) for row in group.rows],
                "section": group.section,
            }
            for group in table.groups
        ],
        "footnotes": footnotes.texts,
        "sentences": [asdict(sentence) for sentence in table.sentences],
        "method": table.method,
        "verdicts": [asdict(verdict) for verdict in table.verdicts],
        "plans": [asdict(plan) for plan in table.plans],
    }
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _row(row: Row, footnotes: Footnotes) -> dict[str, Any]:
    return vars(row) | {
        "cells": [_cell(cell, footnotes) for cell in row.cells],
        "versus": [_versus(versus, footnotes) for versus in row.versus],
        "notes": footnotes.numbers(row.notes),
        "floor": asdict(row.floor) if row.floor else None,
    }


def _cell(cell: Cell, footnotes: Footnotes) -> dict[str, Any]:
    return {
        "value": cell.value,
        "repeats": cell.repeats,
        "notes": footnotes.numbers(cell.notes),
        "of_ceiling": cell.of_ceiling,
        "of_claimed": cell.of_claimed,
    }


def _versus(versus: Versus | None, footnotes: Footnotes) -> dict[str, Any] | None:
    return vars(versus) | {"notes": footnotes.numbers(versus.notes)} if versus else None
