"""A file that the caller of `ab run` touches while it is there, such as a playbook on another host."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from pathlib import Path

from loadprint.errors import InputError


@dataclass
class Heartbeat:
    """The caller is gone when `path` has not been touched for `patience` seconds.

    How long is read off this host's monotonic clock: a clock that is set neither ends nor prolongs anything.
    Raises InputError where there is no such file at the begin, or `patience` is no time.
    """

    path: Path
    patience: float
    _touched_ns: int | None = field(init=False)
    _seen: float = field(init=False)

    def __post_init__(self) -> None:
        if not 0 < self.patience < math.inf:
            raise InputError("--heartbeat-timeout", "is no time", "give seconds, more than 0")
        self._touched_ns, self._seen = self._modified(), time.monotonic()
        if self._touched_ns is None:
            raise InputError(
                self.path, "is not there", "make the file before, and touch it while you are there"
            )

    def lost(self) -> str:
        """Why the experiment is to end; empty while the caller is there."""
        touched = self._modified()
        if touched is not None and touched != self._touched_ns:
            self._touched_ns, self._seen = touched, time.monotonic()
        silent = time.monotonic() - self._seen
        return (
            f"the caller is gone: {self.path} was not touched for {silent:.0f} s"
            if silent > self.patience
            else ""
        )

    def _modified(self) -> int | None:
        try:
            return self.path.stat().st_mtime_ns
        except OSError:
            return None
