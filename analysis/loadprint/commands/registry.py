"""The commands of `loadprint`, one line each: command name → module and function that registers it.

Only the module of the requested command is imported, for `--help` all of them. A module that
registers must be fast to import: DuckDB, SciPy and pydantic are imported inside the functions that run.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

COMMANDS: dict[str, str] = {
    "compare": "compare.compare_command:add_compare",
    "inspect": "inspect.inspect_command:add_inspect",
    "report": "report.report_command:add_report",
    "sweep": "sweep.sweep_command:add_sweep",
    "shape": "sweep.sweep_command:add_shape",
    "import": "imports.import_command:add_import",
    "campaign": "campaign.campaign_command:add_parser",
    "ceilings": "ceilings.ceilings_command:add",
    "check": "check.check_command:add",
    "ab": "ab.ab_command:add",
    "usl": "usl.usl_command:add",
    "qualify": "qualify.qualify_command:add",
    "export": "fleet.fleet_command:add_export",
    "fleet": "fleet.fleet_command:add_fleet",
}


def register(subparsers: Any, words: Sequence[str]) -> None:
    """Register the command that `words` start with; all of them where they start with none."""
    requested = [words[0]] if words and words[0] in COMMANDS else list(COMMANDS)
    for name in requested:
        module, _, function = COMMANDS[name].partition(":")
        getattr(importlib.import_module(f"{__package__}.{module}"), function)(subparsers)
