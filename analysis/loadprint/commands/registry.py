"""Lists the commands of `loadprint`: command name → module and function that registers it.

A call imports only the module of the requested command; `loadprint --help` imports all of them.
These modules must be fast to import: they import DuckDB, SciPy and pydantic inside functions.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

COMMANDS: dict[str, str] = {
    "compare": "compare.compare_command:add_compare",
    "show": "show.show_command:add_show",
    "inspect": "inspect.inspect_command:add_inspect",
    "stacks": "stacks.stacks_command:add_stacks",
    "report": "report.report_command:add_report",
    "sweep": "sweep.sweep_command:add_sweep",
    "study": "study.study_command:add",
    "import": "imports.import_command:add_import",
    "campaign": "campaign.campaign_command:add",
    "ceilings": "ceilings.ceilings_command:add",
    "check": "check.check_command:add",
    "ab": "ab.ab_command:add",
    "usl": "usl.usl_command:add",
    "qualify": "qualify.qualify_command:add",
    "export": "fleet.fleet_command:add_export",
    "fleet": "fleet.fleet_command:add_fleet",
}


def register(subparsers: Any, words: Sequence[str]) -> None:
    """Register the command that `words` start with, or all commands."""
    requested = [words[0]] if words and words[0] in COMMANDS else list(COMMANDS)
    for name in requested:
        module, _, function = COMMANDS[name].partition(":")
        getattr(importlib.import_module(f"{__package__}.{module}"), function)(subparsers)
