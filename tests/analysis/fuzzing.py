"""Damages recordings by a seeded random choice, and runs every command on them with a memory limit.

`python fuzzing.py FIRST STEP COUNT` runs the cases FIRST, FIRST + STEP, … below COUNT. It prints a line for
each failure: a traceback, more than one line of error, control characters, or over 1.25 GB of memory. A
file is damaged as a bug, a crash or an attacker could.
"""

from __future__ import annotations

import copy
import json
import os
import random
import resource
import shutil
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from damage import RICH, ask, printable
from every_table import every_table
from recordings import Host, make_execution, make_matrix, make_run, write_latencies, write_manifest

MANY = 3_000_000  # rows: as many Python objects for each take over 1 GB
ESCAPES = r'"\u001b]0;owned\u0007\u001b[2J\u202e\u2066\u0085 end"'
# texts in place of a value of JSON
VALUES = (
    *("null", "true", "-1", "0", "9223372036854775808", "1" + "0" * 19, "1" + "0" * 400, "5e-324", "1e-300"),
    *("1e18", "1e308", "NaN", "Infinity", "-Infinity", '"text"', '""', "[]", "{}", "[null]", '{"x": null}'),
    *('["a", 1]', "[[[[1]]]]", ESCAPES, r'"\ud800"', '"=HYPERLINK(1)"', '"<img src=x onerror=alert(1)>"'),
    *('"../../etc/passwd"', '"1e999"', '"' + "9" * 5000 + '"', '{"\\ud800\\u001b": {"\\u202e": 1}}'),
    *('"' + "long " * 400_000 + '"', "[" * 100_000, "[" * 60 + "]" * 60, "[" + "{}," * 500_000 + "{}]"),
)
Mutation = Callable[[Path, random.Random], None]


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


def drop(path: Path, chance: random.Random) -> None:
    path.unlink()


def empty(path: Path, chance: random.Random) -> None:
    path.write_bytes(b"")


def truncate(path: Path, chance: random.Random) -> None:
    path.write_bytes(path.read_bytes()[: chance.randrange(path.stat().st_size)])


def flip(path: Path, chance: random.Random) -> None:
    octets = bytearray(path.read_bytes())
    for _ in range(chance.choice((1, 1, 8))):
        octets[chance.randrange(len(octets))] ^= 1 << chance.randrange(8)
    path.write_bytes(octets)


def pad(path: Path, chance: random.Random) -> None:
    """Add many lines of nothing."""
    with path.open("ab") as file:
        file.write(b"\n" * 40_000_000)


def directory(path: Path, chance: random.Random) -> None:
    path.unlink()
    path.mkdir()


