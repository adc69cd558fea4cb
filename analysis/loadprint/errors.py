"""The one error a user can cause: input that cannot be used, with its place and the mend."""

from __future__ import annotations

from pathlib import Path


class InputError(Exception):
    """Unusable input. `str()` is one line: the place, what is wrong, what to do about it."""

    def __init__(self, place: Path | str, what: str, mend: str) -> None:
        self.place, self.what, self.mend = str(place), what, mend
        super().__init__(" ".join(f"{place}: {what}; {mend}".split()))
