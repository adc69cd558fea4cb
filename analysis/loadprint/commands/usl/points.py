"""Reads throughputs by concurrency, column by column: from a CSV file or from an execution."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from loadprint.commands.sweep import cells, sweep_pivots, sweep_text
from loadprint.commands.sweep.cells import SweepCell, Swept
from loadprint.errors import InputError
from loadprint.judging import void
from loadprint.reading import bounds, strict_json

CONCURRENCY = (
    *("n", "threads", "connections", "clients", "concurrency", "users", "vusers", "virtual users"),
    *("virtual_users", "load", "terminals", "workers", "processes", "processors", "cpus", "cores"),
)
# words in the name of a column that is not a throughput; --column reads it anyway
OTHER = frozenset(
    (
        *("repeat", "run", "block", "seed", "side", "latency", "lat", "response", "time", "duration", "ms"),
        *("p50", "p90", "p95", "p99", "p999", "error", "errors", "err", "reconnects", "cpu", "util"),
        *("std", "stddev", "stdev", "sd", "se", "ci", "low", "high", "min", "max"),
    )
)
# an English number, in which a comma only separates thousands, and one of a locale with a decimal comma
POINT = re.compile(r"[+-]?([1-9]\d{0,2}(,\d{3})+(\.\d*)?|\d*(\.\d*)?([eE][+-]?\d+)?)")
COMMA = re.compile(r"[+-]?([1-9]\d{0,2}(\.\d{3})+(,\d*)?|\d*(,\d*)?([eE][+-]?\d+)?)")
EMPTY = ("", "-", "n/a", "na", "nan", "null", "none")
FIX = "give an execution of a campaign with a matrix over threads, such as lookup-scaling"


@dataclass(frozen=True)
class UslColumn:
    """One curve: concurrencies and throughputs (`unit`), repeats as separate points.

    `cells` are the measurements of an execution at each N; `notes` are remarks on the points.
    """

    name: str
    unit: str
    n: tuple[float, ...]
    x: tuple[float, ...]
    cells: Mapping[float, SweepCell] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Points:
    """All columns of one source; `concurrency` is the name of N."""

    source: Path
    title: str
    concurrency: str
    columns: tuple[UslColumn, ...]
    facts: tuple[tuple[str, str], ...] = ()


def read(
    path: Path,
    *,
    concurrency: str | None = None,
    columns: tuple[str, ...] = (),
    at: Mapping[float, float] | None = None,
) -> Points:
    """Read a CSV file or an execution; `at` maps a labelled N to the N at which it was measured.

    Raises InputError.
    """
    points = of(cells.read(path)) if path.is_dir() else _of_file(path, concurrency, columns)
    by_name = {column.name: column for column in points.columns}
    for name in columns:
        if name not in by_name:
            raise InputError(f"--column {name}", f"is not in {path}", f"name one of {', '.join(by_name)}")
    chosen = [column for column in points.columns if not columns or column.name in columns]
    for n, measured in (at or {}).items():
        if not any(n in column.n for column in chosen):
            raise InputError(f"--at {n:g}={measured:g}", f"{path} has no N = {n:g}", "name one of its N")
    facts = points.facts
    if at:
        facts += (("N", ", ".join(f"{n:g} corrected to {measured:g}" for n, measured in at.items())),)
        chosen = [
            replace(
                column,
                n=tuple(at.get(n, n) for n in column.n),
                cells={at.get(n, n): cell for n, cell in column.cells.items()},
            )
            for column in chosen
        ]
    fits = sum(len(set(column.n)) for column in chosen)
    if fits > bounds.FITS:
        what = (
            f"has {fits:,} different N in its columns of throughput, more than the limit of {bounds.FITS:,}"
        )
        raise InputError(path, what, "choose a column with --column, or fewer N")
    return replace(points, columns=tuple(chosen), facts=facts)


def of(swept: Swept) -> Points:
    """A column per other dimension of an execution, a point per run.

    Raises InputError where its sides do not differ in threads.
    """
    # not the cells that ran at a fixed rate, whose throughput is that rate
    free = replace(swept, cells=tuple(cell for cell in swept.cells if cell.plan.fraction is None))
    corner, row, name_of = sweep_pivots.dimensions(free)
    if corner != "threads":
        raise InputError(swept.path, "its sides do not differ in threads", FIX)
    by_column: dict[str, list[tuple[str, SweepCell]]] = {}
    for cell in free.cells:
        by_column.setdefault(name_of(cell), []).append((row(cell), cell))
    columns = [column for name, of_name in by_column.items() if (column := _of_cells(name, of_name)).n]
    if not columns:
        raise InputError(swept.path, "none of its runs counted operations", FIX)
    return Points(swept.path, sweep_text.title(free), "threads", tuple(columns), sweep_text.facts(free))


def _of_cells(name: str, of_name: Sequence[tuple[str, SweepCell]]) -> UslColumn:
    points, by_n, bound = [], {}, []
    for threads, cell in of_name:
        if not threads.isdigit():
            raise InputError(f"{name}: threads {threads}", "is not a number", FIX)
        rates = [rate for run in cell.runs if (rate := cells.operations(run)) is not None]
        if rates:
            points += [(float(threads), rate) for rate in rates]
            by_n[float(threads)] = cell
            bound += [threads] if void.CLIENT_BOUND in cell.doubts else []
    note = f"client-bound at N = {', '.join(bound)}: the load generator was the limit, not the server"
    unit = f"{of_name[0][1].operation.partition(' (')[0]}s/s"
    n, x = tuple(n for n, _ in points), tuple(x for _, x in points)
    return UslColumn(name, unit, n, x, by_n, (note,) if bound else ())


def _of_file(path: Path, concurrency: str | None, requested: Sequence[str]) -> Points:
    """Read a file whose first line names its columns; lines that start with # are comments.

    A cell that is empty or n/a was not measured. A column named as a latency, an error or the like is read
    only if `requested`; with such names no other column is read.
    """
    delimiter, ((_, heads), *rows) = _lines(path)
    place = _concurrency(path, heads, concurrency)
    requested = requested if set(requested) <= set(heads) else ()
    chosen, left_out = [], []
    for other, name in enumerate(heads):
        if other == place or not any(_could_be_number(row[other]) for _, row in rows):
            continue
        if name in requested or not (requested or OTHER & set(re.split(r"[^a-z0-9]+", name.lower()))):
            chosen.append(other)
        elif not requested:
            left_out.append(name)
    names = [heads[index] for index in (place, *chosen)]
    [(repeated, times)] = Counter(names).most_common(1)
    if times > 1:
        raise InputError(path, f"two columns are named `{repeated}`", "give each column its own name")
    cells = [(at, row[index]) for at, row in rows for index in (place, *chosen)]
    decimal = _decimal_comma(delimiter, cells, [(at, cell) for at, row in rows for cell in row])
    columns = [
        _column(heads[place], heads[index], [(at, row[place], row[index]) for at, row in rows], decimal)
        for index in chosen
    ]
    if not columns:
        raise InputError(path, f"has no column of throughput next to `{heads[place]}`", "add a named column")
    fact = ("left out", f"{', '.join(left_out)}: not named as a throughput (--column fits it)")
    return Points(path, path.name, heads[place], tuple(columns), (fact,) if left_out else ())


def _lines(path: Path) -> tuple[str, list[tuple[str, list[str]]]]:
    """The delimiter; the header and the lines below it, each with its place for a message."""
    text = bounds.read_text(path, bounds.TABLE, "give a CSV file, or the directory of an execution")
    bounds.require_table(path, text.count("\n"), 1)
    lines = [(f"{path}:{number}", line) for number, line in enumerate(text.splitlines(), start=1)]
    lines = [(at, line) for at, line in lines if line.strip() and not line.lstrip().startswith("#")]
    if len(lines) < 2:
        fix = "give a CSV file whose first line names columns"
        raise InputError(path, "has no lines below its header", fix)
    delimiter = max(",;\t", key=lines[0][1].count)
    parsed = bounds.read_cells(path, (line for _, line in lines), delimiter)
    bounds.require_table(path, len(parsed), len(parsed[0]))
    placed = []
    for (at, _), row in zip(lines, parsed, strict=False):
        if len(row) != len(parsed[0]):
            what = f"has {len(row)} cells where the first line has {len(parsed[0])}"
            raise InputError(at, what, "complete the line; quote numbers that hold a separator")
        placed.append((at, [cell.strip() for cell in row]))
    return delimiter, placed


def _concurrency(path: Path, heads: Sequence[str], requested: str | None) -> int:
    """Which column is the concurrency: the requested one, else the first with a usual name."""
    lower = [head.lower() for head in heads]
    wanted = CONCURRENCY if requested is None else (requested.lower(),)
    for place, head in enumerate(lower):
        if head in wanted:
            return place
    if requested is not None:
        fix = f"name one of {', '.join(heads)}"
        raise InputError(f"--concurrency {requested}", f"is not a column of {path}", fix)
    what = f"has no column of concurrency ({', '.join(heads)})"
    raise InputError(path, what, "name it with --concurrency NAME")


def _column(concurrency: str, name: str, rows: Sequence[tuple[str, str, str]], decimal: bool) -> UslColumn:
    points, missing = [], 0
    for place, of_n, of_x in rows:
        n, x = _number(place, concurrency, of_n, decimal), _number(place, name, of_x, decimal)
        if n is None or x is None:
            missing += 1
        elif x <= 0:
            fix = "leave the cell empty if it was not measured"
            raise InputError(place, f"{name} {of_x} is not a throughput above 0", fix)
        elif n <= 0:
            raise InputError(place, f"{n:g} is not a concurrency", "leave the line out")
        else:
            points.append((n, x))
    note = (f"{missing} line{'s' if missing > 1 else ''} without a value left out",) if missing else ()
    return UslColumn(name, "", tuple(n for n, _ in points), tuple(x for _, x in points), notes=note)


def _decimal_comma(delimiter: str, cells: Sequence[tuple[str, str]], file: Sequence[tuple[str, str]]) -> bool:
    """Whether these numbers have a decimal comma. Raises InputError for one of which that cannot be decided.

    Between commas they have a point. Elsewhere all have the same; where both are possible, the other cells of
    the file decide, and a comma between semicolons is decimal, as spreadsheets write it.
    """
    signed = [(at, text) for at, text in cells if _could_be_number(text) and set(text) & {".", ","}]
    if delimiter == "," or not signed:
        return False
    point, comma = _possible(signed)
    if point != comma:
        return comma
    at, text = next((cell for cell in signed if "." in cell[1]), signed[0])
    what = f"`{text}` can be two numbers: a comma elsewhere is a decimal sign, or separates thousands"
    if point:
        point, comma = _possible(file)
        if point != comma:
            return comma
        if delimiter == ";" and "," in text:
            return True
        readings = " or ".join(f"{float(_plain(text, decimal)):.15g}" for decimal in (False, True))
        what = f"`{text}` can be two numbers, {readings}"
    raise InputError(at, what, "write all numbers as 1234.5, without separators of thousands")


def _possible(cells: Sequence[tuple[str, str]]) -> tuple[bool, bool]:
    """Whether all these numbers can have a decimal point, and whether a decimal comma."""
    numbers = [text for _, text in cells if _could_be_number(text)]
    return all(map(POINT.fullmatch, numbers)), all(map(COMMA.fullmatch, numbers))


def _plain(text: str, decimal: bool) -> str:
    """A number without separators of thousands, and with a point."""
    return text.replace(".", "").replace(",", ".") if decimal else text.replace(",", "")


def _number(place: str, name: str, text: str, decimal: bool) -> float | None:
    """A number with a decimal comma, or with a point and perhaps thousands; None for a cell without one."""
    if text.lower() in EMPTY:
        return None
    value = None
    if (COMMA if decimal else POINT).fullmatch(text):
        value = _finite(_plain(text, decimal))
    if value is None:
        raise InputError(place, f"{name} {text!r} is not a number", "write it as 1234.5, or leave it empty")
    return value


def _could_be_number(text: str) -> bool:
    digits = any(map(str.isdigit, text.lower().partition("e")[0]))
    return digits and (POINT.fullmatch(text) or COMMA.fullmatch(text)) is not None


def _finite(text: str) -> float | None:
    """A number within the bounds of documents; None otherwise."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if value == 0 or strict_json.SMALLEST <= abs(value) <= strict_json.LARGEST else None
