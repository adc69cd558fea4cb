"""Reads points from a CSV file: a column of concurrency, and one or more of throughput."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path

from loadprint.commands.usl.usl_columns import Column, Points
from loadprint.errors import InputError
from loadprint.printable import printable
from loadprint.reading import bounds, documents

CONCURRENCY = (
    "n",
    "threads",
    "connections",
    "clients",
    "concurrency",
    "users",
    "vusers",
    "virtual users",
    "virtual_users",
    "load",
    "terminals",
    "workers",
    "processes",
    "processors",
    "cpus",
    "cores",
)
# words in the name of a column that is not a throughput; --column reads it anyway
OTHER = frozenset(
    (
        *("repeat", "run", "block", "seed", "side", "latency", "lat", "response", "time", "duration", "ms"),
        *("p50", "p90", "p95", "p99", "p999", "error", "errors", "err", "reconnects", "cpu", "util"),
        *("std", "stddev", "stdev", "sd", "se", "ci", "low", "high", "min", "max"),
    )
)
EMPTY = ("", "-", "n/a", "na", "nan", "null", "none")
Rows = list[tuple[int, list[str]]]  # with the number of their line


def read(path: Path, concurrency: str | None = None, requested: Sequence[str] = ()) -> Points:
    """Read a file whose first line names its columns; lines that start with # are comments.

    A cell that is empty or n/a was not measured. A column named as a latency, an error or the like is read
    only if `requested`. Raises InputError with file and line.
    """
    heads, rows = _table(path)
    place = _place(path, heads, concurrency)
    numbers = [_number(path, line, heads[place], row[place]) for line, row in rows]
    columns, left_out = [], []
    for other, name in enumerate(heads):
        cells = [row[other] for _, row in rows]
        if other == place or not any(_is_number(cell) for cell in cells):
            continue
        if name in requested or not OTHER & set(re.split(r"[^a-z0-9]+", name.lower())):
            columns.append(_column(path, name, numbers, [(line, row[other]) for line, row in rows]))
        else:
            left_out.append(name)
    if not columns:
        raise InputError(path, f"has no column of throughput next to `{heads[place]}`", "add a named column")
    facts = (
        (("left out", f"{', '.join(left_out)}: not named as a throughput (--column fits it)"),)
        if left_out
        else ()
    )
    return Points(path, path.name, heads[place], tuple(columns), facts)


def _column(
    path: Path, name: str, numbers: Sequence[float | None], cells: Sequence[tuple[int, str]]
) -> Column:
    n, x, missing = [], [], 0
    for at, (line, cell) in zip(numbers, cells, strict=True):
        value = _number(path, line, name, cell)
        if at is None or value is None:
            missing += 1
            continue
        if value <= 0:
            what = f"{name} {cell.strip()} is not a throughput above 0"
            raise InputError(f"{path}:{line}", what, "leave the cell empty if it was not measured")
        if at <= 0:
            raise InputError(f"{path}:{line}", f"{at:g} is not a concurrency", "leave the line out")
        n.append(at)
        x.append(value)
    note = (f"{missing} line{'s' if missing > 1 else ''} without a value left out",) if missing else ()
    return Column(name, "", tuple(n), tuple(x), notes=note)


def _table(path: Path) -> tuple[list[str], Rows]:
    text = bounds.read_text(path, bounds.TABLE, "give a CSV file, or the directory of an execution")
    bounds.require_table(path, text.count("\n"), 1)
    lines = [(number, line) for number, line in enumerate(text.splitlines(), start=1)]
    lines = [(number, line) for number, line in lines if line.strip() and not line.lstrip().startswith("#")]
    if len(lines) < 2:
        raise InputError(
            path, "has no lines below its header", "give a CSV file whose first line names columns"
        )
    delimiter = max(",;\t", key=lines[0][1].count)
    try:
        reader = csv.reader((line for _, line in lines), delimiter=delimiter, strict=True)
        parsed = [list(map(printable, line)) for line in reader]
    except csv.Error as error:
        raise InputError(path, f"is not a CSV file ({error})", "write it as RFC 4180 describes") from error
    heads = [head.strip() for head in parsed[0]]
    bounds.require_table(path, len(parsed), len(heads))
    rows = list(zip([number for number, _ in lines[1:]], parsed[1:], strict=False))
    for number, row in rows:
        if len(row) != len(heads):
            what = f"has {len(row)} cells where the first line has {len(heads)}"
            raise InputError(
                f"{path}:{number}", what, "complete the line; quote numbers that hold a separator"
            )
    return heads, rows


def _place(path: Path, heads: Sequence[str], requested: str | None) -> int:
    """Which column is the concurrency: the requested one, else the first with a usual name."""
    lower = [head.lower() for head in heads]
    if requested is not None:
        if requested.lower() in lower:
            return lower.index(requested.lower())
        raise InputError(
            f"--concurrency {requested}", f"is not a column of {path}", f"name one of {', '.join(heads)}"
        )
    for place, head in enumerate(lower):
        if head in CONCURRENCY:
            return place
    raise InputError(
        path, f"has no column of concurrency ({', '.join(heads)})", "name it with --concurrency NAME"
    )


def _is_number(text: str) -> bool:
    try:
        value = abs(float(text.replace(",", "")))
    except ValueError:
        return False
    return value == 0 or documents.SMALLEST <= value <= documents.LARGEST


def _number(path: Path, line: int, name: str, text: str) -> float | None:
    """A number, with or without thousands separators; None for a cell without one."""
    if text.strip().lower() in EMPTY:
        return None
    if not _is_number(text):
        raise InputError(
            f"{path}:{line}",
            f"{name} {text.strip()!r} is not a number",
            "write it as 1234.5, or leave it empty",
        )
    return float(text.replace(",", ""))
