"""Queries over a recording's Parquet files: Ibis expressions, run by an embedded DuckDB.

Results leave as NumPy arrays: the Arrow way out of Ibis imports pandas, a fifth of a second of start-up.
Integers arrive as doubles: exact up to 2^53, which is 9 PB or 104 days of nanoseconds. Text arrives
printable. The memory of DuckDB, the rows of a file and of a result, and the length of texts are bounded.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import ibis
import ibis.expr.types as ir
import numpy as np
from numpy.typing import NDArray
from sqlglot.errors import SqlglotError

from loadprint.errors import InputError
from loadprint.printable import UNSAFE, printable
from loadprint.reading import bounds, documents, shapes, translate
from loadprint.reading.query_key import key_of

Columns = dict[str, NDArray[Any]]
Query = Callable[[ir.Table], ir.Table]
Shape = tuple[tuple[str, str], ...]
Translated = tuple[str, dict[str, str]]  # a query as SQL, and what each of its columns holds

# what a row is about, and when: never null (docs/recording-format.md)
ENTITIES = frozenset(
    (
        *("probe", "status", "role", "state", "device", "operation", "stage", "syscall", "command", "entity"),
        *("interface", "metric", "resource", "severity", "kind", "line", "cpus", "cpu", "event", "endpoint"),
    )
)
STAMPS = frozenset(("tick", "start", "end", "realtime", "second", "begin", "shift", "born", "seen"))
LARGEST = 1e24  # a million sources that each count to 2^60; beyond it is no measurement
RECORDING = "recording"  # what queries call the file that they read
TEXT, LIST, OTHER = "text", "list", "other"
FEW = 50_000  # rows of text that are fetched as they are; of more, each text is fetched once
MEMORY = "384MiB"  # of DuckDB; a sort of 20 million rows takes less, what takes more is spilled up to SPILL
SPILL = "4GiB"
FIX = "copy the run directory again, or leave this run out of the comparison"


class Store:
    """One in-memory DuckDB that reads Parquet files where they lie."""

    def __init__(self) -> None:
        spilled = tempfile.mkdtemp(prefix="loadprint-")
        weakref.finalize(self, shutil.rmtree, spilled, ignore_errors=True)
        # a name that is no table is a mistake, never a variable of ours; nothing is had from the network
        self._duckdb = duckdb.connect(
            config={
                "python_enable_replacements": False,
                "autoinstall_known_extensions": False,
                "memory_limit": MEMORY,
                "temp_directory": spilled,
                "max_temp_directory_size": SPILL,
            }
        )
        # a file is opened for its shape and every query
        self._duckdb.execute("SET parquet_metadata_cache = true")
        self._translated: dict[Hashable, Translated] = {}
        self._shapes: dict[Hashable, Shape] = {}
        self._lengths: dict[Hashable, int] = {}
        self._described: dict[Hashable, Mapping[str, Any]] = {}

    def fetch(
        self,
        path: Path,
        query: Query,
        *,
        between: tuple[int, int] | None = None,
        at: Sequence[int] | None = None,
    ) -> Columns:
        """Run `query` over one file: column name → array; null is NaN in numbers and None in text.

        `between` takes only ticks from the first to the last of two, `at` only those given: ticks differ from
        run to run, and a query that names none is the same for all.
        Raises InputError naming the file when it is not Parquet or lacks a column that the query names.
        """
        try:
            rows = self._rows(path, *self._sql(path, query, _ticks(between, at)))
        except (duckdb.Error, ibis.common.exceptions.IbisError, SqlglotError, AttributeError) as error:
            raise InputError(path, f"cannot be read ({_first_line(error)})", FIX) from error
        columns = {name: _plain(column) for name, column in rows.items()}
        if said := next((told for name, column in columns.items() if (told := _flaw(name, column))), ""):
            raise InputError(path, said, FIX)
        return columns

    def _rows(self, path: Path, sql: str, kinds: Mapping[str, str]) -> Columns:
        """Rows of a query, no more than the bounds allow. Raises InputError and duckdb.Error."""
        texts = [name for name, kind in kinds.items() if kind == TEXT]
        lists = [name for name, kind in kinds.items() if kind == LIST]
        bounded = [f"left({name}, {bounds.TEXT}) AS {name}" for name in map(_name, texts)]
        bounded += [
            f"CASE WHEN len({name}) <= {bounds.BUCKETS_IN_ROW} THEN {name} END AS {name}"
            for name in map(_name, lists)
        ]
        source = f"SELECT * REPLACE ({', '.join(bounded)}) FROM ({sql})" if bounded else sql
        most = bounds.CELLS // (len(kinds) + len(lists) * bounds.BUCKETS_IN_ROW)
        limit = min(most, FEW) if texts else most
        # a LIMIT doubles the time of a query
        known = self._lengths[_version(path)] <= limit
        rows = self._duckdb.execute(source).fetchnumpy() if known else self._limited(source, limit)
        if rows is None and texts and most > FEW:
            rows = self._coded(path, source, texts, most)
        if rows is None:
            raise InputError(path, f"holds more than {most:,} rows of one kind", FIX)
        return rows

    def _limited(self, source: str, most: int) -> Columns | None:
        """Rows of a query; None where there are more than `most`."""
        rows = self._duckdb.execute(f"FROM ({source}) LIMIT {most + 1}").fetchnumpy()
        return None if max(map(len, rows.values()), default=0) > most else rows

    def _coded(self, path: Path, source: str, texts: Sequence[str], most: int) -> Columns | None:
        """As `_limited`; equal texts are one object, a fifth of the memory of one for each row."""
        known: Columns = {}
        codes = []
        for place, text in enumerate(texts):
            name, kind = _name(text), f"texts_{place}"
            distinct = f"SELECT DISTINCT {name} FROM ({source}) WHERE {name} IS NOT NULL ORDER BY 1"
            found = self._limited(distinct, FEW)
            if found is None:
                raise InputError(path, f"its column `{text}` holds more than {FEW:,} texts", FIX)
            known[text] = np.array([*found[text].tolist(), None], dtype=object)
            self._duckdb.execute(f"DROP TYPE IF EXISTS {kind}")
            self._duckdb.execute(f"CREATE TYPE {kind} AS ENUM ({distinct})")
            codes.append(f"coalesce(enum_code({name}::{kind}), {len(known[text]) - 1}) AS {name}")
        rows = self._limited(f"SELECT * REPLACE ({', '.join(codes)}) FROM ({source})", most)
        return None if rows is None else rows | {text: known[text][rows[text]] for text in texts}

    def _sql(self, path: Path, query: Query, where: str) -> Translated:
        """A query over a file, translated once for all files of one shape.

        A translation takes ten times as long as what it says; most files of a comparison differ in nothing
        but their path, which stands before what was translated.
        """
        shape, known = self._shape(path), key_of(query)
        found = None if known is None else self._translated.get((known, shape))
        if found is None:
            schema = {name: translate.data_type(kind) for name, kind in shape}
            expression = query(ibis.table(schema, name=RECORDING))
            found = translate.sql(expression), _kinds(expression.schema())
            if known is not None:
                self._translated[known, shape] = found
        translated, kinds = found
        source = f"SELECT * FROM read_parquet('{_quoted(path)}'){where}"
        # inlined, so that only the columns and row groups that a query needs are decoded
        began = f"WITH {RECORDING} AS NOT MATERIALIZED ({source})"
        more = translated.removeprefix("WITH ")
        return (f"{began} {translated}" if more == translated else f"{began}, {more}"), kinds

    def _shape(self, path: Path) -> Shape:
        """Columns of a file and what DuckDB calls their types."""
        version = _version(path)
        if version not in self._shapes:
            pattern = [_pattern(path)]
            counted = self._duckdb.execute("SELECT num_rows FROM parquet_file_metadata(?)", pattern)
            rows = counted.fetchall()[0][0]
            most = bounds.TICKS if path.name == "ticks.parquet" else bounds.ROWS
            if rows > most:
                raise InputError(path, f"holds {rows:,} rows, more than {most:,}", FIX)
            self._lengths[version] = rows
            found = self._duckdb.execute(f"DESCRIBE SELECT * FROM read_parquet('{_quoted(path)}')").fetchall()
            self._shapes[version] = tuple((str(name), str(kind)) for name, kind, *_ in found)
        return self._shapes[version]

    def kinds(self, path: Path) -> dict[str, str]:
        """What each column of a file holds: TEXT, LIST or OTHER. Raises InputError."""
        self.columns(path)
        return _kinds(ibis.schema({name: translate.data_type(kind) for name, kind in self._shape(path)}))

    def columns(self, path: Path) -> tuple[str, ...]:
        """Names of a file's columns. Raises InputError."""
        try:
            return tuple(name for name, _ in self._shape(path))
        except duckdb.Error as error:
            raise InputError(path, f"cannot be read ({_first_line(error)})", FIX) from error

    def metadata(self, path: Path) -> Mapping[str, Any]:
        """Return the JSON under the key `loadprint` in a file's footer. Raises InputError."""
        version = _version(path)
        if version not in self._described:
            self._described[version] = self._metadata(path)
        return self._described[version]

    def _metadata(self, path: Path) -> Mapping[str, Any]:
        try:
            cursor = self._duckdb.execute(
                "SELECT value FROM parquet_kv_metadata(?) WHERE decode(key) = 'loadprint'", [_pattern(path)]
            )
            found = cursor.fetchone()
        except duckdb.Error as error:
            raise InputError(path, f"cannot be read ({_first_line(error)})", FIX) from error
        if found is None:
            raise InputError(path, "has no `loadprint` metadata", "was it written by loadprint-collect?")
        try:
            described = documents.loads(bytes(found[0]))
        except ValueError as error:
            raise InputError(path, f"its `loadprint` metadata is no JSON ({error})", FIX) from error
        if not isinstance(described, dict):
            raise InputError(path, "its `loadprint` metadata is not an object", FIX)
        if said := documents.shape_error(described, shapes.TABLE):
            raise InputError(path, f"its `loadprint` metadata: {said}", FIX)
        return described


