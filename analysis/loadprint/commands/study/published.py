"""Reads the figures of publications in docs/published."""

from __future__ import annotations

import csv

from loadprint.configuration.checkout import CHECKOUT
from loadprint.errors import InputError

PUBLISHED = CHECKOUT / "docs" / "published"


def rows(name: str) -> list[dict[str, str]]:
    """Read a table: one mapping from column to text for each line. Raises InputError."""
    path = PUBLISHED / name
    try:
        return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    except OSError as error:
        raise InputError(
            path, error.strerror or "cannot be read", "restore it from the repository"
        ) from error
