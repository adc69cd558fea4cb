"""Runs SQL over a recording's Parquet files in an embedded DuckDB.

Results are NumPy arrays. Integers become doubles: exact up to 2^53, which is 9 PB or 104 days of
nanoseconds. Text is made printable. DuckDB's memory, the rows of a file and of a result, and the length of
texts are bounded.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from loadprint import temporary
from loadprint.errors import InputError
from loadprint.printable import UNSAFE, printable
from loadprint.reading import bounds, column_types, documents, units
from loadprint.reading.run_documents import ColumnMeaning, TableMeaning

Columns = dict[str, NDArray[Any]]
Kinds = Mapping[str, str]  # TEXT, LIST or OTHER by name

LARGEST = 1e24  # a million sources that each count to 2^60; larger values are not measurements
TEXT, LIST, OTHER = "text", "list", "other"
FEW = 50_000  # rows of text that are fetched directly; above it each distinct text is fetched once
MEMORY = "384MiB"  # of DuckDB; a sort of 20 million rows needs less; beyond it, up to SPILL is on disk
SPILL = "4GiB"
FIX = "copy the run directory again, or leave this run out of the comparison"


@dataclass(frozen=True)
class Footer:
    """Number of rows, names and kinds of the columns, and the JSON under the key `loadprint`.

    `entities` are the columns that are text in every row.
    """

    rows: int
    columns: tuple[tuple[str, str], ...]
    described: TableMeaning | None
    entities: frozenset[str]


class Store:
    """An in-memory DuckDB that reads Parquet files in place."""

    def __init__(self) -> None:
        # an unknown table is an error, never a Python variable; no extension is downloaded
        self._duckdb = duckdb.connect(
            config={
                "python_enable_replacements": False,
                "autoinstall_known_extensions": False,
                "memory_limit": MEMORY,
                "temp_directory": str(temporary.directory("loadprint-")),
                "max_temp_directory_size": SPILL,
            }
        )
        # every query opens the file
        self._duckdb.execute("SET parquet_metadata_cache = true")
        self._footers: dict[Path, Footer] = {}
        self._kinds: dict[Hashable, Kinds] = {}

    def fetch(
        self,
        path: Path,
        query: str,
        *,
        between: Sequence[tuple[int, int]] | None = None,
        at: Sequence[int] | None = None,
    ) -> Columns:
        """Run a SELECT over one file, the table `t`: column name → array; null is NaN or, in text, None.

        `between` selects the ticks from the first to the last of some spans, `at` the given ones.
        Raises InputError if the file is not Parquet or has not all columns of the query.
        """
        # inlined, so that only the required columns and row groups are decoded
        # without hive partitioning, by which a parent directory `user=7` replaces a column `user`
        source = f"read_parquet({quote(_pattern(path))}, hive_partitioning = false)"
        head = f"SELECT * FROM {source}{_ticks(between, at)}"
        try:
            rows = self._rows(path, f"WITH t AS NOT MATERIALIZED ({head}) {query}", query)
        except duckdb.Error as error:
            raise InputError(path, f"cannot be read ({_first_line(error)})", FIX) from error
        columns = {name: _plain(column) for name, column in rows.items()}
        texts = self._footer(path).entities
        flaws = (column_types.value_flaw(name, column, texts) for name, column in columns.items())
        if flaw := next(filter(None, flaws), ""):
            raise InputError(path, flaw, FIX)
        return columns

    def _rows(self, path: Path, sql: str, query: str) -> Columns:
        """Rows of a query within the bounds. Raises InputError and duckdb.Error."""
        footer = self._footer(path)
        # the tables of other runs have the same columns
        if (query, footer.columns) not in self._kinds:
            bound = self._duckdb.sql(sql)
            self._kinds[query, footer.columns] = _kinds(
                zip(bound.columns, map(str, bound.types), strict=True)
            )
        kinds = self._kinds[query, footer.columns]
        texts = [name for name, kind in kinds.items() if kind == TEXT]
        lists = [name for name, kind in kinds.items() if kind == LIST]
        bounded = [f"left({name}::VARCHAR, {bounds.TEXT}) AS {name}" for name in map(identifier, texts)]
        bounded += [
            f"CASE WHEN len({name}) <= {bounds.BUCKETS_IN_ROW} THEN {name} END AS {name}"
            for name in map(identifier, lists)
        ]
        source = f"SELECT * REPLACE ({', '.join(bounded)}) FROM ({sql})" if bounded else sql
        max_rows = bounds.CELLS // (len(kinds) + len(lists) * bounds.BUCKETS_IN_ROW)
        limit = min(max_rows, FEW) if texts else max_rows
        # a LIMIT doubles the time of a query
        fits = footer.rows <= limit
        rows = self._duckdb.execute(source).fetchnumpy() if fits else self._limited(source, limit)
        if rows is None and texts and max_rows > FEW:
            rows = self._coded(path, source, texts, max_rows)
        if rows is None:
            raise InputError(path, f"a query returns more than {max_rows:,} rows", FIX)
        return rows

    def _limited(self, source: str, limit: int) -> Columns | None:
        """Rows of a query; None if there are more than `limit`."""
        rows = self._duckdb.execute(f"FROM ({source}) LIMIT {limit + 1}").fetchnumpy()
        return None if max(map(len, rows.values()), default=0) > limit else rows

    def _coded(self, path: Path, source: str, texts: Sequence[str], limit: int) -> Columns | None:
        """As `_limited`; equal texts share one object, which needs a fifth of the memory."""
        values: Columns = {}
        codes = []
        for place, text in enumerate(texts):
            name, kind = identifier(text), f"texts_{place}"
            distinct = f"SELECT DISTINCT {name} FROM ({source}) WHERE {name} IS NOT NULL ORDER BY 1"
            rows = self._limited(distinct, FEW)
            if rows is None:
                raise InputError(path, f"column `{text}` has more than {FEW:,} distinct texts", FIX)
            values[text] = np.array([*rows[text].tolist(), None], dtype=object)
            self._duckdb.execute(f"DROP TYPE IF EXISTS {kind}")
            self._duckdb.execute(f"CREATE TYPE {kind} AS ENUM ({distinct})")
            codes.append(f"coalesce(enum_code({name}::{kind}), {len(values[text]) - 1}) AS {name}")
        coded = self._limited(f"SELECT * REPLACE ({', '.join(codes)}) FROM ({source})", limit)
        return None if coded is None else coded | {text: values[text][coded[text]] for text in texts}

    def _footer(self, path: Path) -> Footer:
        if path not in self._footers:
            self._footers[path] = _read_footer(path)
        return self._footers[path]

    def rows(self, path: Path) -> int:
        """Number of a file's rows. Raises InputError."""
        return self._footer(path).rows

    def columns(self, path: Path) -> tuple[str, ...]:
        """Names of a file's columns. Raises InputError."""
        return tuple(name for name, _ in self._footer(path).columns)

    def metadata(self, path: Path) -> TableMeaning:
        """Return the JSON under the key `loadprint` in a file's footer. Raises InputError."""
        described = self._footer(path).described
        if described is None:
            raise InputError(path, "has no `loadprint` metadata", "give a table of loadprint-collect")
        return described

    def described(self, path: Path, column: str) -> ColumnMeaning:
        """The metadata of a column or metric; empty without. Raises InputError."""
        described = self._footer(path).described or TableMeaning()
        return described.meanings.get(column, ColumnMeaning())