def device(path: Path, chance: random.Random) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def value(path: Path, chance: random.Random) -> None:
    """One value of a JSON file, or of a line of one of lines, becomes another, or goes."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines() if path.suffix == ".jsonl" else [text]
    place = chance.randrange(len(lines))
    document = json.loads(lines[place])
    at = chance.choice(list(places(document)))
    lines[place] = spoiled(document, at, chance.choice([*VALUES, None] if at else VALUES))
    path.write_text("\n".join(lines), encoding="utf-8")


def values(path: Path, chance: random.Random) -> None:
    for _ in range(3):
        try:
            value(path, chance)
        except (ValueError, RecursionError):  # not JSON after an earlier mutation
            return


def twice(path: Path, chance: random.Random) -> None:
    """A key that is there twice."""
    text = path.read_text(encoding="utf-8")
    document = json.loads(text.splitlines()[0] if path.suffix == ".jsonl" else text)
    key = chance.choice(list(document))
    again = f"{json.dumps(key)}: {chance.choice(VALUES)}, "
    path.write_text(text.replace("{", "{" + again, 1), encoding="utf-8")


def column(path: Path, chance: random.Random) -> None:
    """One column of a table holds something else, in all rows or in one."""
    table = pq.read_table(path)
    name = chance.choice(table.schema.names)
    place, kind = table.schema.get_field_index(name), table.schema.field(name).type
    if chance.random() < 0.15:
        pq.write_table(table.drop_columns([name]), path)
        return
    new: Any = chance.choice(
        [
            (None, kind),
            ("a", pa.string()),
            ("\x1b]0;owned\x07\x1b[2J\u202e=1", pa.string()),
            ("=HYPERLINK(1)", pa.string()),
            ("long " * 2000, pa.string()),
            (b"\xff\xfe", pa.binary()),
            (float("nan"), pa.float64()),
            (float("inf"), pa.float64()),
            (1e300, pa.float64()),
            (-1e300, pa.float64()),
            (5e-324, pa.float64()),
            (-1, pa.int64()),
            (2**63 - 1, pa.int64()),
            (-(2**63), pa.int64()),
            (2**64 - 1, pa.uint64()),
            (10**18, pa.int64()),
            (True, pa.bool_()),
            ([1], pa.list_(pa.int64())),
            ([2**64 - 1] * 5000, pa.list_(pa.uint64())),
            ({"a": 1}, pa.struct([("a", pa.int64())])),
        ]
    )
    made = [new[0]] * len(table)
    if chance.random() < 0.5 and new[1] == kind:
        made = table.column(place).to_pylist()
        made[chance.randrange(len(made))] = new[0]
    pq.write_table(table.set_column(place, name, pa.array(made, new[1])), path)


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
    whole = chance.random() < 0.3
    for name in numbers if chance.random() < 0.5 else numbers[:1]:
        result: list[Any] = table.column(name).to_pylist()
        for place in range(len(result)) if whole else [row]:
            result[place] = (
                None if result[place] is None else max(-(2**63), min(2**63 - 1, result[place] + by))
            )
        kind = table.schema.field(name).type
        kind = pa.int64() if kind in (pa.uint32(), pa.uint64()) else kind
        table = table.set_column(table.schema.get_field_index(name), name, pa.array(result, kind))
    pq.write_table(table, path)


def texts(path: Path, chance: random.Random) -> None:
    """Long texts in many rows; encoded by a dictionary the file is small."""
    table = pq.read_table(path)
    names = [n for n in table.schema.names if pa.types.is_string(table.schema.field(n).type)]
    if not names:
        return rows(path, chance)
    name = chance.choice(names)
    count = 20_000
    table = table.take(pa.array(np.arange(count) % len(table), pa.int64()))
    long = pa.DictionaryArray.from_arrays(np.zeros(count, np.int32), pa.array(["long " * 200_000]))
    pq.write_table(table.set_column(table.schema.get_field_index(name), name, long), path, compression="zstd")
    return None


def described(path: Path, chance: random.Random) -> None:
    """The table's metadata are spoiled, or gone."""
    table = pq.read_table(path)
    known = json.loads((table.schema.metadata or {}).get(b"loadprint", b"{}"))
    at = chance.choice(list(places(known)))
    text = spoiled(known, at, chance.choice(VALUES))
    given = chance.choice([{"loadprint": text}] * 9 + [None])
    pq.write_table(table.replace_schema_metadata(given), path)


ANY: tuple[Mutation, ...] = (drop, empty, truncate, flip, flip, directory, device)
BY_SUFFIX: dict[str, tuple[Mutation, ...]] = {
    ".json": (*ANY, pad, twice, *(value,) * 12, *(values,) * 4),
    ".jsonl": (*ANY, pad, twice, *(value,) * 8, *(values,) * 4),
    ".parquet": (*ANY, *(column,) * 8, *(rows,) * 3, *(stamps,) * 4, *(texts,) * 2, *(described,) * 3),
}


