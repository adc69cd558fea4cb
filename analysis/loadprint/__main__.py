"""Runs `loadprint COMMAND`, and turns an error into one line on stderr and an exit status."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from loadprint.commands.registry import register
from loadprint.errors import InputError


def main(words: Sequence[str] | None = None) -> int:
    """Run the command. Status 0: done; 2: unusable input, with one line on stderr."""
    words = sys.argv[1:] if words is None else words
    arguments = _parser(words).parse_args(words)
    try:
        return int(arguments.run(arguments))
    except InputError as error:
        print(f"loadprint: {error}", file=sys.stderr)
        return 2
    except MemoryError:
        print("loadprint: out of memory; use fewer or shorter recordings", file=sys.stderr)
        return 2
    except BrokenPipeError:  # `loadprint compare … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="loadprint", description="Reads workload recordings and prints tables, reports and verdicts."
    )
    register(parser.add_subparsers(required=True, metavar="COMMAND"), words)
    return parser


if __name__ == "__main__":
    sys.exit(main())