def _read_footer(path: Path) -> Footer:
    """Read a file's footer. Raises InputError if the file is not a table of a recording."""
    try:
        with path.open("rb") as file:  # a path that is not UTF-8 can be opened
            read = pq.read_metadata(file)
        columns = tuple(
            (field.name, column_types.kind(field.type)) for field in read.schema.to_arrow_schema()
        )
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", "") or _first_line(error)
        raise InputError(path, f"cannot be read ({reason})", FIX) from error
    limit = bounds.ROWS_OF.get(path.name, bounds.ROWS)
    if read.num_rows > limit:
        raise InputError(path, f"{read.num_rows:,} rows, more than the limit of {limit:,}", FIX)
    described = _described(path, (read.metadata or {}).get(b"loadprint"))
    table, meaning = path.stem, described or TableMeaning()
    if flaw := column_types.type_flaw(table, meaning, columns) or units.unit_flaw(table, meaning):
        raise InputError(path, flaw, FIX)
    return Footer(read.num_rows, columns, described, column_types.entities(table, meaning))


def _described(path: Path, text: bytes | None) -> TableMeaning | None:
    """The JSON in a footer. Raises InputError."""
    try:
        return None if text is None else _meaning(text)
    except InputError as error:
        raise InputError(path, f"its `loadprint` metadata: {error.what}", FIX) from error


@lru_cache
def _meaning(text: bytes) -> TableMeaning:
    """The JSON of a footer, which is the same in all runs. Raises InputError."""
    return documents.parse("footer", text, TableMeaning, FIX)


def grouped(names: NDArray[Any]) -> list[tuple[str, NDArray[np.intp]]]:
    """Distinct texts of a column in sorted order, each with the indexes of its rows."""
    texts = names.tolist()
    codes = {name: code for code, name in enumerate(sorted(set(texts)))}
    place = np.fromiter(map(codes.__getitem__, texts), np.intp, len(texts))
    order = np.argsort(place, kind="stable")
    ends = np.searchsorted(place[order], np.arange(len(codes) + 1))
    return [(str(name), order[ends[code] : ends[code + 1]]) for name, code in codes.items()]


def by_entity(rows: Columns, key: str) -> Iterator[tuple[str, Columns]]:
    """Split rows by an entity column, in sorted order; the rows of each keep their order."""
    for name, places in grouped(rows[key]):
        yield name, {column: values[places] for column, values in rows.items()}


