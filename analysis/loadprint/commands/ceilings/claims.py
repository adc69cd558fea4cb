"""Parses a vendor's limits: `3000`, `125 MB/s`, `10 Gbit/s`, `16000 IOPS`."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from loadprint.commands.ceilings.outputs import BYTES, MEASURES
from loadprint.errors import InputError

PLACE = "ceilings_claimed"
# unit → bytes per second, operations per second
BYTE_UNITS = {
    f"{prefix}{word}/s": size * share
    for prefix, size in (
        ("", 1), ("k", 1e3), ("M", 1e6), ("G", 1e9), ("Ki", 2**10), ("Mi", 2**20), ("Gi", 2**30)
    )
    for word, share in (("B", 1), ("bit", 1 / 8))
}  # fmt: skip
COUNT_UNITS = {"": 1.0, "/s": 1.0, "1/s": 1.0, "IOPS": 1.0, "k IOPS": 1e3, "kIOPS": 1e3}


def read(claims: Mapping[str, object]) -> dict[str, float]:
    """Return the limits by measure, in base units. Raises InputError that names an unusable claim."""
    return {name: _limit(name, value) for name, value in claims.items()}


def _limit(name: str, claim: object) -> float:
    measure = MEASURES.get(name)
    if measure is None:
        raise InputError(f"{PLACE}.{name}", "no measurement has this name", f"use {', '.join(MEASURES)}")
    units = BYTE_UNITS if measure.unit == BYTES else COUNT_UNITS
    example = "125 MB/s or 10 Gbit/s" if measure.unit == BYTES else "3000"
    error = InputError(f"{PLACE}.{name}", f"{claim!r} is not a limit", f"write it as {example}")
    parts = re.fullmatch(r"\s*([0-9][0-9_,]*(?:\.[0-9]+)?(?:[eE]\+?[0-9]+)?)\s*(.*?)\s*", str(claim))
    # a number without a unit could be MB or Gbit
    if parts is None or isinstance(claim, bool) or parts.group(2) not in units:
        raise error
    value = float(re.sub("[_,]", "", parts.group(1))) * units[parts.group(2)]
    if not 0 < value < 1e18 or not math.isfinite(value):
        raise error
    return value
