"""Facts of hosts, servers and generators, one text per side: differences first."""

from __future__ import annotations

from collections.abc import Sequence

from loadprint.judging import comparability
from loadprint.metrics.gather import Measured
from loadprint.reading.sides import Side
from loadprint.rendering.report_data import Setting

LONGEST = 400
ORDER = ("material", "varied", "harmless", "same")


def settings(sides: Sequence[Side], measured: Sequence[Sequence[Measured]]) -> tuple[Setting, ...]:
    """All facts of all sides, ordered by the meaning of a difference."""
    facts = [
        Setting(each.group, each.name, each.kind, tuple(_cut(value) for value in each.values))
        for each in comparability.settings(sides, measured)
    ]
    return tuple(sorted(facts, key=lambda setting: ORDER.index(setting.kind)))


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} … ({len(text)} characters)"
