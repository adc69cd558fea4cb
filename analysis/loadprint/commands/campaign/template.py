"""Fills in `{{ … }}` of a campaign file from its `variables`: Jinja with native types.

Example: `threads: "{{ (0.256 * warehouses) | round(0, 'ceil') | int }}"`.
"""

from __future__ import annotations

from typing import Any

from jinja2 import StrictUndefined, TemplateError, Undefined
from jinja2.nativetypes import NativeEnvironment
from jinja2.sandbox import SandboxedEnvironment

from loadprint.configuration.document import Document, DocumentError, Loc


class _Environment(SandboxedEnvironment, NativeEnvironment):
    """Returns native types, and confines templates."""


def fill_in(document: Document) -> None:
    """Replace every text that contains `{{` by its value; a variable may use those before it.

    Raises DocumentError with the place of the text.
    """
    environment = _Environment(undefined=StrictUndefined, finalize=_known)
    given = document.data.get("variables") or {}
    known: dict[str, Any] = {}
    if isinstance(given, dict):
        for name, value in given.items():
            known[name] = _filled(value, ("variables", name), document, environment, known)
        document.data["variables"] = known
    for key, value in document.data.items():
        if key != "variables":
            document.data[key] = _filled(value, (key,), document, environment, known)


def _known(value: Any) -> Any:
    """Refuse an undefined name, which a native template would return as an object."""
    if isinstance(value, Undefined):
        str(value)  # raises
    return value


def _filled(
    value: Any, loc: Loc, document: Document, environment: _Environment, known: dict[str, Any]
) -> Any:
    if isinstance(value, dict):
        return {key: _filled(each, (*loc, key), document, environment, known) for key, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, (*loc, at), document, environment, known) for at, each in enumerate(value)]
    if not isinstance(value, str) or "{{" not in value:
        return value
    try:
        return environment.from_string(value).render(known)
    except (TemplateError, TypeError, ValueError, ArithmeticError) as error:
        hint = f"variables are {', '.join(known)}" if known else "the campaign has no `variables`"
        where = ".".join(map(str, loc))
        raise DocumentError(f"{document.place(loc)}: {where}: {error} in `{value}`; {hint}") from None
