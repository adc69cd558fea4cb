"""Reads JSON with printable strings: rejects NaN, contradicting keys, large numbers and deep nesting."""

from __future__ import annotations

import json
import math
from typing import Any

from loadprint.printable import UNSAFE, printable
from loadprint.reading import bounds

LARGEST = 1e18  # reals: no count, size or rate comes near it; nanoseconds since 1970 are integers
SMALLEST = 1e-18  # smaller reals are not measurements, and their reciprocals exceed LARGEST
LARGEST_INTEGER = 1 << 63


def loads(text: str | bytes) -> Any:
    """Read strict JSON with printable strings. Raises ValueError with the reason in one line."""
    try:
        document = json.loads(
            text, parse_constant=_refuse, parse_int=_integer, parse_float=_real, object_pairs_hook=_object
        )
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return _clean(document, bounds.DEPTH)


def _clean(value: Any, depth: int) -> Any:
    """The value with printable strings of bounded length, keys among them. Raises ValueError."""
    if isinstance(value, str):
        return printable(value[: bounds.STRING])
    if not isinstance(value, dict | list):
        return value
    if depth == 0:
        raise ValueError("nested too deeply")
    # in place: a copy would double the memory of a large document
    for key, inner in list(value.items() if isinstance(value, dict) else enumerate(value)):
        if isinstance(inner, str | dict | list):
            value[key] = _clean(inner, depth - 1)
    if isinstance(value, dict) and any(len(key) > bounds.STRING or UNSAFE.search(key) for key in value):
        return {printable(key[: bounds.STRING]): inner for key, inner in value.items()}
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        for key, inner in pairs:
            # iperf3 prints one twice
            if inner != value[key]:
                raise ValueError(f"has the key `{key}` twice in one object, with different values")
    return value


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not a number")


def _integer(digits: str) -> int:
    # a kernel can print 2^64 - 1; `shape_error` rejects it where a number is expected
    if len(digits) > len(str(1 << 64)):
        raise ValueError(f"an integer of {len(digits)} digits is too large")
    return int(digits)


def _real(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value) or abs(value) > LARGEST:
        raise ValueError(f"{digits[:20]} is too large")
    if 0 < abs(value) < SMALLEST:
        raise ValueError(f"{digits[:20]} is too small")
    return value