KEPT = Path(__file__).parents[1] / "recordings" / "v1"
MOST_KIB = 1_250_000_000 // 1024  # 3 million rows of the widest table take 1.16 GB as arrays
# of the address space: above it an allocation fails. It is not the measured memory, because it includes
# reserved and unused memory (arenas, stacks, arrays that grow).
LIMIT = 6_000_000_000
FORMATS = ("text", "markdown", "csv", "json")
Words = list[str]


def make_bases(place: Path) -> dict[str, Path]:
    """Recordings to spoil: a kept run, a kept experiment, repeats, a matrix, a run with all tables."""
    bases = {name: Path(shutil.copytree(KEPT / name, place / name)) for name in ("oltp", "hidden-index")}
    steady = Host(seconds=12, result=RICH.result, grown=RICH.grown)
    bases["pair"] = make_execution(place / "pair", {"a": [steady] * 3, "b": [steady] * 3}, "a")
    every = make_run(place / "every", Host(seconds=4, more=every_table))
    bases["every"] = write_latencies(every, "event", [range(5_000_000, 6_000_000, 5000)] * 4)
    rates = {("x", n): [100 * n] for n in (1, 2, 4, 8, 16, 32)}
    bases["matrix"] = make_matrix(place / "matrix", rates, "kind", "x")
    return bases


def commands(base: str, spoiled: Path, good: Path, out: Path) -> list[list[Words]]:
    """What reads a base, with every format."""
    bad, rest = str(spoiled), str(good)
    if base in ("oltp", "every"):
        insert = str(KEPT / "insert")
        return [
            *([["compare", bad, insert, "--all", "--format", form]] for form in (*FORMATS, "html")),
            [["report", insert, bad, "-o", str(out / "page.html")]],
            [["report", bad, "-o", str(out / "page.html")]],
            [["inspect", bad]],
            [["inspect", bad, "--format", "json"]],
            [["check", bad]],
            [["check", bad, "--format", "json"]],
            [["export", bad, "--to", str(out / "fleet")], ["fleet", str(out / "fleet"), "--everything"]],
        ]
    if base == "hidden-index":
        return [
            *([["ab", "show", bad, "--format", form]] for form in FORMATS),
            [["inspect", bad]],
            [["report", bad, "-o", str(out / "page.html")]],
        ]
    if base == "matrix":
        return [
            *([["sweep", bad, "--format", form]] for form in FORMATS),
            *([["usl", bad, "--format", form]] for form in FORMATS),
            [["report", bad, "-o", str(out / "page.html")]],
        ]
    judged = [["qualify", rest, bad, "--format", form, "--junit", str(out / "junit.xml")] for form in FORMATS]
    return [
        *([["compare", bad, "--all", "--format", form]] for form in (*FORMATS, "html")),
        [["compare", f"{bad}:a", f"{rest}:b", "--noise", bad]],
        [["report", bad, "-o", str(out / "page.html")]],
        *([each] for each in judged),
        [["check", bad]],
        [["export", bad, "--to", str(out / "fleet")], ["fleet", str(out / "fleet"), "--format", "csv"]],
    ]


def targets(base: Path) -> list[Path]:
    """Files to spoil; of an execution its plan and those of one repeat of the last side."""
    runs = sorted(actual.parent for actual in base.rglob("run.json"))
    inside = [base / "execution.json"] if len(runs) > 1 else []
    files = [*inside, *sorted(file for file in runs[-1].rglob("*") if file.is_file())]
    return [file for file in files if file.suffix in BY_SUFFIX]


def cases(numbers: Iterable[int], bases: dict[str, Path]) -> Iterator[tuple[int, str, Path, Mutation]]:
    """The case of each number, the same in every run: a base, a file and a kind of mutation."""
    everything = {name: targets(path) for name, path in bases.items()}
    names = ("oltp", "pair", "hidden-index", "every", "oltp", "pair", "matrix", "every")
    for number in numbers:
        chance = random.Random(number)
        base = names[number % len(names)]
        files = everything[base]
        # documents and the generator's files are few and read by all, tables many
        weighed = [file for file in files for _ in range(1 if file.suffix == ".parquet" else 3)]
        file = chance.choice(weighed)
        yield number, base, file, chance.choice(BY_SUFFIX[file.suffix])


