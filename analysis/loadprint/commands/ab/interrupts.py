"""Turns signals into a flag, and prints messages to a terminal that may be gone."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """Turns SIGINT, SIGTERM and SIGHUP into a flag that wakes select(), until it exits."""

    def __init__(self) -> None:
        self.received: signal.Signals | None = None
        self._wake, self._sender = socket.socketpair()
        self._sender.setblocking(False)
        self._wake.setblocking(False)

    def __enter__(self) -> Interrupts:
        self._before = {each: signal.signal(each, self._note) for each in SIGNALS}
        self._fd = signal.set_wakeup_fd(self._sender.fileno(), warn_on_full_buffer=False)
        return self

    def __exit__(self, *_: object) -> None:
        signal.set_wakeup_fd(self._fd)
        for each, handler in self._before.items():
            signal.signal(each, handler)
        self._wake.close()
        self._sender.close()

    def fileno(self) -> int:
        """Return a descriptor that is readable after a signal."""
        return self._wake.fileno()

    def drain(self) -> None:
        """Read the bytes of received signals."""
        with contextlib.suppress(BlockingIOError):
            self._wake.recv(64)

    def _note(self, number: int, _: FrameType | None) -> None:
        if self.received is not None:
            # the signal may have interrupted print()
            with contextlib.suppress(OSError):
                os.write(2, b"loadprint ab: already reverting, please wait\n")
        self.received = signal.Signals(number)


def say(text: str) -> None:
    """Print a message to the user; a lost terminal must not prevent the revert."""
    with contextlib.suppress(OSError, ValueError):
        print(f"loadprint ab: {text}", file=sys.stderr, flush=True)
