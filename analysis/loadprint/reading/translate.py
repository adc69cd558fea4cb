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

import ibis.backends.sql  # noqa: F401  the parent of what is imported below
import ibis.expr.datatypes as dt
import ibis.expr.types as ir
import sqlglot
from ibis.backends.sql.datatypes import DuckDBType

PACKAGE = "ibis.backends.sql.compilers"


def sql(expression: ir.Table) -> str:
    """An expression as one SELECT of DuckDB's, which may begin with WITH. Raises IbisError, SqlglotError."""
    compiler = _compiler()
    query = compiler.to_sqlglot(expression)
    return str(query.sql(dialect=compiler.dialect, copy=False, unsupported_level=sqlglot.ErrorLevel.RAISE))


@cache
def data_type(name: str) -> dt.DataType:
    """The type that DuckDB calls so. Raises SqlglotError."""
    return DuckDBType.from_string(name)


@cache
def _compiler() -> Any:
    if PACKAGE not in sys.modules:
        _import_when_asked(PACKAGE)
    return importlib.import_module(f"{PACKAGE}.duckdb").compiler


def _import_when_asked(name: str) -> None:
    """Put a package where its modules can be imported; its own code runs when a name in it is looked up."""
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.loader is not None
    package, loader = importlib.util.module_from_spec(spec), spec.loader

    def imported(wanted: str) -> Any:
        del package.__dict__["__getattr__"]
        loader.exec_module(package)
        return getattr(package, wanted)

    package.__dict__["__getattr__"] = imported
    sys.modules[name] = package
