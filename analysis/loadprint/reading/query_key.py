"""Computes a key of a query, so that equal queries are translated to SQL only once.

A query is a function of a table. Two queries are equal if they have the same code, in the same module, and
enclose equal values.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from types import FunctionType
from typing import Any

from ibis.common.deferred import Deferred

PLAIN = (str, bytes, int, float, bool, type(None))


class UnsupportedValue(Exception):
    """A query encloses a value that cannot be compared."""


def key_of(query: Callable[..., Any]) -> Hashable | None:
    """Key of a query; None where it encloses a value that cannot be compared."""
    try:
        return _of(query)
    except UnsupportedValue:
        return None


def _of(value: Any) -> Hashable:
    """A hashable key that is equal only for equal values of one type: 1, 1.0 and True differ."""
    if isinstance(value, PLAIN):
        return (type(value), value)
    if isinstance(value, FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        # the same name can be another object in another module
        code = (value.__module__, value.__code__)
        return (*code, tuple(map(_of, cells)), _of(value.__defaults__), _of(value.__kwdefaults__))
    if isinstance(value, list | tuple):
        return (type(value), tuple(map(_of, value)))
    if isinstance(value, set | frozenset):
        return (set, frozenset(map(_of, value)))
    if isinstance(value, dict):
        return (dict, tuple((_of(key), _of(each)) for key, each in value.items()))
    if isinstance(value, Deferred):
        return (Deferred, value._resolver)
    raise UnsupportedValue
