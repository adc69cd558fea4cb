"""Signals as a flag, and talking to a terminal that may be gone."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """SIGINT, SIGTERM and SIGHUP as a flag that wakes a select; the old handlers come back at the end."""

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
        """Readable after a signal."""
        return self._wake.fileno()

    def drain(self) -> None:
        """Take the bytes of signals that were noted."""
        with contextlib.suppress(BlockingIOError):
            self._wake.recv(64)

    def _note(self, number: int, _: FrameType | None) -> None:
        if self.received is not None:
            # not print: what it interrupts may be printing
            with contextlib.suppress(OSError):
                os.write(2, b"loadprint ab: reverting already, wait for it\n")
        self.received = signal.Signals(number)


def say(text: str) -> None:
    """Tell the user; a terminal that is gone must not keep anybody from reverting."""
    with contextlib.suppress(OSError, ValueError):
        print(f"loadprint ab: {text}", file=sys.stderr, flush=True)
