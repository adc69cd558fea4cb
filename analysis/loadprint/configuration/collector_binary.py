"""Locates the program loadprint-collect, and runs programs of the checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from loadprint.configuration.checkout import CHECKOUT
from loadprint.errors import InputError

NAME = "loadprint-collect"
TIMEOUT_S = 60
REBUILD = "build it again: ./setup"
BUILT = CHECKOUT / "target" / "release" / NAME


def find(given: Path | None) -> Path:
    """Return the path given on the command line, else this checkout's build, else that on the PATH.

    Raises InputError if it is not an executable file.
    """
    on_path = shutil.which(NAME)
    candidates = [given] if given else [BUILT, *([Path(on_path)] if on_path else [])]
    for path in candidates:
        if path.is_file() and os.access(path, os.X_OK):
            return path.resolve()
    raise InputError(given or NAME, "no such program", "run ./setup, or name it with --collector PATH")


def output(command: list[str], absent: str = REBUILD, failed: str = REBUILD) -> str:
    """Return what a program prints.

    Raises InputError with the fix `absent` if it does not run, or with its last line on stderr and `failed`.
    """
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(command[0], f"does not run ({error})", absent) from error
    if done.returncode:
        message = (done.stderr.strip().splitlines() or [f"exit {done.returncode} without a message"])[-1]
        raise InputError(command[0], message, failed)
    return done.stdout
