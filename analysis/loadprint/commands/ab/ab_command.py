"""The command `loadprint ab`: plan, run, show, revert."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from loadprint import options
from loadprint.errors import InputError

EXAMPLES = """examples:
  loadprint ab plan docs/examples/ab-dirty-pages.yml        windows with their times, flips, smallest p
  loadprint ab run docs/examples/ab-dirty-pages.yml --out runs/ab/dirty-1
  loadprint ab show runs/ab/dirty-1 --format json           worked out again from what was recorded
  loadprint ab show docs/published/dynimize_sample.csv     quantity,without,with as a script printed them
  loadprint ab revert runs/ab/dirty-1                       by hand, when everything was killed

exit status of `run`: 0 done; 1 ended early, everything reverted, or inconclusive; 2 unusable, or not reverted
"""


def add(subparsers: Any) -> None:
    """Register `ab` and its verbs."""
    parser = options.command(
        subparsers, "ab", "A/B on a live server: flip a change on and off, and say what it did", EXAMPLES
    )
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    planned = verbs.add_parser(
        "plan", help="check an experiment file and print its schedule; touches nothing"
    )
    planned.add_argument("file", type=Path, metavar="EXPERIMENT.yml")
    planned.add_argument("--format", choices=("text", "json"), default="text")
    planned.set_defaults(run=run_plan)
    running = verbs.add_parser("run", help="run an experiment on this host, and always revert")
    running.add_argument("file", type=Path, metavar="EXPERIMENT.yml")
    running.add_argument("--out", type=Path, required=True, metavar="RUN", help="a new run directory")
    running.add_argument(
        "--collector", type=Path, metavar="PATH", help="loadprint-collect, if not on the PATH"
    )
    running.add_argument(
        "--heartbeat", type=Path, metavar="FILE", help="a file that is touched while the caller is there"
    )
    running.add_argument(
        "--heartbeat-timeout",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="end, reverted, when it was not touched for so long (default: 60)",
    )
    options.add_output(running)
    running.set_defaults(run=run_run)
    show = verbs.add_parser("show", help="what an experiment found, worked out again from its recording")
    show.add_argument("path", type=Path, metavar="RUN|FILE.csv")
    options.add_output(show)
    show.set_defaults(run=run_show)
    back = verbs.add_parser("revert", help="revert and verify by hand what a run directory says was applied")
    back.add_argument("path", type=Path, metavar="RUN")
    back.set_defaults(run=run_revert)


def run_plan(arguments: argparse.Namespace) -> int:
    """Print the schedule."""
    from loadprint.commands.ab import ab_plan_text, experiment, schedule

    asked = experiment.load(arguments.file)
    options.write(ab_plan_text.RENDERERS[arguments.format](asked, schedule.plan(asked)), None)
    return 0


def run_run(arguments: argparse.Namespace) -> int:
    """Run an experiment: 0 done, 1 ended early with everything reverted, 2 not reverted."""
    from loadprint.commands.ab import ab_text, controller, experiment, schedule, show
    from loadprint.commands.ab.heartbeat import Heartbeat
    from loadprint.commands.ab.interrupts import say

    asked = experiment.load(arguments.file)
    planned = schedule.plan(asked)
    for warning in planned.warnings:
        say(f"warning: {warning}")
    beat = Heartbeat(arguments.heartbeat, arguments.heartbeat_timeout) if arguments.heartbeat else None
    outcome = controller.run(asked, planned, arguments.out, arguments.collector, beat)
    try:
        result = show.result(arguments.out)
        options.write(ab_text.RENDERERS[arguments.format](result), arguments.output)
        inconclusive = result.verdict == "inconclusive"
    except (InputError, OSError) as error:  # what matters more is still to be said
        say(f"the figures cannot be shown: {error}")
        inconclusive = True
    say(f"{outcome.reason or 'done'}; {outcome.told}")
    if not outcome.reverted:
        say(f"NOT REVERTED ({outcome.told}). Run by hand, now: {asked.treatment.revert}")
        return 2
    return 1 if outcome.reason or inconclusive else 0


def run_show(arguments: argparse.Namespace) -> int:
    """Print an experiment's figures."""
    from loadprint.commands.ab import ab_published, ab_text, show

    if not arguments.path.exists():
        raise InputError(arguments.path, "is not there", "give a run directory or a CSV file")
    result = ab_published.read(arguments.path) if arguments.path.is_file() else show.result(arguments.path)
    options.write(ab_text.RENDERERS[arguments.format](result), arguments.output)
    return 0


def run_revert(arguments: argparse.Namespace) -> int:
    """Revert by hand: 0 reverted and verified, 2 not."""
    from loadprint.commands.ab.interrupts import say
    from loadprint.commands.ab.link import revert_by_hand

    good, told = revert_by_hand(arguments.path, "by hand", ask_first=True)
    say(told if good else f"NOT REVERTED: {told}")
    return 0 if good else 2
