"""Tells queries that are the same by what they are made of, so that each is translated to SQL only once.

A query is a function of a table. Two are the same if they have the same code, in one
module, and enclose the same values.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from types import FunctionType
from typing import Any

from ibis.common.deferred import Deferred

PLAIN = (str, bytes, int, float, bool, type(None))


class UnsupportedValue(Exception):
    """A query encloses something of which nobody can say whether it is the same."""


def key_of(query: Callable[..., Any]) -> Hashable | None:
    """What a query is made of; None where that cannot be told."""
    try:
        return _of(query)
    except UnsupportedValue:
        return None


def _of(value: Any) -> Hashable:
    """A hashable stand-in that is equal only for equal things; kinds are kept apart (1 and 1.0 and True)."""
    if isinstance(value, PLAIN):
        return (type(value), value)
    if isinstance(value, FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        # the same words in two modules may name different things
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
