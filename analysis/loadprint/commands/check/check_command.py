"""Defines the command `check`."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from loadprint import options
from loadprint.errors import InputError

EXAMPLES = """Without a path, `check` reads this host through loadprint-collect.

exit status: 0 no error, 1 an error, 2 unusable input

examples:
  loadprint check
  loadprint check --data-dir /var/lib/mysql --cpuset server=0-7 --cpuset load=8-15
  loadprint check --server-json variables.json
  loadprint check runs/quick/latest
  loadprint check runs/quick/latest/b1-oltp-r1 --format json
  ssh db1 loadprint-collect fingerprint --data-dir /srv/mysql | loadprint check --fingerprint -
"""


def add(subparsers: Any) -> None:
    """Register `check`."""
    parser = options.command(
        subparsers, "check", "find configuration mistakes that ruin results, and print fixes", EXAMPLES
    )
    parser.add_argument(
        "path", nargs="?", type=Path, metavar="RUN|EXECUTION", help="recording to check (default: this host)"
    )
    parser.add_argument(
        "--fingerprint",
        type=Path,
        metavar="FILE",
        help="fingerprint of the host to check; - reads it from standard input",
    )
    parser.add_argument(
        "--data-dir", type=Path, metavar="DIR", help="data directory of the server on this host"
    )
    parser.add_argument(
        "--cpuset",
        action="append",
        default=[],
        metavar="ROLE=LIST",
        help="CPUs of `server` or `load`, such as server=0-7 (default: not known)",
    )
    parser.add_argument(
        "--load-elsewhere", action="store_true", help="the load runs on another host and shares no core"
    )
    parser.add_argument(
        "--server-json", type=Path, metavar="FILE", help="variables of the server: server.json of a run"
    )
    options.add_collector(parser)
    options.add_output(parser, ("text", "json"))
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the report. Returns 1 if a finding is an error."""
    from loadprint.commands.check import check_text, subject_sources
    from loadprint.commands.check.check_report import judge

    live_only = [
        f"--{name.replace('_', '-')}"
        for name in ("fingerprint", "data_dir", "cpuset", "load_elsewhere", "server_json", "collector")
        if getattr(arguments, name)
    ]
    sets, variables = arguments.cpuset, arguments.server_json
    if arguments.path is not None and live_only:
        raise InputError(
            " ".join(live_only), "applies to a live host only", "omit it: the recording contains it"
        )
    if arguments.path is not None:
        subjects = subject_sources.recorded(arguments.path)
    elif arguments.fingerprint is None:
        subjects = [subject_sources.live(arguments.collector, arguments.data_dir, sets, variables)]
    elif arguments.data_dir:
        fix = "give it to `loadprint-collect fingerprint` on the other host"
        raise InputError("--data-dir", "is a directory of this host", fix)
    else:
        subjects = [subject_sources.fingerprint_file(arguments.fingerprint, sets, variables)]
    if arguments.load_elsewhere:
        subjects = [replace(subject, shared_host=False) for subject in subjects]
    report = judge(subjects)
    render = check_text.as_json if arguments.format == "json" else check_text.text
    options.write(render(report), arguments.output)
    return 1 if report.failed else 0
