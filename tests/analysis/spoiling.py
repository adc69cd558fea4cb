"""Damages a file as a bug, a crash or an attacker could: every kind of damage by the suffix of the file."""

from __future__ import annotations

import copy
import json
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

Damage = Callable[[Path, random.Random], object]
MANY = 3_000_000  # rows: as many Python objects for each take over 1 GB
OWNED = "\x1b]0;owned\x07\x1b[2J\u202e\x85"
# texts in place of a value of JSON or YAML
VALUES = (
    *("null", "true", "-1", "0", "9223372036854775808", "1" + "0" * 19, "1" + "0" * 400, "5e-324", "1e-300"),
    *("1e-17", "1e17", "1e18", "1e308", "1e999", "NaN", "Infinity", "-Infinity", '"text"', '""', "[]", "{}"),
    *('[["inf", "1"]]', "[[-5, 1], [2, 1]]", "[null]", '{"x": null}', '["a", 1]', "[[[[1]]]]", '"1e999"'),
    *(json.dumps(OWNED), r'"\ud800"', '"=HYPERLINK(1)"', '"<img src=x onerror=alert(1)>"', '"0-99999999999"'),
    *('"../../etc/passwd"', '"' + "9" * 5000 + '"', '{"\\ud800\\u001b": {"\\u202e": 1}}', '"9999-12-31"'),
    *('"' + "long " * 400_000 + '"', "[" * 100_000, "[" * 60 + "]" * 60, "[" + "{}," * 500_000 + "{}]"),
    *('"99999999999h"', '"99999999999999999999999T"', '"50 %"', '"{{ a }}"', '"{{ 9 ** 99 ** 99 }}"'),
    *('"{side:>999999999}"', '"2001-13-45"', '"1:30"', "0x10", "~", ".inf"),
)
CELLS = (
    *("threads", "n", "tps", "metric", "printed_ratio", "section", "quantity", "without", "with", "qps"),
    *("cpu_percent", "", "1", "2", "4", "8", "-1", "0", "1e300", "1e-300", "1e-400", "1e999999999", "nan"),
    *("inf", "n/a", "9" * 5000, '"9,' + "9" * 5000 + '"', '"1,2"', "1,2", '"', OWNED, "=1+1", "#", "1.2.3"),
    *("50%", ";", "\t"),
)
SYNTAX = (
    *("a: &a [1, 2]", "b: *a", "<<: *a", "- x", "? [a]", ": 1", "c: !x y", "d: !!int x", 'e: "\\e"', "[[[["),
    *("{a: {b: ", "%YAML 9.9", "---", "...", "f: |", "  text", "g: !!binary é", "h: !!set {a}", "\t", "#"),
)
# 9 to the power of 9 values in 400 bytes
ALIASES = "\n".join(
    ["a0: &a0 [x,x,x,x,x,x,x,x,x]"] + [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
)


def drop(path: Path, chance: random.Random) -> None:
    path.unlink()


def empty(path: Path, chance: random.Random) -> None:
    path.write_bytes(b"")


def truncate(path: Path, chance: random.Random) -> None:
    path.write_bytes(path.read_bytes()[: chance.randrange(path.stat().st_size)])


def flip(path: Path, chance: random.Random) -> None:
    octets = bytearray(path.read_bytes())
    for _ in range(chance.choice((1, 8))):
        octets[chance.randrange(len(octets))] ^= 1 << chance.randrange(8)
    path.write_bytes(octets)


def octets(path: Path, chance: random.Random) -> None:
    """Bytes that are not UTF-8."""
    kept = path.read_bytes()
    place = chance.randrange(len(kept))
    path.write_bytes(kept[:place] + b"\xff\xfe" + kept[place + 2 :])


def pad(path: Path, chance: random.Random) -> None:
    """Many empty lines."""
    with path.open("ab") as file:
        file.write(b"\n" * 40_000_000)


def directory(path: Path, chance: random.Random) -> None:
    path.unlink()
    path.mkdir()


def device(path: Path, chance: random.Random) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def fifo(path: Path, chance: random.Random) -> None:
    path.unlink()
    os.mkfifo(path)


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths to every value of a document, of lists to the first two."""
    yield at
    keys = value if isinstance(value, dict) else range(min(len(value), 2)) if isinstance(value, list) else ()
    for key in keys:
        yield from places(value[key], (*at, key))


def spoiled(document: Any, at: tuple[Any, ...], text: str | None) -> str:
    """The document as JSON with one value replaced by a text, or taken out."""
    if not at:
        return text or ""
    document = copy.deepcopy(document)
    parent = document
    for key in at[:-1]:
        parent = parent[key]
    if text is None:
        del parent[at[-1]]
        return json.dumps(document)
    parent[at[-1]] = "@spoiled@"
    return json.dumps(document).replace('"@spoiled@"', text)


def value(path: Path, chance: random.Random) -> None:
    """One value of a document, or of a line of JSON lines, becomes another, or goes."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines() if path.suffix == ".jsonl" else [text]
    place = chance.randrange(len(lines))
    document = (yaml.safe_load if path.suffix == ".yml" else json.loads)(lines[place])
    at = chance.choice(list(places(document)))
    lines[place] = spoiled(document, at, chance.choice([*VALUES, None] if at else VALUES))
    path.write_text("\n".join(lines), encoding="utf-8")


def twice(path: Path, chance: random.Random) -> None:
    """A key that is there twice."""
    text = path.read_text(encoding="utf-8")
    document = json.loads(text.splitlines()[0] if path.suffix == ".jsonl" else text)
    again = f"{json.dumps(chance.choice(list(document)))}: {chance.choice(VALUES)}, "
    path.write_text(text.replace("{", "{" + again, 1), encoding="utf-8")


def syntax(path: Path, chance: random.Random) -> None:
    """Lines of YAML in any order."""
    path.write_text("\n".join(chance.choices(SYNTAX, k=chance.randrange(1, 12))), encoding="utf-8")


def aliases(path: Path, chance: random.Random) -> None:
    path.write_text(ALIASES, encoding="utf-8")


def cell(path: Path, chance: random.Random) -> None:
    """A cell of a CSV file becomes another."""
    lines = [line.split(",") for line in path.read_text(encoding="utf-8").splitlines()]
    row = chance.choice(lines)
    row[chance.randrange(len(row))] = chance.choice(CELLS)
    path.write_text("\n".join(map(",".join, lines)), encoding="utf-8")


def cells(path: Path, chance: random.Random) -> None:
    """A CSV file of other cells."""
    lines = [chance.choices(CELLS, k=chance.randrange(5)) for _ in range(chance.randrange(12))]
    path.write_text("\n".join(map(",".join, lines)), encoding="utf-8")


ODD: tuple[tuple[Any, pa.DataType | None], ...] = (
    (None, None),  # of the column's own type
    *((text, pa.string()) for text in ("a", OWNED, "=HYPERLINK(1)", "long " * 2000)),
    *((number, pa.float64()) for number in (float("nan"), float("inf"), 1e300, -1e300, 5e-324, 0.5)),
    *((number, pa.int64()) for number in (-1, 2**63 - 1, -(2**63), 10**18)),
    *((2**64 - 1, pa.uint64()), (True, pa.bool_()), (b"\xff\xfe", pa.binary())),
    *((numbers, pa.list_(pa.int64())) for numbers in ([1], [-1], [1, None])),
    ([2**64 - 1] * 5000, pa.list_(pa.uint64())),
    ({"a": 1}, pa.struct([("a", pa.int64())])),
)


def column(path: Path, chance: random.Random) -> None:
    """One column of a table has another value in all rows or in one, or goes."""
    table = pq.read_table(path)
    name = chance.choice(table.schema.names)
    place, kind = table.schema.get_field_index(name), table.schema.field(name).type
    if chance.random() < 0.15:
        pq.write_table(table.drop_columns([name]), path)
        return
    odd, other = chance.choice(ODD)
    made = [odd] * len(table)
    if chance.random() < 0.5 and other in (None, kind):
        made = table.column(place).to_pylist()
        made[chance.randrange(len(made))] = odd
    pq.write_table(table.set_column(place, name, pa.array(made, other or kind)), path)


def rows(path: Path, chance: random.Random) -> None:
    """Fewer rows, the same ones in another order, or millions of one."""
    table = pq.read_table(path)
    count = len(table)
    orders: list[Any] = [[], [0], list(range(count - 1, -1, -1)), list(range(count)) * 2]
    orders += [np.zeros(MANY, np.int64), np.repeat(np.arange(count), -(-MANY // count))]
    pq.write_table(table.take(pa.array(chance.choice(orders), pa.int64())), path, compression="zstd")


def stamps(path: Path, chance: random.Random) -> None:
    """Numbers of one row, or of all, far from where they were: times of 10^9 s away among them."""
    table = pq.read_table(path)
    numbers = [n for n in table.schema.names if pa.types.is_integer(table.schema.field(n).type)]
    row, by = chance.randrange(len(table)), chance.choice((10**9, 10**18, -(10**18), 2**31))
    is_whole = chance.random() < 0.3
    for name in numbers if chance.random() < 0.5 else numbers[:1]:
        moved: list[Any] = table.column(name).to_pylist()
        for place in range(len(moved)) if is_whole else [row]:
            if moved[place] is not None:
                moved[place] = max(-(2**63), min(2**63 - 1, moved[place] + by))
        kind = table.schema.field(name).type
        kind = pa.int64() if kind in (pa.uint32(), pa.uint64()) else kind
        table = table.set_column(table.schema.get_field_index(name), name, pa.array(moved, kind))
    pq.write_table(table, path)


def texts(path: Path, chance: random.Random) -> None:
    """Long texts in many rows: encoded by a dictionary, 20 GB are a file of 60 kB."""
    table, count = pq.read_table(path), 20_000
    names = [n for n in table.schema.names if pa.types.is_string(table.schema.field(n).type)]
    if not names:
        return rows(path, chance)
    name, words = chance.choice(names), chance.choice((2000, 200_000))
    table = table.take(pa.array(np.sort(np.arange(count) % len(table)), pa.int64()))
    long = pa.DictionaryArray.from_arrays(np.zeros(count, np.int32), pa.array(["long " * words]))
    pq.write_table(table.set_column(table.schema.get_field_index(name), name, long), path, compression="zstd")
    return None


def described(path: Path, chance: random.Random) -> None:
    """The table's metadata are spoiled, or gone."""
    table = pq.read_table(path)
    known = json.loads((table.schema.metadata or {}).get(b"loadprint", b"{}"))
    text = spoiled(known, chance.choice(list(places(known))), chance.choice(VALUES))
    pq.write_table(table.replace_schema_metadata(chance.choice([{"loadprint": text}] * 9 + [None])), path)


ANY: dict[Damage, int] = {drop: 1, empty: 1, truncate: 1, flip: 1, octets: 1, directory: 1, device: 1}
# how often by the suffix of the file
DAMAGES: dict[str, dict[Damage, int]] = {
    ".json": {**ANY, pad: 1, twice: 1, value: 8},
    ".jsonl": {**ANY, pad: 1, twice: 1, value: 8},
    ".parquet": {**ANY, column: 6, rows: 3, stamps: 4, texts: 2, described: 4},
    ".yml": {**ANY, pad: 1, value: 6, syntax: 3, aliases: 1},
    ".csv": {**ANY, pad: 1, cell: 6, cells: 3},
}
