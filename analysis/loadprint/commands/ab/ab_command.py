"""Defines the command `ab` with its verbs plan, run, show and revert."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadprint import options
from loadprint.errors import InputError

if TYPE_CHECKING:
    from loadprint.commands.ab.experiment import Experiment
    from loadprint.commands.ab.schedule import Plan

RUN_STATUS = """exit status of `run`:
  0  complete
  1  ended early with everything reverted, or inconclusive
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
    running.add_argument(
        "--collector",
        type=Path,
        metavar="PATH",
        help="the program loadprint-collect (default: this checkout's, else on the PATH)",
    )
    running.add_argument(
        "--heartbeat", type=Path, metavar="FILE", help="file that the caller touches; see --heartbeat-timeout"
    )
    running.add_argument(
        "--heartbeat-timeout",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="revert and end if the heartbeat file was not touched for SECONDS (default: 60)",
    )
    running.add_argument(
        "--planned",
        action="store_true",
        help="the file is the output of `ab plan --format json`; run it without printing figures, "
        "which needs only Python's standard library",
    )
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
        "run directory; refused if users other than root and the caller can change its commands",
    )
    reverting.add_argument(
        "--yes",
        action="store_true",
        help="run the commands although other users can change them; a refusal prints them",
    )
    reverting.set_defaults(run=run_revert)


def run_plan(arguments: argparse.Namespace) -> int:
    """Print the schedule."""
    from loadprint.commands.ab import ab_plan_text, experiment, schedule

    loaded = experiment.load(arguments.file)
    options.write(ab_plan_text.RENDERERS[arguments.format](loaded, schedule.plan(loaded)), None)
    return 0


def run_run(arguments: argparse.Namespace) -> int:
    """Run an experiment. Returns 0 if complete, 1 if ended early and reverted, 2 if not reverted."""
    from loadprint.commands.ab import controller
    from loadprint.commands.ab.heartbeat import Heartbeat
    from loadprint.commands.ab.interrupts import say

    loaded, planned = _planned(arguments)
    for warning in planned.warnings:
        say(f"warning: {warning}")
    beat = Heartbeat(arguments.heartbeat, arguments.heartbeat_timeout) if arguments.heartbeat else None
    outcome = controller.run(loaded, planned, arguments.out, arguments.collector, beat)
    inconclusive = not arguments.planned and _inconclusive(arguments)
    say(f"{outcome.reason or 'complete'}; {outcome.revert_result}")
    if not outcome.reverted:
        say(f"NOT REVERTED ({outcome.revert_result}). Run by hand, now: {loaded.keeper_commands['revert']}")
        return 2
    return 1 if outcome.reason or inconclusive else 0


def _planned(arguments: argparse.Namespace) -> tuple[Experiment, Plan]:
    """Read the experiment. Raises InputError."""
    if arguments.planned:
        from loadprint.commands.ab import planned

        return planned.load(arguments.file)
    from loadprint.commands.ab import experiment, schedule

    loaded = experiment.load(arguments.file)
    return loaded, schedule.plan(loaded)


def _inconclusive(arguments: argparse.Namespace) -> bool:
    """Print the figures of an experiment that has ended; whether they are inconclusive or unusable."""
    from loadprint.commands.ab import ab_text, show
    from loadprint.commands.ab.interrupts import say

    try:
        result = show.result(arguments.out)
        options.write(ab_text.RENDERERS[arguments.format](result), arguments.output)
        return result.verdict == "inconclusive"
    except (InputError, OSError) as error:  # the outcome is reported in any case
        say(f"the figures cannot be shown: {error}")
        return True


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
    from loadprint.commands.ab.interrupts import say
    from loadprint.commands.ab.link import revert_by_hand

    reverted, message = revert_by_hand(arguments.path, yes=arguments.yes)
    say(message if reverted else f"NOT REVERTED: {message}")
    return 0 if reverted else 2
