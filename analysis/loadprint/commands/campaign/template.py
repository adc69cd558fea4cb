"""Fills in `{{ … }}` of a campaign file from its `variables`: Jinja with native types.

Example: `threads: "{{ (0.256 * warehouses) | round(0, 'ceil') | int }}"`. Expressions compute with numbers
and select values. Calls, statements and other filters are refused, and the size of every value is limited:
a file cannot use all memory or CPU time.
"""

from __future__ import annotations

from typing import Any

from jinja2 import StrictUndefined, TemplateError, Undefined
from jinja2.filters import do_round
from jinja2.nativetypes import NativeEnvironment
from jinja2.sandbox import SandboxedEnvironment

from loadprint.configuration.document import Document, DocumentError, Loc

FILTERS = (
    "abs",
    "default",
    "first",
    "float",
    "int",
    "last",
    "length",
    "lower",
    "max",
    "min",
    "string",
    "sum",
)
MAX_SOURCE = 1000  # characters of a text with an expression
MAX_VALUE = 16_384  # characters of the value of such a text, as Python prints it
MAX_BASE, MAX_POWER = 1e18, 64  # of **
MAX_DIGITS = 15  # of round: a double has as many
SIMPLE = (str, int, float, list, tuple, dict, type(None))
# the source that Jinja compiles has an infinite constant as the name `inf`
ERRORS = (TemplateError, TypeError, ValueError, ArithmeticError, NameError, RecursionError, MemoryError)


class _Environment(SandboxedEnvironment, NativeEnvironment):
    """Returns native types, and confines templates."""

    intercepted_binops = frozenset(("*", "**", "%"))

    def __init__(self) -> None:
        super().__init__(undefined=StrictUndefined, finalize=_known)
        self.globals.clear()
        self.filters = {name: self.filters[name] for name in FILTERS} | {"round": _rounded}

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Compute with numbers only: the product of a text and a number can have any length."""
        if not all(isinstance(operand, int | float) for operand in (left, right)):
            raise TypeError(f"{operator} needs numbers")
        if operator == "**" and (abs(left) > MAX_BASE or abs(right) > MAX_POWER):
            raise ValueError(f"a power above {MAX_POWER}, or of a number above {MAX_BASE:g}")
        return super().call_binop(context, operator, left, right)

    def is_safe_callable(self, obj: Any) -> bool:
        """No object can be called."""
        return False


def _rounded(value: float, precision: int = 0, method: str = "common") -> float:
    if abs(precision) > MAX_DIGITS:
        raise ValueError(f"round with more than {MAX_DIGITS} digits")
    return do_round(value, precision, method)  # type: ignore[arg-type]  # it checks the method itself


def fill_in(document: Document) -> None:
    """Replace every text that contains `{{` by its value; a variable may use those before it.

    Raises DocumentError with the place of the text.
    """
    environment = _Environment()
    given = document.data.get("variables") or {}
    variables: dict[str, Any] = {}
    if isinstance(given, dict):
        for name, value in given.items():
            variables[name] = _filled(value, ("variables", name), document, environment, variables)
        document.data["variables"] = variables
    for key, value in document.data.items():
        if key != "variables":
            document.data[key] = _filled(value, (key,), document, environment, variables)


def _known(value: Any) -> Any:
    """Refuse an undefined name, which a native template would return as an object."""
    if isinstance(value, Undefined):
        str(value)  # raises
    return value


def _filled(
    value: Any, loc: Loc, document: Document, environment: _Environment, variables: dict[str, Any]
) -> Any:
    if isinstance(value, dict):
        return {
            key: _filled(inner, (*loc, key), document, environment, variables) for key, inner in value.items()
        }
    if isinstance(value, list):
        return [
            _filled(inner, (*loc, at), document, environment, variables) for at, inner in enumerate(value)
        ]
    if not isinstance(value, str) or "{{" not in value:
        return value
    try:
        if len(value) > MAX_SOURCE or "{%" in value:
            raise ValueError(f"a statement, or a text of more than {MAX_SOURCE} characters,")
        result = environment.from_string(value).render(variables)
        if not isinstance(result, SIMPLE):
            raise ValueError(
                "a condition without `else`, or another value that is not text, a number or a list,"
            )
        if len(repr(result)) > MAX_VALUE:
            raise ValueError(f"a value of more than {MAX_VALUE} characters")
        return result
    except ERRORS as error:
        hint = f"variables are {', '.join(variables)}" if variables else "the campaign has no `variables`"
        where = ".".join(map(str, loc))
        raise DocumentError(f"{document.place(loc)}: {where}: {error} in `{value}`; {hint}") from None
