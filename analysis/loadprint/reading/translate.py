"""Ibis expressions as DuckDB's SQL, by Ibis's translator for DuckDB alone.

`ibis.duckdb` is found by reading what every installed package declares, and the package that its translator
lies in imports nineteen others: together a third of the start-up. Here the package is imported when somebody
asks for one of the others.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from functools import cache
from typing import Any

import ibis
import ibis.expr.datatypes as dt
import ibis.expr.types as ir
import sqlglot

from loadprint.errors import InputError

PACKAGE = "ibis.backends.sql.compilers"
TYPES = "ibis.backends.sql.datatypes"


def sql(expression: ir.Table) -> str:
    """An expression as one SELECT of DuckDB's, which may begin with WITH.

    Raises IbisError, SqlglotError, and InputError where this version of Ibis keeps its translator elsewhere.
    """
    compiler = _compiler()
    query = compiler.to_sqlglot(expression)
    return str(query.sql(dialect=compiler.dialect, copy=False, unsupported_level=sqlglot.ErrorLevel.RAISE))


@cache
def data_type(name: str) -> dt.DataType:
    """The type that DuckDB calls so. Raises SqlglotError, and InputError as `sql` does."""
    found: dt.DataType = _inside(TYPES, "DuckDBType").from_string(name)
    return found


@cache
def _compiler() -> Any:
    if PACKAGE not in sys.modules:
        _import_when_asked(PACKAGE)
    return _inside(f"{PACKAGE}.duckdb", "compiler")


def _inside(module: str, name: str) -> Any:
    """What Ibis does not promise to keep where it is. Raises InputError."""
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise InputError(
            f"ibis {ibis.__version__}",
            f"has no {module}.{name}, by which queries are translated",
            "run ./setup, which installs the version that Loadprint is made for",
        ) from error


def _import_when_asked(name: str) -> None:
    """Put a package where its modules can be imported; its own code runs when a name in it is looked up."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.loader is None:
        return  # who imports from it is told
    package, loader = importlib.util.module_from_spec(spec), spec.loader

    def imported(wanted: str) -> Any:
        del package.__dict__["__getattr__"]
        loader.exec_module(package)
        return getattr(package, wanted)

    package.__dict__["__getattr__"] = imported
    sys.modules[name] = package
