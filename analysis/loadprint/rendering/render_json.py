"""The table as JSON: the dataclasses of table.py, numbers in base units, absent ones null."""

from __future__ import annotations

import json
from dataclasses import asdict

from loadprint.tables.table import Table


def render(table: Table) -> str:
    """Return one JSON object."""
    return (
        json.dumps({"format_version": 1, **asdict(table)}, indent=1, ensure_ascii=False, allow_nan=False)
        + "\n"
    )
