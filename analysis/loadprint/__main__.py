"""The command `loadprint`: picks a subcommand; here an error becomes one line and an exit status."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from loadprint import cli
from loadprint.errors import InputError
from loadprint.importing import command


def main(words: Sequence[str] | None = None) -> int:
    """Run the command: 0 done, 2 unusable input with one line on stderr."""
    words = sys.argv[1:] if words is None else words
    arguments = _parser(words).parse_args(words)
    try:
        return int(arguments.run(arguments))
    except InputError as error:
        print(f"loadprint: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # `loadprint compare … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="loadprint", description="Reads workload recordings and lays them side by side."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    cli.add_compare(commands)
    cli.add_inspect(commands)
    cli.add_sweep(commands)
    cli.add_shape(commands)
    if not words or words[0] == "import" or words[0].startswith("-"):
        command.add_import(commands)
    if not words or words[0] not in ("compare", "inspect", "sweep", "shape", "import"):
        from loadprint import campaign  # noqa: PLC0415  its validation library costs a tenth of a second

        campaign.add_parser(commands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