def wrong(words: Words, out: Path) -> str:
    """What a command did that it must not; empty where it answered, or refused in one line with a fix."""
    try:
        answer = ask(*words)
        printable("".join(f.read_text(encoding="utf-8") for f in out.glob("*.*") if f.is_file()))
        assert answer.status != 2 or ("; " in answer.line and "out of memory" not in answer.line), answer
    except Exception:  # any exception would be a traceback
        return " | ".join(traceback.format_exc().splitlines()[-5:])
    return ""


def asked(words: Sequence[list[Words]], out: Path) -> str:
    """Run some commands; what went wrong."""
    out.mkdir(exist_ok=True)
    for each in (each for chain in words for each in chain):
        if actual := wrong(each, out):
            return f"{' '.join(each[:2])} {each[-1]}: {actual}"
        used = peak_kib()
        if used > MOST_KIB:
            return f"{' '.join(each[:2])}: {used} KiB"
    return ""


def peak_kib() -> int:
    """The most memory that this process had, in KiB (VmHWM, proc_pid_status(5)).

    ru_maxrss of getrusage(2) starts at what the parent had when it started the process.
    """
    text = Path("/proc/self/status").read_text(encoding="ascii")
    return int(text.partition("VmHWM:")[2].split()[0])


def spoil(spoiled: Path, mutation: Mutation, chance: random.Random) -> str:
    """Spoil a file, most often with a manifest that agrees; a device has no checksum."""
    mutation(spoiled, chance)
    holder = spoiled.parent if (spoiled.parent / "run.json").is_file() else spoiled.parent.parent
    agrees = spoiled.name not in ("manifest.json", "execution.json") and chance.random() < 0.8
    if agrees and not spoiled.is_symlink():
        write_manifest(holder)
    return ""


def apart(name: str, work: Callable[[], str]) -> bool:
    """Whether a task succeeds in a separate process, so its memory is measured alone."""
    child = os.fork()
    if child == 0:
        try:
            said = work()
        except BaseException:
            said = traceback.format_exc()
        if said:
            print(f"{name}: {said}", flush=True)
        os._exit(bool(said))
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        print(f"{name}: signal {os.WTERMSIG(status)}", flush=True)
    return status == 0


def one(bases: dict[str, Path], number: int, base: str, file: Path, mutation: Mutation) -> bool:
    """Spoil one file of a copy and run two commands on it."""
    chance = random.Random(number)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        copy = Path(shutil.copytree(bases[base], place / base))
        name = f"{number} {mutation.__name__} {base}/{file.relative_to(bases[base])}"
        spoiled = copy / file.relative_to(bases[base])
        chosen = chance.sample(commands(base, copy, bases[base], place / "out"), 2)
        return apart(name, lambda: spoil(spoiled, mutation, chance)) and apart(
            name, lambda: asked(chosen, place / "out")
        )


def all_of(first: int, step: int, count: int) -> int:
    """Run a share of the cases, each in a separate process to measure its memory."""
    resource.setrlimit(resource.RLIMIT_DATA, (LIMIT, LIMIT))
    warnings.simplefilter("always", RuntimeWarning)
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        bases = make_bases(Path(folder))
        warm = [["compare", str(bases["pair"])], ["report", str(bases["pair"]), "-o", f"{folder}/warm.html"]]
        if said := asked([warm], Path(folder) / "none"):  # imports everything once, for all
            raise AssertionError(said)
        for case in cases(range(first, count, step), bases):
            failed += not one(bases, *case)
    return failed


if __name__ == "__main__":
    given: Sequence[int] = [int(word) for word in sys.argv[1:]]
    sys.exit(1 if all_of(*given) else 0)
