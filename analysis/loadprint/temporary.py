"""Temporary directories that are removed when the process exits, also by a signal that raises."""

from __future__ import annotations

import atexit
import secrets
import shutil
import tempfile
from pathlib import Path


def directory(prefix: str) -> Path:
    """Create a directory that only this user can read, below $TMPDIR. Raises OSError."""
    path = Path(tempfile.gettempdir()) / f"{prefix}{secrets.token_hex(8)}"
    # first: a signal can arrive as soon as the directory exists
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    path.mkdir(mode=0o700)
    return path
