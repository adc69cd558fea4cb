"""Watches the heartbeat file, which the caller of `ab run` touches, such as a playbook."""

from __future__ import annotations

import math
import stat
import time
from dataclasses import dataclass, field
from pathlib import Path

from loadprint.errors import InputError


@dataclass
class Heartbeat:
    """The caller is gone if `path` has not been touched for `timeout` seconds.

    The time is that of the monotonic clock, so that setting the system clock has no effect. Raises
    InputError if the file does not exist at the start, or for an invalid `timeout`.
    """

    path: Path
    timeout: float
    _touched_ns: int | None = field(init=False)
    _seen: float = field(init=False)

    def __post_init__(self) -> None:
        if not 0 < self.timeout < math.inf:
            raise InputError("--heartbeat-timeout", "not a valid timeout", "give seconds, more than 0")
        self._touched_ns, self._seen = self._modified(), time.monotonic()
        if self._touched_ns is None:
            fix = "create it before the start, and touch it repeatedly"
            raise InputError(self.path, "no such regular file", fix)

    def lost(self) -> str:
        """Return the reason to end the experiment, or an empty text."""
        touched = self._modified()
        if touched is not None and touched != self._touched_ns:
            self._touched_ns, self._seen = touched, time.monotonic()
        silent = time.monotonic() - self._seen
        return (
            f"the caller is gone: {self.path} was not touched for {silent:.0f} s"
            if silent > self.timeout
            else ""
        )

    def _modified(self) -> int | None:
        try:
            state = self.path.lstat()
        except OSError:
            return None
        return state.st_mtime_ns if stat.S_ISREG(state.st_mode) else None
