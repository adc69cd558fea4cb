"""Reads a recording's JSON into models.

A model has the keys that readers use; other keys may hold any value. A key that is null is missing, and an
absent object is an empty one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationError,
    model_validator,
)
from pydantic_core import PydanticCustomError

from loadprint.errors import InputError
from loadprint.reading import bounds
from loadprint.reading.bounds import COPY_AGAIN
from loadprint.reading.strict_json import LARGEST_INTEGER, loads

FORMAT_VERSION = 1  # of recordings
KIND = "kind"  # of the errors below, whose messages name the expected type
EXPECTED = {
    **{"string_type": "text", "tuple_type": "a list", "dict_type": "an object"},
    **{"model_type": "an object", "dataclass_type": "an object"},
    **{"bool_type": "a boolean", "float_type": "a number", "float_parsing": "a number"},
}


class JsonObject(BaseModel):
    """An object in a document; false without keys."""

    model_config = ConfigDict(extra="allow", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _known(cls, value: Any) -> Any:
        return _without_nulls(value)

    def __bool__(self) -> bool:
        return bool(self.model_fields_set)

    def items(self) -> Iterator[tuple[str, Any]]:
        """The keys that the document has, with their values."""
        return ((name, value) for name, value in self if name in self.model_fields_set)


Model = TypeVar("Model", bound=JsonObject)
Line = TypeVar("Line", bound=BaseModel)


def _without_nulls(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: item for key, item in value.items() if item is not None} if None in value.values() else value


def _checked(value: Any, expected: str, fits: bool) -> Any:
    if not fits:
        raise PydanticCustomError(KIND, expected)
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST_INTEGER


def _integer_within(value: Any) -> Any:
    return _checked(value, "an integer", _is_number(value) and isinstance(value, int))


def _natural(value: Any) -> Any:
    return _checked(value, "a non-negative number", _is_number(value) and value >= 0)


def _scalar(value: Any) -> Any:
    return _checked(value, "text, a number or a boolean", isinstance(value, str | bool) or _is_number(value))


Integer: TypeAlias = Annotated[int, PlainValidator(_integer_within)]
Natural: TypeAlias = Annotated[float, PlainValidator(_natural)]  # integers stay integers
Scalar: TypeAlias = Annotated[str | float | bool, PlainValidator(_scalar)]
T = TypeVar("T")
Listed: TypeAlias = Annotated[tuple[T, ...], Field(max_length=bounds.OBJECTS)]
Named: TypeAlias = Annotated[dict[str, T], BeforeValidator(_without_nulls), Field(max_length=bounds.OBJECTS)]
EachNatural: TypeAlias = Named[Natural]
EachScalar: TypeAlias = Named[Scalar]


def read(path: Path, model: type[Model], limit: int = bounds.DOCUMENT) -> Model:
    """Read a JSON object of at most `limit` bytes. Raises InputError with the line or key of a mistake."""
    bounds.require_regular(path)
    return parse(path, bounds.read_text(path, limit, COPY_AGAIN), model, COPY_AGAIN)


def parse(place: Path | str, text: str | bytes, model: type[Model], fix: str) -> Model:
    """Read a JSON object. Raises InputError with the line or the key of the first mistake, and `fix`."""
    try:
        value = loads(text)
    except json.JSONDecodeError as error:
        what = f"not JSON at line {error.lineno} column {error.colno} ({error.msg})"
        raise InputError(place, what, fix) from error
    except ValueError as error:
        raise InputError(place, f"not valid JSON for a recording: {error}", fix) from error
    if not isinstance(value, dict):
        raise InputError(place, "is not a JSON object", fix)
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise InputError(place, _mismatch(error), fix) from error


def read_lines(
    path: Path, model: type[Line], what: str, problems: list[str] | None = None
) -> Iterator[tuple[int, Line]]:
    """Number and content of each line of a file of JSON lines; none without the file.

    A last line that a crash cut off is dropped, and reported in `problems`. Raises InputError for any other
    line that is not `what`.
    """
    text = bounds.read_text(path, bounds.LINES, COPY_AGAIN, errors="replace") if path.is_file() else ""
    lines = text.splitlines()
    for number, line_text in enumerate(lines, start=1):
        try:
            line = model.model_validate(loads(line_text))
        except ValueError as error:
            if number < len(lines):
                raise InputError(f"{path} line {number}", f"is not {what}", COPY_AGAIN) from error
            if problems is not None:
                problems.append(f"{path.name}: last line {number} is cut off")
            return
        yield number, line


def _mismatch(error: ValidationError) -> str:
    """First deviation from a model, as "`a.b` is a list, not a number"."""
    first = error.errors(include_url=False)[0]
    keys = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"])
    key = "".join(keys).removeprefix(".")
    if first["type"] == "missing":
        return f"`{key}` is missing"
    if first["type"] == "too_long":
        return f"`{key}` has more than {bounds.OBJECTS:,} entries"
    if expected := EXPECTED.get(first["type"], first["msg"] if first["type"] == KIND else ""):
        return f"`{key}` is {_type_name(first['input'])}, not {expected}"
    return f"`{key}`: {first['msg'].removeprefix('Value error, ')}"


def _type_name(value: Any) -> str:
    names = {type(None): "null", bool: "a boolean", dict: "an object", list: "a list", str: "text"}
    return names.get(type(value)) or f"{value:g}"
