"""Reports the first pydantic error of a file with its place and key."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from loadprint.configuration.document import Document, Loc


def describe(document: Document, error: ValidationError, root: type[BaseModel]) -> str:
    """Describe the first mistake in the order of the file and count the others. `root` is the file's model.

    Unknown keys are reported first, because a misspelt key is also a missing one.
    """
    mistakes = error.errors()
    unknown = [mistake for mistake in mistakes if mistake["type"] == "extra_forbidden"]
    first = min(unknown or mistakes, key=lambda mistake: _line(document.place(mistake["loc"])))
    loc = first["loc"]
    where = _where(loc)
    if first["type"] == "extra_forbidden":
        keys = _keys(loc[:-1], root)
        parent = f" in {'.'.join(map(str, loc[:-1]))}" if len(loc) > 1 else ""
        text = f'unknown key "{loc[-1]}"{parent}; {hint(str(loc[-1]), keys, "valid keys:")}'
    elif first["type"] == "missing":
        text = f'key "{where}" is missing'
    elif first["type"] == "union_tag_invalid":
        context = first["ctx"]
        key = context["discriminator"].strip("'")
        text = f'{where}: unknown {key} "{context["tag"]}"; use one of {context["expected_tags"]}'
    elif first["type"] == "union_tag_not_found":
        text = f"{where}: key {first['ctx']['discriminator']} is missing"
    else:
        text = first["msg"].removeprefix("Value error, ")
        if where:
            text = f"{where}: {text}"
        else:  # a rule for the whole file: its message starts with the key
            loc = tuple(text.partition(":")[0].split("."))
    places = {_where(mistake["loc"]) for mistake in mistakes}
    more = f" (and {len(places) - 1} more)" if len(places) > 1 else ""
    return f"{document.place(loc)}: {text}{more}"


def hint(name: str, names: Sequence[str], words: str) -> str:
    """The known name that is most alike, else all of them after these words."""
    near = difflib.get_close_matches(name, names, n=1)
    return f'did you mean "{near[0]}"?' if near else f"{words} {', '.join(names)}"


def _where(loc: Loc) -> str:
    """The keys to a mistake; a part with brackets is one of several kinds of value."""
    return ".".join(str(part) for part in loc if "[" not in str(part))


def _line(place: str) -> int:
    line = place.rpartition(":")[2]
    return int(line) if line.isdigit() else 0


def _keys(loc: Loc, root: type[BaseModel]) -> list[str]:
    """List the keys that the model has at `loc` (free names of a mapping, or a kind, are one step)."""
    model = root
    inside: list[type[BaseModel]] = []
    for part in loc:
        if inside:
            model = next((kind for kind in inside if part in _kinds(kind)), inside[0])
            inside = []
            continue
        annotation = _fields(model)[str(part)].annotation
        choices = (annotation, *get_args(annotation))
        models = [one for one in choices if isinstance(one, type) and issubclass(one, BaseModel)]
        if not models:
            return []
        if models[0] is annotation:
            model = models[0]
        else:
            inside = models
    return [] if inside else sorted(_fields(model))


def _fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """The fields of a model by their keys in a file."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _kinds(model: type[BaseModel]) -> tuple[object, ...]:
    """The values of `kind` that select a model among others."""
    kind = model.model_fields.get("kind")
    return get_args(kind.annotation) if kind else ()
