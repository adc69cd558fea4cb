"""Defines the command `study`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from loadprint import options
from loadprint.errors import InputError

EXAMPLES = """examples:
  loadprint study --list
  loadprint study hammerdb-blog runs/hammerdb-vs-sysbench/latest runs/versions/latest
  loadprint study myarm-inserts runs/insert-scaling/latest --page docs/studies/myarm-inserts.md
"""
DESCRIPTION = """Judge the claims of a published study by executions of its campaigns.
Direction and size have a verdict each. A claim holds or differs if a 95 % interval over three or
more repeats decides it, is equivalent if the interval is within the claim's bound, else it is
undecided, or not comparable with the reason."""


def add(subparsers: Any) -> None:
    """Register `study`."""
    parser = options.command(
        subparsers, "study", "judge the claims of a published study by executions", EXAMPLES, DESCRIPTION
    )
    parser.add_argument("name", nargs="?", metavar="STUDY", help="name of a study, or a study file (*.yml)")
    parser.add_argument(
        "executions", nargs="*", type=Path, metavar="EXECUTION", help="an execution of each of its campaigns"
    )
    parser.add_argument(
        "--accept-disturbed", action="store_true", help="judge runs that the canary reports as disturbed"
    )
    parser.add_argument("--list", action="store_true", help="print all claims of all studies")
    parser.add_argument(
        "--page", type=Path, metavar="FILE.md", help="write a page, and its figures next to it as FILE-N.svg"
    )
    options.add_output(parser, ("text", "markdown", "json"))
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the claims with their verdicts, and return 0: a claim that differs is a finding."""
    from loadprint.commands.study import study_file, study_page, study_text
    from loadprint.commands.study.study import judge

    if arguments.list:
        named = [arguments.name] if arguments.name else study_file.names()
        options.write(
            study_text.overview([(name, study_file.read(name)) for name in named]), arguments.output
        )
        return 0
    if arguments.name is None:
        raise InputError(
            "loadprint study", "no study given", f"give one of {', '.join(study_file.names())}, or --list"
        )
    report = judge(arguments.name, arguments.executions, accept_disturbed=arguments.accept_disturbed)
    if arguments.page:
        drawn = study_page.figures(report, arguments.page)
        options.write(study_page.page(report, drawn), arguments.page)
        return 0
    renderers = {"text": study_text.text, "markdown": study_page.page, "json": study_text.as_json}
    options.write(renderers[arguments.format](report), arguments.output)
    return 0
