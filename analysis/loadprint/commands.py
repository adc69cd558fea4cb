"""The commands of `loadprint`, one line each: word → module and function that registers it.

Only the module of the command that was typed is imported, for `--help` all of them: a module that registers
must be light, and import what works (DuckDB, SciPy, pydantic) inside of what it runs.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

COMMANDS: dict[str, str] = {
    "compare": "loadprint.cli:add_compare",
    "inspect": "loadprint.cli:add_inspect",
    "report": "loadprint.report.command:add_report",
    "sweep": "loadprint.cli:add_sweep",
    "shape": "loadprint.cli:add_shape",
    "import": "loadprint.importing.command:add_import",
    "campaign": "loadprint.campaigns.command:add_parser",
    "ceilings": "loadprint.ceilings.command:add",
    "check": "loadprint.check.command:add",
    "ab": "loadprint.ab.command:add",
    "usl": "loadprint.usl.command:add",
    "qualify": "loadprint.qualify.command:add",
    "export": "loadprint.fleet.command:add_export",
    "fleet": "loadprint.fleet.command:add_fleet",
}


def register(subparsers: Any, words: Sequence[str]) -> None:
    """Register the command that `words` begin with; all of them where they begin with none."""
    typed = [words[0]] if words and words[0] in COMMANDS else list(COMMANDS)
    for word in typed:
        module, _, function = COMMANDS[word].partition(":")
        getattr(importlib.import_module(module), function)(subparsers)
