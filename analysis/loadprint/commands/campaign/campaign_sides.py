"""Defines the sides of a campaign, and expands a matrix to columns."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from itertools import product
from typing import Annotated, Literal

from pydantic import Field, ValidationError, model_validator

from loadprint.configuration.field_types import (
    Generator,
    Line,
    Options,
    Profile,
    Scalar,
    Size,
    Strict,
    Threads,
)


class ServerChange(Strict):
    """Changes of a side to the campaign's server.

    With `source` the side has another server, on which its data set is prepared too; `tarball` is the path of
    source `tarball`. Data sets are prepared without the other changes.
    """

    source: Literal["package", "rootfs", "tarball"] | None = None
    tarball: str | None = None
    profile: Profile | None = None
    buffer_pool_size: Size | None = None
    redo_capacity: Size | None = None
    options: Options = {}

    @model_validator(mode="after")
    def _tarball_has_its_source(self) -> ServerChange:
        if (self.source == "tarball") != (self.tarball is not None):
            raise ValueError("source: `tarball` as source and the path `tarball` need each other")
        return self


class CampaignSide(Strict):
    """One column of the table: a workload, its threads and options (for the generator: --name=value).

    With `matrix`, it is expanded to one column per combination of the listed values: `threads`,
    `workload`, `generator`, `rate` and `events` are keys of the side, `server.NAME` is an option of the
    server, other names are options of the generator. `name` is the pattern of the columns' names,
    such as `{scenario}-t{threads}`. `rate` is a fixed open-loop rate in operations per second. With
    `events`, a run ends after this number of events, of all threads together, instead of after its
    time. `needs` are programs of the load's host without which the side is left out, each with what
    installs it.
    """

    label: Line | None = None
    name: str | None = None
    workload: str
    data: str
    threads: Threads | None = None
    rate: Annotated[float, Field(gt=0)] | None = None
    events: Annotated[int, Field(gt=0)] | None = None
    generator: Generator = "native"
    needs: dict[str, str] = {}
    options: Options = {}
    server: ServerChange = ServerChange()
    matrix: dict[str, Annotated[list[Scalar], Field(min_length=1)]] = {}


MAX_COLUMNS = 1000
_SIDE_KEYS = ("threads", "workload", "generator", "rate", "events")
_SERVER = "server."


def expand(sides: Mapping[str, CampaignSide]) -> dict[str, CampaignSide]:
    """Return one side per combination of every matrix. A ValueError starts with the wrong key."""
    columns: dict[str, CampaignSide] = {}
    count = sum(math.prod(map(len, side.matrix.values())) for side in sides.values())
    if count > MAX_COLUMNS:
        raise ValueError(
            f"sides: {count:,} columns, more than the limit of {MAX_COLUMNS:,}; use fewer values"
        )
    for name, side in sides.items():
        for column, cell in cells(name, side).items():
            if column in columns:
                raise ValueError(f'sides.{name}.name: another side also has a column "{column}"')
            columns[column] = _column(name, side, cell)
    return columns


def cells(name: str, side: CampaignSide) -> dict[str, dict[str, Scalar]]:
    """Return a side's columns: name → the cell of the matrix, the last dimension fastest.

    A ValueError starts with the wrong key.
    """
    columns: dict[str, dict[str, Scalar]] = {}
    for values in product(*side.matrix.values()):
        cell = dict(zip((key.removeprefix(_SERVER) for key in side.matrix), values, strict=True))
        column = _name(name, side, cell)
        if column in columns:
            raise ValueError(
                f'sides.{name}.name: two columns have the name "{column}"; use every dimension of the '
                f"matrix, for example {_pattern(cell)}"
            )
        columns[column] = cell
    return columns


def _pattern(cell: Mapping[str, Scalar]) -> str:
    """Return the default pattern of columns' names: `SIDE-VALUE-t4`, threads last."""
    others = [f"{{{dimension}}}" for dimension in cell if dimension != "threads"]
    return "-".join(["{side}", *others, *(["t{threads}"] if "threads" in cell else [])])


def _name(name: str, side: CampaignSide, cell: Mapping[str, Scalar]) -> str:
    pattern = side.name or _pattern(cell)
    known_values = {"side": name, **cell}
    try:
        text = re.sub(r"\{([^{}]*)\}", lambda match: str(known_values[match[1]]), pattern)
    except KeyError:
        words = ", ".join(["side", *cell])
        raise ValueError(f'sides.{name}.name: cannot fill in "{pattern}"; known are {words}') from None
    if not re.fullmatch(r"[a-z0-9][a-z0-9_.-]{0,39}", text):
        raise ValueError(
            f'sides.{name}.name: "{text}" is not a valid name: use at most 40 of a-z, 0-9, _ . and -'
        )
    return text


def _column(name: str, side: CampaignSide, cell: Mapping[str, Scalar]) -> CampaignSide:
    values = side.model_dump(exclude={"matrix", "name"})
    for key, value in zip(side.matrix, cell.values(), strict=True):
        if key in _SIDE_KEYS:
            values[key] = value
        elif key.startswith(_SERVER):
            values["server"]["options"] |= {key.removeprefix(_SERVER): value}
        else:
            values["options"] |= {key: value}
    try:
        column = CampaignSide.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(f"sides.{name}.matrix.{first['loc'][0]}: {first['msg']}") from None
    if column.threads is None:
        raise ValueError(f'sides.{name}: key "threads" is missing; add it to the side or to its matrix')
    return column
