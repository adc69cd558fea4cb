"""JSON as a recording may hold it: no NaN, no number beyond a double, no endless nesting, known shapes.

A shape says what readers rely on; keys that it does not name may hold anything. Every value may be null.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

LARGEST = 1e18  # no count, size or rate comes near it; nanoseconds since 1970 just pass it
LONGEST_INTEGER = 20  # digits


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
    """Read strict JSON. Raises ValueError that says what is wrong, in one line."""
    try:
        return json.loads(text, parse_constant=_refuse, parse_int=_integer, parse_float=_real)
    except RecursionError:
        raise ValueError("nested too deep") from None


def deviation(value: Any, shape: Shape, name: str = "") -> str:
    """Where a value is not of its shape, as "`a.b` is a list, not a number"; empty where it is."""
    if value is None:
        return ""
    if isinstance(shape, Kind):
        return "" if _is(value, shape) else f"`{name}` is {_called(value)}, not {shape.value}"
    if isinstance(shape, ListOf):
        if not isinstance(value, list):
            return f"`{name}` is {_called(value)}, not a list"
        inner = ((f"{name}[{place}]", each, shape.shape) for place, each in enumerate(value))
    else:
        if not isinstance(value, dict):
            return f"`{name}` is {_called(value)}, not an object"
        dot = f"{name}." if name else ""
        if isinstance(shape, Each):
            inner = ((f"{dot}{key}", each, shape.shape) for key, each in value.items())
        else:
            inner = ((f"{dot}{key}", value.get(key), own) for key, own in shape.items())
    return next((said for key, each, own in inner if (said := deviation(each, own, key))), "")


def _is(value: Any, kind: Kind) -> bool:
    if kind is Kind.TEXT:
        return isinstance(value, str)
    number = isinstance(value, int | float) and not isinstance(value, bool)
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


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no number")


def _integer(digits: str) -> int:
    if len(digits) > LONGEST_INTEGER:
        raise ValueError(f"a number of {len(digits)} digits")
    return int(digits)


def _real(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value) or abs(value) > LARGEST:
        raise ValueError(f"{digits[:20]} is too large for any figure")
    return value
