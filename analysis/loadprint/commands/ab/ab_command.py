"""Defines the command `ab` with its verbs plan, run, show and revert."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from loadprint import options
from loadprint.errors import InputError

RUN_STATUS = """exit status of `run`:
  0  complete
  1  ended early with everything reverted, or not measured
  2  unusable input, or not reverted
"""
EXAMPLES = f"""examples:
  loadprint ab plan docs/examples/ab-dirty-pages.yml       # print the schedule
  loadprint ab run docs/examples/ab-dirty-pages.yml --out runs/ab/dirty-1
  loadprint ab show runs/ab/dirty-1 --format json
  loadprint ab show docs/published/dynimize_sample.csv    # compute the ratios of a published table
  loadprint ab revert runs/ab/dirty-1                      # after all its processes were killed

{RUN_STATUS}"""


def add(subparsers: Any) -> None:
    """Register `ab` and its verbs."""
    parser = options.command(
        subparsers, "ab", "run an A/B experiment on a live server: switch a change on and off", EXAMPLES
    )
    verbs = parser.add_subparsers(required=True, metavar="VERB")

    def verb(name: str, summary: str, operand: str, operand_help: str, end: str = "") -> Any:
        examples = [line for line in EXAMPLES.splitlines() if f" ab {name} " in line]
        added = options.command(verbs, name, summary, "\n".join(["examples:", *examples, "", end]))
        added.add_argument(
            "file" if operand == "EXPERIMENT.yml" else "path", type=Path, metavar=operand, help=operand_help
        )
        return added

    planning = verb(
        "plan",
        "check an experiment file and print its schedule; changes nothing",
        "EXPERIMENT.yml",
        "experiment file, see docs/ab.md",
    )
    options.add_format(planning, ("text", "json"))
    planning.set_defaults(run=run_plan)
    running = verb(
        "run",
        "run an experiment on this host and revert its change at the end, also after a failure",
        "EXPERIMENT.yml",
        "experiment file, see docs/ab.md",
        RUN_STATUS,
    )
    running.add_argument("--out", type=Path, required=True, metavar="RUN", help="new run directory")
    options.add_output(running)
    running.set_defaults(run=run_run)
    showing = verb(
        "show",
        "compute the figures of an experiment from its recording, and print them",
        "RUN|FILE.csv",
        "run directory, or a CSV file with the columns quantity,without,with",
    )
    options.add_output(showing)
    showing.set_defaults(run=run_show)
    reverting = verb(
        "revert",
        "revert and verify the change of an experiment whose processes were killed",
        "RUN",
        "run directory; refused if users other than root and the caller can change it",
    )
    reverting.set_defaults(run=run_revert)
    for parser_of in (running, reverting):
        options.add_collector(parser_of)


def run_plan(arguments: argparse.Namespace) -> int:
    """Print the schedule."""
    from loadprint.commands.ab import ab_plan_text, experiment, schedule

    loaded = experiment.load(arguments.file)
    options.write(ab_plan_text.RENDERERS[arguments.format](loaded, schedule.plan(loaded)), None)
    return 0


def run_run(arguments: argparse.Namespace) -> int:
    """Run an experiment. Returns 0 if complete, 1 if ended early and reverted, 2 if not reverted."""
    from loadprint.commands.ab import ab_plan_text, ab_text, experiment, schedule, show, start
    from loadprint.commands.ab.switch import say
    from loadprint.configuration import collector_binary

    loaded = experiment.load(arguments.file)
    planned = schedule.plan(loaded)
    for warning in planned.warnings:
        say(f"warning: {warning}")
    collector = {"collector": str(collector_binary.find(arguments.collector))}
    status = start.run(ab_plan_text.document(loaded, planned) | collector, arguments.out)
    if status == 2:
        return 2
    try:
        result = show.result(arguments.out)
        options.write(ab_text.RENDERERS[arguments.format](result), arguments.output)
    except (InputError, OSError) as error:
        say(f"the figures cannot be shown: {error}")
        return 1
    return 1 if result.verdict == "not measured" else status


def run_show(arguments: argparse.Namespace) -> int:
    """Print an experiment's figures."""
    from loadprint.commands.ab import ab_published, ab_text, show

    if not arguments.path.exists():
        raise InputError(arguments.path, "no such file or directory", "give a run directory or a CSV file")
    result = ab_published.read(arguments.path) if arguments.path.is_file() else show.result(arguments.path)
    options.write(ab_text.RENDERERS[arguments.format](result), arguments.output)
    return 0


def run_revert(arguments: argparse.Namespace) -> int:
    """Revert by hand. Returns 0 if reverted and verified, else 2."""
    from loadprint.commands.ab import start
    from loadprint.commands.ab.switch import say

    reverted, message = start.revert(arguments.path, arguments.collector)
    say(message if reverted else f"NOT REVERTED: {message}")
    return 0 if reverted else 2
