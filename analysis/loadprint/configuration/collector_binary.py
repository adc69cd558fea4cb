"""Locates the program loadprint-collect."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from loadprint.errors import InputError

NAME = "loadprint-collect"
BUILT = Path(__file__).resolve().parents[3] / "target" / "release" / NAME


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
