"""Defines InputError, the error for unusable input: what failed, where, and how to fix it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from loadprint.printable import printable

MAX_LENGTH = 2000  # characters: a damaged file can put text of any length into a message


class InputError(Exception):
    """Unusable input. `str()` is one printable line: place, what is wrong, fix."""

    def __init__(self, place: Path | str, what: str, fix: str) -> None:
        self.place, self.what, self.fix = (one_line(str(part)) for part in (place, what, fix))
        super().__init__(f"{self.place}: {self.what}; {self.fix}")


@contextmanager
def as_input_error(place: Path | str, fix: str) -> Iterator[None]:
    """Raise an OSError as InputError with this fix, at the file that it names, else at `place`."""
    try:
        yield
    except OSError as error:
        raise InputError(error.filename or place, error.strerror or "cannot be used", fix) from error


def one_line(text: str) -> str:
    """Text as one printable line of bounded length."""
    line = " ".join(printable(text).split())
    return line if len(line) <= MAX_LENGTH else f"{line[:MAX_LENGTH]}…"