@dataclass(frozen=True)
class Members:
    """The rows of several entities by tick; `values` are float64[entities, ticks] of each column.

    `present`, bool[entities, ticks], is where an entity has a row, or is known to have counted nothing.
    Elsewhere the values are NaN. `recorded` is where it has a row.
    """

    ticks: NDArray[Any]
    values: dict[str, NDArray[np.float64]]
    present: NDArray[np.bool_]
    recorded: NDArray[np.bool_]

    def some(self, chosen: NDArray[np.bool_]) -> Members:
        """The chosen entities, bool[entities]."""
        values = {name: matrix[chosen] for name, matrix in self.values.items()}
        return Members(self.ticks, values, self.present[chosen], self.recorded[chosen])

    def born_at_zero(self) -> Members:
        """The same with zeros before the first row of each entity: it did not exist and counted nothing."""
        before = ~np.logical_or.accumulate(self.present, axis=1)
        values = {name: np.where(before, 0.0, matrix) for name, matrix in self.values.items()}
        return Members(self.ticks, values, self.present | before, self.recorded)


def together(rows: Columns, key: str, ticks: NDArray[Any] | None = None) -> Members:
    """Rows as matrices; there should be few entities. At `ticks`, by default those of the rows."""
    at_rows = np.unique(rows["tick"]) if ticks is None else ticks
    at = np.searchsorted(at_rows, rows["tick"])
    entities, of = np.unique(rows[key], return_inverse=True)
    shape = len(entities), len(at_rows)
    present = np.zeros(shape, dtype=bool)
    present[of, at] = True
    values = {name: np.full(shape, np.nan) for name in rows.keys() - {"tick", key}}
    for name, matrix in values.items():
        matrix[of, at] = rows[name]
    return Members(at_rows, values, present, present)


def doubles(names: Iterable[str]) -> dict[str, str]:
    """SQL of columns as doubles, the type of all arithmetic, by name."""
    return {name: f"{identifier(name)}::DOUBLE" for name in names}


def sums(names: Iterable[str]) -> dict[str, str]:
    """SQL of the sums of columns, by name."""
    return {name: f"sum({column})" for name, column in doubles(names).items()}


def select_list(columns: Mapping[str, str]) -> str:
    """SQL expressions by name, as the columns of a SELECT."""
    return ", ".join(f"{sql} AS {identifier(name)}" for name, sql in columns.items())


def quote(value: str) -> str:
    """Return a text as SQL."""
    return "'" + value.replace("'", "''") + "'"


def metrics(names: Iterable[str]) -> str:
    """Return a SELECT of the rows of these metrics from a table of metrics."""
    return f"SELECT tick, metric, value::DOUBLE AS value FROM t WHERE metric IN {among(names)}"


def among(values: Iterable[str]) -> str:
    """Texts as SQL, for IN."""
    return f"({', '.join(map(quote, values)) or 'NULL'})"


def _ticks(between: Sequence[tuple[int, int]] | None, at: Sequence[int] | None) -> str:
    """The WHERE clause that selects ticks."""
    if between is not None:
        spans = (f"tick BETWEEN {int(first)} AND {int(last)}" for first, last in between)
        return f" WHERE {' OR '.join(spans) or 'false'}"
    return "" if at is None else f" WHERE tick IN ({', '.join(str(int(tick)) for tick in at)})"


def _pattern(path: Path) -> str:
    """A path with the wildcards of DuckDB escaped."""
    return "".join(f"[{sign}]" if sign in "[*?" else sign for sign in str(path))


def _kinds(shape: Iterable[tuple[str, str]]) -> Kinds:
    """Kind of each column of a query, from DuckDB's names of their types."""
    texts = ("VARCHAR", "JSON", "UUID")
    return {name: TEXT if kind in texts else LIST if kind.endswith("[]") else OTHER for name, kind in shape}


def identifier(column: str) -> str:
    """A column's name, identifier for SQL."""
    return '"' + column.replace('"', '""') + '"'


def _plain(column: NDArray[Any]) -> NDArray[Any]:
    """A column with NaN or None for null; numbers that are not finite or too large become null."""
    if isinstance(column, np.ma.MaskedArray):
        if column.dtype.kind == "f":
            column = np.asarray(column.filled(np.nan))
        else:
            plain = np.array(column.data, dtype=object)
            plain[np.ma.getmaskarray(column)] = None
            column = plain
    if column.dtype.kind == "f":
        beyond = ~(np.abs(column) <= LARGEST)
        return np.where(beyond, np.nan, column) if beyond.any() else column
    return _printable(column) if column.dtype.kind == "O" else column


def _printable(column: NDArray[Any]) -> NDArray[Any]:
    """The column with printable texts; other objects, such as buckets, are unchanged."""
    values = column.tolist()
    try:
        distinct = set(values)
    except TypeError:  # lists
        return column
    clean = {text: printable(text) for text in distinct if isinstance(text, str) and UNSAFE.search(text)}
    return np.array([clean.get(text, text) for text in values], dtype=object) if clean else column


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", maxsplit=1)[0][:160]
