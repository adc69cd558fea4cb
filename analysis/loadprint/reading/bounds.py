"""Limits the size of every part of a recording (docs/recording-format.md, "Bounds"), and reads text files.

A file that matches its checksum can still hold 10^9 rows. The bounds exceed the largest recordings in use: an
hour at 10 Hz, half a day at 1 Hz with 256 CPUs and 1,200 interrupts.
"""

from __future__ import annotations

import csv
import stat
from collections.abc import Iterable
from pathlib import Path

from loadprint.errors import InputError, as_input_error
from loadprint.printable import printable

COPY_AGAIN = "copy the run directory again from the machine that made it"
MIB = 1 << 20
DOCUMENT = 8 * MIB  # bytes of a JSON file: 8192 CPUs, 10,000 connections or 5,000 planned runs need a fifth
OBJECTS = 65_536  # of a list or an object in one: 10,000 connections, 8192 CPUs, the metrics of an endpoint
STACKS = 32 * MIB  # bytes of stacks.json: 300,000 nodes of 20,000 functions need half
STACK_DEPTH = 512  # frames of a stack: the recorder stores fewer than 300
SYMBOL = 1000  # characters of a function's name, or a module's path; the rest is cut off
STACK_FRAMES = 16_000_000  # of all stacks that `stacks` writes: 131,073 stacks of 40 frames have 5 million
STACK_TEXT = 128 * MIB  # characters of their names in one output
LINES = 32 * MIB  # bytes of a file of JSON lines
IMPORTED = 256 * MIB  # bytes of an imported file: a day of `sadf -j`, 64 CPUs, every minute, has 90 MiB
TABLE = 8 * MIB  # bytes of a CSV file, or of the output of a measuring tool
TABLE_LINES = 10_000  # of a CSV file
TABLE_CELLS = 100_000  # of a CSV file
SIDES = 32  # columns of a printed table
FITS = 1000  # of `usl`: columns × different N, because each N is left out in turn
SERIES = 1_000_000  # of Prometheus; each sample of a snapshot is a series
SAMPLES = 16_000_000  # of Prometheus: a day of 1000 series every 15 s has 6 million
IMPORTED_TICKS = 4_000_000  # rows of ticks.parquet: points in time × tables
MAX_CPUS = 1 << 16  # in a CPU list: the kernel's own limit is 8192
HEAD = 65_536  # bytes that are searched for a NUL, the sign of a binary file
DEPTH = 64  # of nested JSON
STRING = 16_384  # characters of a string in JSON; the rest is cut off
TEXT = 4096  # characters of a text in a table; the rest is cut off
ROWS = 200_000_000  # of a table: a day at 1 Hz with 256 CPUs has 22 million
LATENCIES = 1_000_000_000  # rows of latency.parquet: a day of five types, 2000 buckets each, has 864 million
TICKS = 8_000_000  # rows of ticks.parquet: an hour at 100 Hz with 20 probes has 7 million
ROWS_OF = {"latency.parquet": LATENCIES, "ticks.parquet": TICKS}
CELLS = 64 * MIB  # values of a query, 8 bytes each: 16 counters of 10 disks for an hour at 100 Hz
BUCKETS_IN_ROW = 1024  # of a histogram in a table: the server's histograms have 450
POINTS = 1_000_000  # of a chart's time axis: a day at 10 Hz
BUCKETS = 1 << 20  # of the sums of latency.parquet, all types together: one can have 33,000


def read_text(path: Path, limit: int, fix: str, *, errors: str = "strict") -> str:
    """Read a UTF-8 file of at most `limit` bytes. Raises InputError, also for a directory or a device."""
    return decode(path, read_bytes(path, limit, fix), fix, errors=errors)


def require_regular(path: Path, *, or_folder: bool = False) -> None:
    """Raise InputError for a FIFO, a socket or a device; a missing file is reported by its reader."""
    try:
        kind = path.stat().st_mode
    except OSError:
        return
    if not stat.S_ISREG(kind) and not (or_folder and stat.S_ISDIR(kind)):
        raise InputError(path, "is not a regular file", COPY_AGAIN)


def read_bytes(path: Path, limit: int, fix: str) -> bytes:
    """Read a file of at most `limit` bytes. Raises InputError."""
    with as_input_error(path, fix), path.open("rb") as file:
        head = file.read(HEAD)
        if b"\0" in head:  # /dev/zero has no end
            raise InputError(path, f"not text: a NUL at byte {head.index(0)}", fix)
        content = head + file.read(max(0, limit + 1 - len(head)))
    if len(content) > limit:
        raise InputError(path, f"is larger than {limit // MIB} MiB", fix)
    return content


def require_table(path: Path, lines: int, columns: int) -> None:
    """Raise InputError if a CSV file has more lines or cells than a command computes in seconds."""
    for what, count, limit in (("lines", lines, TABLE_LINES), ("cells", lines * columns, TABLE_CELLS)):
        if count > limit:
            fix = "give a file of results, not of samples"
            raise InputError(path, f"has {count:,} {what}, more than the limit of {limit:,}", fix)


def read_cells(path: Path, lines: Iterable[str], delimiter: str = ",") -> list[list[str]]:
    """Parse the lines of a CSV file to printable cells. Raises InputError."""
    try:
        return [list(map(printable, line)) for line in csv.reader(lines, delimiter=delimiter, strict=True)]
    except csv.Error as error:
        raise InputError(path, f"is not a CSV file ({error})", "write it as RFC 4180 describes") from error


def decode(path: Path, content: bytes, fix: str, *, errors: str = "strict") -> str:
    """Decode UTF-8 without its byte order mark. Raises InputError."""
    try:
        return content.decode("utf-8-sig", errors)
    except UnicodeDecodeError as error:
        raise InputError(path, f"not UTF-8 text at byte {error.start}", fix) from error
