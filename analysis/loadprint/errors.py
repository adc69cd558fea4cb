"""The one error a user can cause: input that cannot be used, with its place and the mend."""

from __future__ import annotations

from pathlib import Path

from loadprint.printable import printable

LONGEST = 2000  # characters; what a hostile file puts into a message has no other limit


class InputError(Exception):
    """Unusable input. `str()` is one printable line: the place, what is wrong, what to do about it."""

    def __init__(self, place: Path | str, what: str, fix: str) -> None:
        self.place, self.what, self.fix = (_short(str(part)) for part in (place, what, fix))
        super().__init__(f"{self.place}: {self.what}; {self.fix}")


def _short(text: str) -> str:
    line = " ".join(printable(text).split())
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}…"
