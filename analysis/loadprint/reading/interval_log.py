"""Reads HdrHistogram interval logs (load/latency.hlog) as counts by bucket, one histogram per tag.

The log is text, one line per interval. Each histogram is base64 of the compressed V2 encoding: zlib of a
header of 40 bytes and ZigZag LEB128 numbers; a negative number skips that many empty buckets
(https://github.com/HdrHistogram/HdrHistogram, AbstractHistogram.encodeIntoByteBuffer). An hour has
thousands of intervals, which are decoded in batches. Not the package hdrhistogram: it takes 8 times as long
and inflates a line to any size.
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
from loadprint.reading.bounds import COPY_AGAIN

NANOSECOND = 1e-9
HEAD = struct.Struct(">iiiiqqd")
COMPRESSED, PLAIN = 0x1C849304, 0x1C849303
WORD_SIZE = 0xF0  # bits of a cookie: the word size, which V2 ignores
MAX_NUMBER = 9  # bytes of a number
# zlib can inflate a line of 100 kB to 100 MB
MAX_INFLATED = HEAD.size + MAX_NUMBER * bounds.BUCKETS
BATCH = bounds.MIB  # bytes that are decoded together
MAX_TAGS = 1000  # transaction types


@dataclass(frozen=True)
class LogHistogram:
    """Counts of one tag: int64[n] by bucket, and the buckets' edges in seconds, float64[n + 1]."""

    counts: NDArray[np.int64]
    edges: NDArray[np.float64]

    @property
    def total(self) -> int:
        """Number of values."""
        return int(self.counts.sum())

    def plus(self, other: LogHistogram) -> LogHistogram:
        """Counts of both; the layouts of the buckets are equal."""
        longer, shorter = sorted((self, other), key=lambda counted: len(counted.counts), reverse=True)
        counts = longer.counts.copy()
        counts[: len(shorter.counts)] += shorter.counts
        return LogHistogram(counts, longer.edges)

    def quantiles(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """Upper end of the bucket of each quantile, as HdrHistogram reports it; NaN without values."""
        if self.total == 0:
            return np.full(len(shares), np.nan)
        ranks = np.maximum(1, np.ceil(shares * self.total))
        places = np.searchsorted(np.cumsum(self.counts), ranks)
        upper: NDArray[np.float64] = self.edges[np.minimum(places, len(self.counts) - 1) + 1]
        return upper


def read(path: Path) -> dict[str, LogHistogram]:
    """Sums of all intervals of a log by tag. Raises InputError with the line that is damaged."""
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
            raise InputError(f"{path} line {number}", "is not an interval histogram", COPY_AGAIN) from error
        inflated += len(payload)
        if inflated > bounds.LOG_NUMBERS or len(sums) > MAX_TAGS:
            raise InputError(
                f"{path} line {number}", "the log exceeds the size limits of a recording", COPY_AGAIN
            )
    try:
        return {tag: intervals.counted() for tag, intervals in sums.items()}
    except ValueError as error:
        raise InputError(path, "a histogram has too many buckets", COPY_AGAIN) from error


def _lines(path: Path) -> Iterator[str]:
    """Lines of the log within the size limits. Raises InputError."""
    try:
        if path.stat().st_size > bounds.LOG:
            raise InputError(path, f"is larger than {bounds.LOG // bounds.MIB} MiB", COPY_AGAIN)
        with path.open(encoding="utf-8") as file:
            while line := file.readline(bounds.LOG_LINE):
                yield line
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(path, "cannot be read", COPY_AGAIN) from error


class _Sum:
    """The intervals of one tag, decoded in batches: decoded they need fifty times as much memory."""

    def __init__(self, shape: tuple[int, int]) -> None:
        self.shape = shape
        self._counts = np.zeros(1, dtype=np.int64)
        self._waiting: list[bytes] = []
        self._size = 0

    def add(self, payload: bytes) -> None:
        """Add an interval. Raises ValueError as `counted` does."""
        self._waiting.append(payload)
        self._size += len(payload)
        if self._size > BATCH:
            self._decode()

    def counted(self) -> LogHistogram:
        """Sum of all intervals. Raises ValueError for too many buckets or counts."""
        self._decode()
        digits, lowest = self.shape
        edges = _edges(len(self._counts), digits, lowest)
        if not edges[-1] <= 2.0**64:
            raise ValueError
        return LogHistogram(self._counts, edges * NANOSECOND)

    def _decode(self) -> None:
        values, first_of = _numbers(self._waiting)
        self._waiting, self._size = [], 0
        steps = np.where(values < 0, -values, 1)
        filled = values > 0
        # doubles, because integers can overflow
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
    """The encoded numbers of one histogram, and its shape: significant digits, lowest value."""
    raw = binascii.a2b_base64(text, strict_mode=True)
    cookie, length = struct.unpack_from(">ii", raw)
    if cookie & ~WORD_SIZE != COMPRESSED & ~WORD_SIZE:
        raise ValueError
    inflater = zlib.decompressobj()
    plain = inflater.decompress(raw[8 : 8 + length], MAX_INFLATED)
    if not inflater.eof:
        raise ValueError
    inner, size, _, digits, lowest, _, _ = HEAD.unpack_from(plain)
    if inner & ~WORD_SIZE != PLAIN & ~WORD_SIZE or not 0 <= digits <= 5 or lowest < 1:
        raise ValueError
    return plain[HEAD.size : HEAD.size + size], (digits, lowest)


def _numbers(payloads: list[bytes]) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """All numbers, and the index of each histogram's first one. Raises ValueError if one is too long."""
    payloads = [payload for payload in payloads if payload]
    data = np.frombuffer(b"".join(payloads), dtype=np.uint8)
    ends = np.flatnonzero(data < 0x80)
    begins = np.concatenate([[0], ends[:-1] + 1]) if len(ends) else np.empty(0, dtype=np.intp)
    if not len(ends):
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.intp)
    if int((ends - begins).max()) >= MAX_NUMBER:
        raise ValueError
    raw = (data[begins] & 0x7F).astype(np.uint64)
    # nearly all numbers have one byte; a count of nine bytes exceeds 2^56
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


def _edges(buckets: int, digits: int, lowest: int) -> NDArray[np.float64]:
    """Lower edge of each bucket and the upper one of the last, in the log's unit.

    The first 2^(h + 1) buckets are one unit wide; then the width doubles every 2^h buckets.
    """
    half = math.ceil(math.log2(2 * 10**digits)) - 1
    unit = lowest.bit_length() - 1
    index = np.arange(buckets + 1)
    group = np.maximum((index >> half) - 1, 0)
    below = np.where(index < 1 << (half + 1), index, (index & ((1 << half) - 1)) + (1 << half))
    edges: NDArray[np.float64] = below.astype(np.float64) * np.exp2(group + unit)
    return edges
