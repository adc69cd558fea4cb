"""Reads a YAML file into a pydantic model; every error names the file, the line and the key."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from loadprint.configuration.document import DocumentError, compose
from loadprint.configuration.mistakes import describe
from loadprint.errors import InputError

Model = TypeVar("Model", bound=BaseModel)


def read_model(path: Path, model: type[Model], kind: str, hint: str, fix: str) -> Model:
    """Read the file of a `kind`. Raises InputError with `fix`; `hint` is for an empty file."""
    try:
        document = compose(path, kind, hint)
        try:
            return model.model_validate(document.data)
        except ValidationError as error:
            raise DocumentError(describe(document, error, model)) from None
    except DocumentError as error:
        place, _, what = str(error).partition(": ")
        raise InputError(place, what, fix) from None
