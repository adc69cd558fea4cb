"""Translates Ibis expressions to DuckDB's SQL with Ibis's DuckDB compiler alone.

`ibis.duckdb` reads the entry points of every installed package, and the package of its compiler imports
nineteen others: together a third of the start-up time. Here that package is imported on first use of another
compiler.
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
    """An expression as one SELECT for DuckDB, which may start with WITH.

    Raises IbisError, SqlglotError, and InputError if this version of Ibis has its compiler elsewhere.
    """
    compiler = _compiler()
    query = compiler.to_sqlglot(expression)
    return str(query.sql(dialect=compiler.dialect, copy=False, unsupported_level=sqlglot.ErrorLevel.RAISE))


@cache
def data_type(name: str) -> dt.DataType:
    """The Ibis type of a DuckDB type name. Raises SqlglotError, and InputError as `sql` does."""
    kind: dt.DataType = _inside(TYPES, "DuckDBType").from_string(name)
    return kind


@cache
def _compiler() -> Any:
    if PACKAGE not in sys.modules:
        _import_on_use(PACKAGE)
    return _inside(f"{PACKAGE}.duckdb", "compiler")


def _inside(module: str, name: str) -> Any:
    """A name of a module that is not part of Ibis's public interface. Raises InputError."""
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise InputError(
            f"ibis {ibis.__version__}",
            f"has no {module}.{name}, which translates queries",
            "run ./setup to install the supported version",
        ) from error


def _import_on_use(name: str) -> None:
    """Register a package so that its modules can be imported; its own code runs on first lookup of a name."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.loader is None:
        return  # the import of its modules reports the error
    package, loader = importlib.util.module_from_spec(spec), spec.loader

    def imported(attribute: str) -> Any:
        del package.__dict__["__getattr__"]
        loader.exec_module(package)
        return getattr(package, attribute)

    package.__dict__["__getattr__"] = imported
    sys.modules[name] = package
