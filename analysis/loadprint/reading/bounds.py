"""How large the parts of a recording may be (docs/recording-format.md, "Bounds"), and files read within them.

A manifest vouches for bytes, not for sense: a file that matches its checksum can still hold 10^9 rows. The
bounds leave room above the largest recordings that are made: an hour at 100 Hz, a day at 1 Hz of 256 CPUs.
"""

from __future__ import annotations

from pathlib import Path

from loadprint.errors import InputError

MIB = 1 << 20
DOCUMENT = 8 * MIB  # bytes of a JSON file: 8192 CPUs, 10,000 connections or 5,000 planned runs take a fifth
LINES = 32 * MIB  # bytes of a file of JSON lines
LOG = 512 * MIB  # bytes of latency.hlog: a day at 1 Hz of ten types is 400 MiB
LOG_LINE = 16 * MIB  # bytes of one of its lines
LOG_NUMBERS = 256 * MIB  # bytes of all its histograms, decompressed: a day as above has 100 MiB
IMPORTED = 256 * MIB  # bytes of a file to import: a day of `sadf -j` of 64 CPUs by the minute has 90 MiB
TABLE = 8 * MIB  # bytes of a CSV file, or of what a measuring tool printed
SERIES = 1_000_000  # of Prometheus; a sample of a snapshot is one
SAMPLES = 16_000_000  # of Prometheus: a day of 1000 series every 15 s has 6 million
IMPORTED_TICKS = 4_000_000  # rows of ticks.parquet: points in time × tables
HEAD = 65_536  # bytes in which a file that is no text shows it
DEPTH = 64  # of nested JSON
STRING = 16_384  # characters of a string in JSON; what is longer is cut
TEXT = 4096  # characters of a text in a table; what is longer is cut
ROWS = 200_000_000  # of a table, which queries aggregate: a day at 1 Hz of 256 CPUs has 22 million
TICKS = 8_000_000  # rows of ticks.parquet, which is read whole: an hour at 100 Hz of 20 probes has 7 million
CELLS = 64 * MIB  # values that a query returns, 8 bytes each: 16 counters of 10 disks for an hour at 100 Hz
EXPORTED = 256 * MIB  # characters of a column of text that `export` copies
BUCKETS_IN_ROW = 1024  # of a histogram in a table: the server's have 450
POINTS = 1_000_000  # of a chart's time axis: a day at 10 Hz
BUCKETS = 1 << 20  # of a histogram in latency.hlog


def read_text(path: Path, most: int, fix: str, *, errors: str = "strict") -> str:
    """Read a UTF-8 file of at most `most` bytes. Raises InputError, also for a directory or a device."""
    return decode(path, read_bytes(path, most, fix), fix, errors=errors)


def read_bytes(path: Path, most: int, fix: str) -> bytes:
    """Read a file of at most `most` bytes. Raises InputError."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD)
            if b"\0" in head:  # /dev/zero has no end
                raise InputError(path, f"not text: a NUL at byte {head.index(0)}", fix)
            content = head + file.read(max(0, most + 1 - len(head)))
    except OSError as error:
        raise InputError(path, error.strerror or "cannot be read", fix) from error
    if len(content) > most:
        raise InputError(path, f"is larger than {most // MIB} MiB", fix)
    return content


def decode(path: Path, content: bytes, fix: str, *, errors: str = "strict") -> str:
    """Decode UTF-8; a byte order mark is dropped. Raises InputError."""
    try:
        return content.decode("utf-8-sig", errors)
    except UnicodeDecodeError as error:
        raise InputError(path, f"not UTF-8 text at byte {error.start}", fix) from error
