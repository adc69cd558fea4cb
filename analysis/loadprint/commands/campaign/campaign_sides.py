"""The sides of a campaign: what one column of the table runs, and how a matrix becomes many columns."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import product
from typing import Annotated

from pydantic import Field, ValidationError

from loadprint.configuration.field_types import Generator, Options, Profile, Scalar, Size, Strict, Threads


class ServerChange(Strict):
    """What one side changes of the campaign's server; data sets are always prepared on the campaign's own."""

    profile: Profile | None = None
    buffer_pool_size: Size | None = None
    redo_capacity: Size | None = None
    options: Options = {}


class Side(Strict):
    """One column of the table: a workload, its threads and options (for the generator: --name=value).

    With `matrix` it stands for one column per combination of the listed values: `threads`, `workload`,
    `generator` and `rate` are keys of the side, `server.NAME` is an option of the server, every other name
    one of the generator. `name` says what the columns are called, for example `{scenario}-t{threads}`.
    `rate` is a fixed open-loop rate, operations a second.
    """

    label: str | None = None
    name: str | None = None
    workload: str
    data: str
    threads: Threads | None = None
    rate: Annotated[float, Field(gt=0)] | None = None
    generator: Generator = "native"
    options: Options = {}
    server: ServerChange = ServerChange()
    matrix: dict[str, Annotated[list[Scalar], Field(min_length=1)]] = {}


_OWN_KEYS = ("threads", "workload", "generator", "rate")
_SERVER = "server."


def expand(sides: Mapping[str, Side]) -> dict[str, Side]:
    """Give one side per combination of every matrix. ValueError begins with the key that is wrong."""
    columns: dict[str, Side] = {}
    for name, side in sides.items():
        for called, cell in cells(name, side).items():
            if called in columns:
                raise ValueError(f'sides.{name}.name: another side has a column called "{called}" too')
            columns[called] = _column(name, side, cell)
    return columns


def cells(name: str, side: Side) -> dict[str, dict[str, Scalar]]:
    """Give a side's columns: name → the cell of the matrix, the last dimension fastest.

    ValueError begins with the key that is wrong.
    """
    found: dict[str, dict[str, Scalar]] = {}
    for values in product(*side.matrix.values()):
        cell = dict(zip((key.removeprefix(_SERVER) for key in side.matrix), values, strict=True))
        called = _name(name, side, cell)
        if called in found:
            raise ValueError(
                f'sides.{name}.name: two columns are called "{called}"; name every dimension of the matrix, '
                f"for example {_pattern(cell)}"
            )
        found[called] = cell
    return found


def _pattern(cell: Mapping[str, Scalar]) -> str:
    """Give the name of columns where the file says none: `SIDE-VALUE-t4`, threads last."""
    others = [f"{{{dimension}}}" for dimension in cell if dimension != "threads"]
    return "-".join(["{side}", *others, *(["t{threads}"] if "threads" in cell else [])])


def _name(name: str, side: Side, cell: Mapping[str, Scalar]) -> str:
    pattern = side.name or _pattern(cell)
    try:
        text = pattern.format_map({"side": name, **cell})
    except (KeyError, ValueError, IndexError, AttributeError):
        known = ", ".join(["side", *cell])
        raise ValueError(f'sides.{name}.name: cannot fill in "{pattern}"; there are {known}') from None
    if not re.fullmatch(r"[a-z0-9][a-z0-9_.-]{0,39}", text):
        raise ValueError(
            f'sides.{name}.name: "{text}" is no name: lower-case letters, digits, _ . and -, at most 40'
        )
    return text


def _column(name: str, side: Side, cell: Mapping[str, Scalar]) -> Side:
    given = side.model_dump(exclude={"matrix", "name"})
    for key, value in zip(side.matrix, cell.values(), strict=True):
        if key in _OWN_KEYS:
            given[key] = value
        elif key.startswith(_SERVER):
            given["server"]["options"] |= {key.removeprefix(_SERVER): value}
        else:
            given["options"] |= {key: value}
    try:
        column = Side.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(f"sides.{name}.matrix.{first['loc'][0]}: {first['msg']}") from None
    if column.threads is None:
        raise ValueError(f'sides.{name}: key "threads" is missing; give it to the side or to its matrix')
    return column
