"""Reads a recording's JSON: rejects NaN, repeated keys, numbers out of range, deep nesting and wrong types.

Strings are made printable. A shape lists the keys that readers use; other keys may hold any value. Every
value may be null, except an object in a list. Not pydantic: its models would need a class for each object.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from loadprint.printable import UNSAFE, printable
from loadprint.reading import bounds

FORMAT_VERSION = 1  # of recordings
LARGEST = 1e18  # reals: no count, size or rate comes near it; nanoseconds since 1970 are integers
SMALLEST = 1e-18  # smaller reals are not measurements, and their reciprocals exceed LARGEST
LARGEST_INTEGER = 1 << 63


class Kind(Enum):
    """Type of a single value; the enum's value is its name in messages."""

    TEXT = "text"
    NUMBER = "a number"
    NATURAL = "a non-negative number"
    SCALAR = "text, a number or a boolean"


@dataclass(frozen=True)
class Each:
    """An object whose values all have one shape."""

    shape: Shape


@dataclass(frozen=True)
class ListOf:
    """A list whose elements all have one shape."""

    shape: Shape


# a mapping is an object with these keys, among others
Shape = Kind | Each | ListOf | Mapping[str, "Shape"]


def loads(text: str | bytes) -> Any:
    """Read strict JSON with printable strings. Raises ValueError with the reason in one line."""
    try:
        document = json.loads(
            text, parse_constant=_refuse, parse_int=_integer, parse_float=_real, object_pairs_hook=_object
        )
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return _clean(document, bounds.DEPTH)


def shape_error(value: Any, shape: Shape, name: str = "") -> str:
    """First deviation from a shape, as "`a.b` is a list, not a number"; empty where there is none."""
    if value is None:
        return ""
    if isinstance(shape, Kind):
        return "" if _is(value, shape) else f"`{name}` is {_type_name(value)}, not {shape.value}"
    if isinstance(shape, ListOf):
        if not isinstance(value, list):
            return f"`{name}` is {_type_name(value)}, not a list"
        if isinstance(shape.shape, Mapping) and None in value:
            return f"`{name}[{value.index(None)}]` is null, not an object"
        inner = ((f"{name}[{place}]", each, shape.shape) for place, each in enumerate(value))
    else:
        if not isinstance(value, dict):
            return f"`{name}` is {_type_name(value)}, not an object"
        dot = f"{name}." if name else ""
        if isinstance(shape, Each):
            inner = ((f"{dot}{key}", each, shape.shape) for key, each in value.items())
        else:
            inner = ((f"{dot}{key}", value.get(key), expected) for key, expected in shape.items())
    return next((error for key, each, expected in inner if (error := shape_error(each, expected, key))), "")


def _is(value: Any, kind: Kind) -> bool:
    if kind is Kind.TEXT:
        return isinstance(value, str)
    number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST_INTEGER
    if kind is Kind.SCALAR:
        return isinstance(value, str | bool) or number
    return number and (kind is Kind.NUMBER or value >= 0)


def _type_name(value: Any) -> str:
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, str):
        return "text"
    return f"{value:g}"


def _clean(value: Any, depth: int) -> Any:
    """The value with printable strings of bounded length, keys among them. Raises ValueError."""
    if isinstance(value, str):
        return printable(value[: bounds.STRING])
    if not isinstance(value, dict | list):
        return value
    if depth == 0:
        raise ValueError("nested too deeply")
    # in place: a copy would double the memory of a large document
    for key, each in list(value.items() if isinstance(value, dict) else enumerate(value)):
        if isinstance(each, str | dict | list):
            value[key] = _clean(each, depth - 1)
    if isinstance(value, dict) and any(len(key) > bounds.STRING or UNSAFE.search(key) for key in value):
        return {printable(key[: bounds.STRING]): each for key, each in value.items()}
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        [(repeated, _)] = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"has the key `{repeated}` twice in one object")
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
