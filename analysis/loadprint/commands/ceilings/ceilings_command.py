"""Defines the command `ceilings`; ansible/ceilings.yml uses `--claimed` and `--gather`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from loadprint import options
from loadprint.errors import InputError

EXAMPLES = """ansible/ceilings.yml measures them and writes ceilings.json; docs/ceilings.md explains each
number.

examples:
  loadprint ceilings runs/ceilings/latest
  loadprint ceilings runs/quick/latest --format csv -o ceilings.csv
  loadprint ceilings --claimed '{"read_iops": 3000, "send_bandwidth": "10 Gbit/s"}'
  loadprint ceilings --gather runs/ceilings/latest/ceilings.outputs -o ceilings.json
"""


def add(subparsers: Any) -> None:
    """Register `ceilings`."""
    summary = "print the measured limits of a host and the vendor's limits"
    parser = options.command(subparsers, "ceilings", summary, EXAMPLES)
    file = "ceilings.json, or a directory that contains it"
    parser.add_argument("file", nargs="?", type=Path, metavar="FILE|DIR", help=file)
    parser.add_argument(
        "--claimed",
        metavar="JSON",
        help="read limits that the vendor states, and print them in base units (B/s, 1/s)",
    )
    parser.add_argument(
        "--gather", type=Path, metavar="DIR", help="read a directory of tool outputs and write ceilings.json"
    )
    options.add_output(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print, check or gather."""
    from loadprint.commands.ceilings import ceilings_text, claims, gather_outputs

    chosen = [option is not None for option in (arguments.file, arguments.claimed, arguments.gather)]
    if sum(chosen) != 1:
        raise InputError(
            "ceilings", "needs exactly one of FILE, --claimed and --gather", "see loadprint ceilings --help"
        )
    if arguments.claimed is not None:
        limits = claims.read(_object(arguments.claimed))
        options.write(json.dumps(limits) + "\n", arguments.output)
    elif arguments.gather is not None:
        if arguments.output is None:
            raise InputError("--gather", "no output file", "give one with -o FILE")
        gather_outputs.write(gather_outputs.gather(arguments.gather), arguments.output)
    else:
        summary = ceilings_text.summarise(arguments.file)
        options.write(ceilings_text.RENDERERS[arguments.format](summary), arguments.output)
    return 0


def _object(text: str) -> dict[str, Any]:
    from loadprint.reading import strict_json

    try:
        document = strict_json.loads(text)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise InputError("--claimed", "not a JSON object", 'write {"read_iops": 3000}')
    return document
