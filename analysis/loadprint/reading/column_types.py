"""Checks the types and values of a recorded table's columns (docs/recording-format.md, "Parquet files").

A file that matches its checksum can have a real number as port and a struct as counter. Entities are those of
the footer and of the probe's declaration; unknown columns, of later versions, may contain text or numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from loadprint.reading import strict_json
from loadprint.reading.declared import DECLARED
from loadprint.reading.run_documents import TableMeaning

ALWAYS_TEXT = frozenset({"probe", "status", "entity"})  # in every row: of `ticks`, and of queries
OPTIONAL_TEXT = frozenset({"reason", "text"})  # of every table
NUMBERS = frozenset({"pid", "tid"})  # entities that are numbers, and also accepted as such
# integers in every row; `begin`, `shift`, `born`, `seen` are of queries
STAMPS = frozenset(("tick", "start", "end", "realtime", "second", "begin", "shift", "born", "seen"))
STORED_STAMPS = frozenset(
    ("tick", "start_ns", "end_ns", "realtime_ns", "intended_ns", "monotonic_ns", "second")
)
BUCKETS = "buckets"
MAX_COUNT = 1 << 53  # of a bucket: a double is exact, and 1024 buckets do not exceed 64 bits
TEXT, INTEGER, REAL, NULLS, COUNTS = "text", "an integer", "a real number", "null", "a list of integers"
BOOLEAN = "a boolean"


def kind(arrow: pa.DataType) -> str:
    """The kind of a column: one of the above, else Arrow's name of its type. NULLS has no value at all.

    An extension type has the kind of its storage, which DuckDB reads; a UUID is read as text.
    """
    of = pa.types
    if isinstance(arrow, pa.BaseExtensionType):
        return TEXT if isinstance(arrow, pa.UuidType) else kind(arrow.storage_type)
    if of.is_dictionary(arrow):
        return kind(arrow.value_type)
    if of.is_list(arrow) or of.is_large_list(arrow):
        return COUNTS if kind(arrow.value_type) == INTEGER else str(arrow)
    if of.is_floating(arrow) or of.is_decimal(arrow) or of.is_boolean(arrow):
        return BOOLEAN if of.is_boolean(arrow) else REAL
    is_text = of.is_string(arrow) or of.is_large_string(arrow) or of.is_string_view(arrow)
    return (
        TEXT if is_text else INTEGER if of.is_integer(arrow) else NULLS if of.is_null(arrow) else str(arrow)
    )


def entities(table: str, described: TableMeaning) -> frozenset[str]:
    """Columns that are text in every row: the entity of the footer and of the probe, and the status."""
    declared = DECLARED[table].entity if table in DECLARED else ()
    return ALWAYS_TEXT.union(declared, filter(None, described.entity)) - NUMBERS


def type_flaw(table: str, described: TableMeaning, columns: Iterable[tuple[str, str]]) -> str:
    """What is wrong with the kinds of a file's columns; empty if nothing is."""
    always = entities(table, described)
    infos = {name for name, meaning in described.columns.items() if meaning.kind == "info"}
    for name, stored in columns:
        is_optional = name in OPTIONAL_TEXT or name in infos
        for expected, fits, applies in (
            (TEXT, stored == TEXT, name in always),
            (TEXT, stored in (TEXT, NULLS), is_optional),
            (COUNTS, stored == COUNTS, name == BUCKETS),
            (INTEGER, stored == INTEGER, name in STORED_STAMPS),
            ("text or a number", stored in (TEXT, INTEGER, REAL, BOOLEAN, NULLS), name != BUCKETS),
        ):
            if applies and not fits:
                return f"column `{name}` is {stored}, not {expected}"
    return ""


def value_flaw(name: str, column: NDArray[Any], always_text: Collection[str]) -> str:
    """What is wrong with an entity, stamp or bucket column of a query; empty for other columns."""
    if not len(column):
        return ""
    if name in always_text:
        complete = column.dtype.kind == "O" and set(map(type, column.tolist())) <= {str}
        return "" if complete else f"column `{name}` is not text in every row"
    if name in STAMPS:
        complete = column.dtype.kind in "iu" or (
            column.dtype.kind == "f" and bool((np.abs(column) <= strict_json.LARGEST_INTEGER).all())
        )
        return "" if complete else f"column `{name}` is not a number in every row"
    return _bucket_flaw(column) if name == BUCKETS else ""


def _bucket_flaw(column: NDArray[Any]) -> str:
    if any(value is None or np.ma.is_masked(value) for value in column):
        return f"column `{BUCKETS}` is null in some row"
    if len(set(map(len, column))) > 1:
        return f"column `{BUCKETS}` has another number of buckets in some row"
    counts = np.stack(column.tolist())
    is_count = not counts.size or (counts.min() >= 0 and counts.max() <= MAX_COUNT)
    return "" if is_count else f"column `{BUCKETS}` is not a count in some row"