def _version(path: Path) -> Hashable:
    """A file as it is now: what was read of it holds until it is written anew."""
    try:
        told = path.stat()
    except OSError as error:
        raise InputError(path, f"cannot be read ({error.strerror})", FIX) from error
    return (path, told.st_dev, told.st_ino, told.st_size, told.st_mtime_ns)


def _flaw(name: str, column: NDArray[Any]) -> str:
    """Why rows cannot be told apart by a column, or put in time; empty for columns that hold values."""
    if name in ENTITIES:
        named = column.dtype.kind == "O" and set(map(type, column.tolist())) <= {str}
        return "" if named or not len(column) else f"its column `{name}` does not name every row in text"
    if name in STAMPS:
        known = column.dtype.kind in "iu" or (
            column.dtype.kind == "f" and bool((np.abs(column) <= documents.LARGEST_INTEGER).all())
        )
        return "" if known or not len(column) else f"its column `{name}` is not a number in every row"
    if name == "buckets" and any(value is None for value in column):
        return f"its column `{name}` has nothing in some row"
    return ""


def grouped(names: NDArray[Any]) -> list[tuple[str, NDArray[np.intp]]]:
    """Names in a column of text, in their order, each with the places of its rows, in theirs."""
    listed = names.tolist()
    codes = {name: code for code, name in enumerate(sorted(set(listed)))}
    place = np.fromiter(map(codes.__getitem__, listed), np.intp, len(listed))
    order = np.argsort(place, kind="stable")
    ends = np.searchsorted(place[order], np.arange(len(codes) + 1))
    return [(str(name), order[ends[code] : ends[code + 1]]) for name, code in codes.items()]


