"""HdrHistogram interval logs (load/latency.hlog) as counts by bucket, one histogram per tag.

The log is text, a line per interval; each histogram is base64 of a compressed V2 encoding: zlib around a
head of 40 bytes and ZigZag LEB128 numbers, of which negative ones skip that many empty buckets
(https://github.com/HdrHistogram/HdrHistogram, AbstractHistogram.encodeIntoByteBuffer). An hour has
thousands of them, so that many are decoded in one go.
"""

from __future__ import annotations

import binascii
import math
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from loadprint.errors import InputError
from loadprint.printable import printable
from loadprint.reading import bounds
from loadprint.reading.recording import COPY_AGAIN

NANOSECOND = 1e-9
HEAD = struct.Struct(">iiiiqqd")
COMPRESSED, PLAIN = 0x1C849304, 0x1C849303
WORD_SIZE = 0xF0  # of a cookie: the size of a word, which V2 ignores
LONGEST = 9  # bytes of a number
# zlib would inflate a line of 100 kB to 100 MB
LARGEST = HEAD.size + LONGEST * bounds.BUCKETS
AT_ONCE = bounds.MIB  # bytes that are decoded together
TAGS = 1000  # transaction types


@dataclass(frozen=True)
class LogHistogram:
    """Counts of one tag: int64[n] by bucket, and the buckets' edges in seconds, float64[n + 1]."""

    counts: NDArray[np.int64]
    edges: NDArray[np.float64]

    @property
    def total(self) -> int:
        """How many values were counted."""
        return int(self.counts.sum())

    def quantiles(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """Upper end of the bucket that holds each share's value, as HdrHistogram tells it; NaN of nothing."""
        if self.total == 0:
            return np.full(len(shares), np.nan)
        ranks = np.maximum(1, np.ceil(shares * self.total))
        places = np.searchsorted(np.cumsum(self.counts), ranks)
        found: NDArray[np.float64] = self.edges[np.minimum(places, len(self.counts) - 1) + 1]
        return found


def read(path: Path) -> dict[str, LogHistogram]:
    """All intervals of a log together, by tag. Raises InputError naming the line that does not hold."""
    sums: dict[str, _Sum] = {}
    inflated = 0
    for number, line in enumerate(_lines(path), start=1):
        if not line.strip() or line.startswith(("#", '"')):
            continue
        fields = line.rstrip("\r\n").split(",")
        tag = printable(fields.pop(0).removeprefix("Tag=")) if fields[0].startswith("Tag=") else ""
        try:
            payload, shape = _unpacked(fields[3])
            if sums.setdefault(tag, _Sum(shape)).shape != shape:
                raise ValueError
            sums[tag].add(payload)
        except (ValueError, IndexError, struct.error, zlib.error, binascii.Error) as error:
            raise InputError(f"{path} line {number}", "is no interval of a histogram", COPY_AGAIN) from error
        inflated += len(payload)
        if inflated > bounds.LOG_NUMBERS or len(sums) > TAGS:
            raise InputError(f"{path} line {number}", "the log holds more than a load counts", COPY_AGAIN)
    try:
        return {tag: found.counted() for tag, found in sums.items()}
    except ValueError as error:
        raise InputError(path, "a histogram in it has more buckets than there can be", COPY_AGAIN) from error


def _lines(path: Path) -> Iterator[str]:
    """Lines of the log, each and all of bounded size. Raises InputError."""
    try:
        if path.stat().st_size > bounds.LOG:
            raise InputError(path, f"is larger than {bounds.LOG // bounds.MIB} MiB", COPY_AGAIN)
        with path.open(encoding="utf-8") as file:
            while line := file.readline(bounds.LOG_LINE):
                yield line
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(path, "cannot be read", COPY_AGAIN) from error


class _Sum:
    """The intervals of one tag, decoded some at a time: decoded they take fifty times as much memory."""

    def __init__(self, shape: tuple[int, int]) -> None:
        self.shape = shape
        self._counts = np.zeros(1, dtype=np.int64)
        self._waiting: list[bytes] = []
        self._size = 0

    def add(self, payload: bytes) -> None:
        """Add an interval. Raises ValueError as `counted` does."""
        self._waiting.append(payload)
        self._size += len(payload)
        if self._size > AT_ONCE:
            self._decode()

    def counted(self) -> LogHistogram:
        """All intervals. Raises ValueError where there are more buckets or counts than there can be."""
        self._decode()
        digits, least = self.shape
        edges = _edges(len(self._counts), digits, least)
        if not edges[-1] <= 2.0**64:
            raise ValueError
        return LogHistogram(self._counts, edges * NANOSECOND)

    def _decode(self) -> None:
        values, first_of = _numbers(self._waiting)
        self._waiting, self._size = [], 0
        steps = np.where(values < 0, -values, 1)
        filled = values > 0
        # as doubles, in which nothing overflows
        if steps.sum(dtype=float) > 2.0**53 or values[filled].sum(dtype=float) + self._counts.sum() > 2.0**53:
            raise ValueError
        ahead = np.cumsum(steps) - steps
        places = ahead
        if len(values):
            places = ahead - np.repeat(ahead[first_of], np.diff([*first_of, len(values)]))
        if not filled.any():
            return
        places = places[filled]
        if int(places.max()) > bounds.BUCKETS:
            raise ValueError
        longer = np.zeros(max(len(self._counts), int(places.max()) + 1), dtype=np.int64)
        longer[: len(self._counts)] = self._counts
        np.add.at(longer, places, values[filled])
        self._counts = longer


def _unpacked(text: str) -> tuple[bytes, tuple[int, int]]:
    """Numbers of one histogram still encoded, and its shape: significant digits, least value."""
    raw = binascii.a2b_base64(text, strict_mode=True)
    cookie, length = struct.unpack_from(">ii", raw)
    if cookie & ~WORD_SIZE != COMPRESSED & ~WORD_SIZE:
        raise ValueError
    inflater = zlib.decompressobj()
    plain = inflater.decompress(raw[8 : 8 + length], LARGEST)
    if not inflater.eof:
        raise ValueError
    inner, size, _, digits, least, _, _ = HEAD.unpack_from(plain)
    if inner & ~WORD_SIZE != PLAIN & ~WORD_SIZE or not 0 <= digits <= 5 or least < 1:
        raise ValueError
    return plain[HEAD.size : HEAD.size + size], (digits, least)


def _numbers(payloads: list[bytes]) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """All numbers, and where each histogram's first one is. Raises ValueError where one is too long."""
    payloads = [payload for payload in payloads if payload]
    data = np.frombuffer(b"".join(payloads), dtype=np.uint8)
    ends = np.flatnonzero(data < 0x80)
    begins = np.concatenate([[0], ends[:-1] + 1]) if len(ends) else np.empty(0, dtype=np.intp)
    if not len(ends):
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.intp)
    if int((ends - begins).max()) >= LONGEST:
        raise ValueError
    raw = (data[begins] & 0x7F).astype(np.uint64)
    # nearly all numbers are one byte; a count of nine bytes would be more than 2^56
    longer, at = np.flatnonzero(ends > begins), 1
    while len(longer):
        part = (data[begins[longer] + at] & 0x7F).astype(np.uint64)
        raw[longer] += part << np.uint64(7 * min(at, 8))
        at += 1
        longer = longer[ends[longer] - begins[longer] >= at]
    plain = (raw >> np.uint64(1)).astype(np.int64)
    values = np.where(raw & np.uint64(1), -plain - 1, plain)
    offsets = np.cumsum([0, *map(len, payloads[:-1])])
    return values, np.searchsorted(begins, offsets)


def _edges(buckets: int, digits: int, least: int) -> NDArray[np.float64]:
    """Lower edge of each bucket and the upper one of the last, in the log's unit.

    The first 2^(h + 1) buckets are one unit wide; after that every 2^h the width doubles.
    """
    half = math.ceil(math.log2(2 * 10**digits)) - 1
    unit = least.bit_length() - 1
    index = np.arange(buckets + 1)
    group = np.maximum((index >> half) - 1, 0)
    below = np.where(index < 1 << (half + 1), index, (index & ((1 << half) - 1)) + (1 << half))
    edges: NDArray[np.float64] = below.astype(np.float64) * np.exp2(group + unit)
    return edges
