"""Limits that a vendor claims, as people write them: `3000`, `125 MB/s`, `10 Gbit/s`, `16000 IOPS`."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from loadprint.commands.ceilings.measures import BYTES, COUNT, MEASURES
from loadprint.errors import InputError

PLACE = "ceilings_claimed"
# Bytes a second, or operations a second, in one of the unit.
BYTE_UNITS = {
    f"{prefix}{word}/s": size * of
    for prefix, size in (
        ("", 1), ("k", 1e3), ("M", 1e6), ("G", 1e9), ("Ki", 2**10), ("Mi", 2**20), ("Gi", 2**30)
    )
    for word, of in (("B", 1), ("bit", 1 / 8))
}  # fmt: skip
COUNT_UNITS = {"": 1.0, "/s": 1.0, "1/s": 1.0, "IOPS": 1.0, "k IOPS": 1e3, "kIOPS": 1e3}


def read(said: Mapping[str, object]) -> dict[str, float]:
    """Claims by measure in its base unit. Raises InputError naming the claim that cannot be used."""
    return {name: _claim(name, value) for name, value in said.items()}


def _claim(name: str, said: object) -> float:
    measure = MEASURES.get(name)
    if measure is None:
        raise InputError(f"{PLACE}.{name}", "nothing of this name is measured", f"use {', '.join(MEASURES)}")
    units = BYTE_UNITS if measure.unit == BYTES else COUNT_UNITS
    example = "125 MB/s or 10 Gbit/s" if measure.unit == BYTES else "3000"
    found = re.fullmatch(r"\s*([0-9][0-9_,]*(?:\.[0-9]+)?(?:[eE]\+?[0-9]+)?)\s*(.*?)\s*", str(said))
    unit = found.group(2) if found else ""
    if found is None or isinstance(said, bool) or unit not in units:
        # a bare number of bytes could be MB or Gbit: its unit is never guessed
        raise InputError(f"{PLACE}.{name}", f"{said!r} is no limit", f"write a number as {example}")
    value = float(re.sub("[_,]", "", found.group(1))) * units[unit]
    if not 0 < value < 1e18 or not math.isfinite(value):
        raise InputError(f"{PLACE}.{name}", f"{said!r} is no limit", f"write a number as {example}")
    return value


assert {measure.unit for measure in MEASURES.values()} == {BYTES, COUNT}
