"""The command `ceilings`: shows a file of them; the playbook checks claims and gathers outputs by it."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from loadprint import options
from loadprint.errors import InputError

EXAMPLES = """`ansible-playbook ansible/ceilings.yml` measures; docs/ceilings.md says what each number is.

examples:
  loadprint ceilings runs/ceilings/latest
  loadprint ceilings runs/quick/latest --format csv -o ceilings.csv
  loadprint ceilings --claimed '{"read_iops": 3000, "send_bandwidth": "10 Gbit/s"}'    in base units
  loadprint ceilings --gather runs/ceilings/latest/ceilings.outputs -o ceilings.json    read again
"""


def add(subparsers: Any) -> None:
    """Register `ceilings`."""
    parser = options.command(
        subparsers,
        "ceilings",
        "the most that a host was measured to do, beside the vendor's limits",
        EXAMPLES,
    )
    parser.add_argument(
        "file", nargs="?", type=Path, metavar="FILE|DIR", help="ceilings.json, or a directory with it"
    )
    parser.add_argument("--claimed", metavar="JSON", help="check the vendor's limits, by measure")
    parser.add_argument(
        "--gather", type=Path, metavar="DIR", help="write ceilings.json of a directory of outputs"
    )
    options.add_output(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print, check or gather."""
    from loadprint.commands.ceilings import ceilings_summary, ceilings_text, claims, gather_outputs

    chosen = [each is not None for each in (arguments.file, arguments.claimed, arguments.gather)]
    if sum(chosen) != 1:
        raise InputError(
            "ceilings", "takes one of FILE, --claimed and --gather", "see loadprint ceilings --help"
        )
    if arguments.claimed is not None:
        understood = claims.read(_object(arguments.claimed))
        options.write(json.dumps(understood) + "\n", arguments.output)
    elif arguments.gather is not None:
        if arguments.output is None:
            raise InputError("--gather", "writes a file", "name it after -o")
        gather_outputs.write(gather_outputs.gather(arguments.gather), arguments.output)
    else:
        options.write(
            ceilings_text.RENDERERS[arguments.format](ceilings_summary.tell(arguments.file)), arguments.output
        )
    return 0


def _object(said: str) -> dict[str, Any]:
    try:
        found = json.loads(said)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise InputError("--claimed", "is no JSON object", 'write {"read_iops": 3000}')
    return found
