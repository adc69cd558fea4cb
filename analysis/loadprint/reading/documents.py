"""JSON as a recording may hold it: no NaN, no number beyond a double, no endless nesting, known shapes.

Strings are made printable here, before any reader sees them. A shape says what readers rely on; keys that it
does not name may hold anything. Every value may be null, but an object in a list.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from loadprint.printable import UNSAFE, printable
from loadprint.reading import bounds

LARGEST = 1e18  # no count, size or rate comes near it; nanoseconds since 1970 just pass it
SMALLEST = 1e-18  # a real below is no measurement; its reciprocal would pass LARGEST
LARGEST_INTEGER = 1 << 63


class Kind(Enum):
    """What a single value is; its value is how a message calls it."""

    TEXT = "text"
    NUMBER = "a number"
    NATURAL = "a number that is not negative"
    SCALAR = "text, a number or a truth value"


@dataclass(frozen=True)
class Each:
    """An object in which every value has one shape."""

    shape: Shape


@dataclass(frozen=True)
class ListOf:
    """A list in which every element has one shape."""

    shape: Shape


# a mapping is an object of which these keys are looked at
Shape = Kind | Each | ListOf | Mapping[str, "Shape"]


def loads(text: str | bytes) -> Any:
    """Read strict JSON; its strings are printable. Raises ValueError that says what is wrong, in one line."""
    try:
        found = json.loads(text, parse_constant=_refuse, parse_int=_integer, parse_float=_real)
    except RecursionError:
        raise ValueError("nested too deep") from None
    return _clean(found, bounds.DEPTH)


def shape_error(value: Any, shape: Shape, name: str = "") -> str:
    """Where a value is not of its shape, as "`a.b` is a list, not a number"; empty where it is."""
    if value is None:
        return ""
    if isinstance(shape, Kind):
        return "" if _is(value, shape) else f"`{name}` is {_called(value)}, not {shape.value}"
    if isinstance(shape, ListOf):
        if not isinstance(value, list):
            return f"`{name}` is {_called(value)}, not a list"
        if isinstance(shape.shape, Mapping) and None in value:
            return f"`{name}[{value.index(None)}]` is null, not an object"
        inner = ((f"{name}[{place}]", each, shape.shape) for place, each in enumerate(value))
    else:
        if not isinstance(value, dict):
            return f"`{name}` is {_called(value)}, not an object"
        dot = f"{name}." if name else ""
        if isinstance(shape, Each):
            inner = ((f"{dot}{key}", each, shape.shape) for key, each in value.items())
        else:
            inner = ((f"{dot}{key}", value.get(key), own) for key, own in shape.items())
    return next((said for key, each, own in inner if (said := shape_error(each, own, key))), "")


def _is(value: Any, kind: Kind) -> bool:
    if kind is Kind.TEXT:
        return isinstance(value, str)
    number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST_INTEGER
    if kind is Kind.SCALAR:
        return isinstance(value, str | bool) or number
    return number and (kind is Kind.NUMBER or value >= 0)


def _called(value: Any) -> str:
    if isinstance(value, bool):
        return "a truth value"
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
        raise ValueError("nested too deep")
    # in place: a copy of a large document would double its memory
    for key, each in list(value.items() if isinstance(value, dict) else enumerate(value)):
        if isinstance(each, str | dict | list):
            value[key] = _clean(each, depth - 1)
    if isinstance(value, dict) and any(len(key) > bounds.STRING or UNSAFE.search(key) for key in value):
        return {printable(key[: bounds.STRING]): each for key, each in value.items()}
    return value


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no number")


def _integer(digits: str) -> int:
    # 2^64 - 1 may be printed by a kernel; where a shape asks for a number it is refused
    if len(digits) > len(str(1 << 64)):
        raise ValueError(f"a number of {len(digits)} digits")
    return int(digits)


def _real(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value) or abs(value) > LARGEST:
        raise ValueError(f"{digits[:20]} is too large for any figure")
    if 0 < abs(value) < SMALLEST:
        raise ValueError(f"{digits[:20]} is too small for any figure")
    return value
