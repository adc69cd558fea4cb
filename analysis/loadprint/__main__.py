"""Runs `loadprint COMMAND`, and turns an error into one line on stderr and an exit status."""

from __future__ import annotations

import argparse
import difflib
import os
import re
import signal
import sys
import threading
from collections.abc import Sequence

from loadprint.commands.registry import register
from loadprint.errors import InputError


def main(words: Sequence[str] | None = None) -> int:
    """Run the command. Status 0: done; 2: unusable input, with one line on stderr; 130: Ctrl-C."""
    is_main = threading.current_thread() is threading.main_thread()
    if is_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        # the default ends the process without removing its temporary files
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    # NumPy's library starts a thread for each CPU, which takes a tenth of a comparison's CPU time
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    words = sys.argv[1:] if words is None else words
    arguments, unknown = _parser(words).parse_known_args(words)
    if unknown:
        arguments.parser.error(_unknown(arguments.parser, unknown[0]))
    try:
        return int(arguments.run(arguments))
    except InputError as error:
        print(f"loadprint: {error}", file=sys.stderr)
        return 2
    except MemoryError:
        print("loadprint: out of memory; use fewer or shorter recordings", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except BrokenPipeError:  # `loadprint compare … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _unknown(parser: argparse.ArgumentParser, word: str) -> str:
    """Return the message for an argument that the command does not have."""
    near = difflib.get_close_matches(
        word.partition("=")[0], re.findall(r"--[a-z-]+", parser.format_usage()), 1
    )
    return f"unknown argument {word}{f'; did you mean {near[0]}?' if near else ''}"


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="loadprint", description="Reads workload recordings and prints tables, reports and verdicts."
    )
    register(parser.add_subparsers(required=True, metavar="COMMAND"), words)
    return parser


if __name__ == "__main__":
    sys.exit(main())