def number(column: ir.Value) -> ir.Value:
    """Cast a column to double, the one type of all arithmetic here."""
    return column.cast("float64")


def _ticks(between: tuple[int, int] | None, at: Sequence[int] | None) -> str:
    """The ticks of a recording that are wanted, in SQL."""
    if between is not None:
        return f" WHERE tick BETWEEN {int(between[0])} AND {int(between[1])}"
    return "" if at is None else f" WHERE tick IN ({', '.join(str(int(tick)) for tick in at)})"


def _quoted(path: Path) -> str:
    """A path within a quoted SQL text."""
    return _pattern(path).replace("'", "''")


def _pattern(path: Path) -> str:
    """A path as DuckDB takes it; brackets and stars would stand for many files."""
    return "".join(f"[{sign}]" if sign in "[*?" else sign for sign in str(path))


def _kinds(schema: ibis.Schema) -> dict[str, str]:
    """What each column of a query holds."""
    return {
        name: TEXT if kind.is_string() else LIST if kind.is_array() else OTHER
        for name, kind in schema.items()
    }


def _name(column: str) -> str:
    """A column's name in SQL."""
    return '"' + column.replace('"', '""') + '"'


def _plain(column: NDArray[Any]) -> NDArray[Any]:
    """A column with NaN or None for nothing; a number that is none, or beyond any, is nothing too."""
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
    """The column with its texts printable; other objects, such as buckets, as they are."""
    listed = column.tolist()
    try:
        known = set(listed)
    except TypeError:  # lists
        return column
    clean = {text: printable(text) for text in known if isinstance(text, str) and UNSAFE.search(text)}
    return np.array([clean.get(text, text) for text in listed], dtype=object) if clean else column


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", maxsplit=1)[0][:160]
