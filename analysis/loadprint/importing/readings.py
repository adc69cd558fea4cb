"""Rebuilds cumulative counters from rates: each interval adds rate × seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Entity = tuple[str, ...]


@dataclass
class Readings:
    """Readings of one entity in one interval: rates of counters, and gauges at its end."""

    rates: dict[str, float] = field(default_factory=dict)
    gauges: dict[str, float] = field(default_factory=dict)


@dataclass
class Integral:
    """Builds one table; every entity starts at zero where it first appears."""

    ticks: list[int] = field(default_factory=list)
    entities: list[Entity] = field(default_factory=list)
    rows: list[dict[str, float]] = field(default_factory=list)
    totals: dict[Entity, dict[str, float]] = field(default_factory=dict)
    last: dict[Entity, int] = field(default_factory=dict)

    def add(self, begin: int, end: int, seconds: float, seen: Mapping[Entity, Readings]) -> None:
        """Add the interval from tick `begin` to tick `end`."""
        for entity, readings in seen.items():
            totals = self.totals.setdefault(entity, {})
            for column in readings.rates:
                totals.setdefault(column, 0.0)
            if self.last.get(entity) != begin:  # new, or back after a gap
                self._row(begin, entity, {column: totals[column] for column in readings.rates})
            for column, rate in readings.rates.items():
                totals[column] += rate * seconds
            row = {column: totals[column] for column in readings.rates}
            self._row(end, entity, {**row, **readings.gauges})
            self.last[entity] = end

    def _row(self, tick: int, entity: Entity, values: dict[str, float]) -> None:
        self.ticks.append(tick)
        self.entities.append(entity)
        self.rows.append(values)

    def columns(self, entity_names: tuple[str, ...]) -> dict[str, list[Any]]:
        """Entity columns, then a list for each value column, None where a value is missing."""
        names = list(dict.fromkeys(name for row in self.rows for name in row))
        entities: dict[str, list[Any]] = {
            name: [entity[place] for entity in self.entities] for place, name in enumerate(entity_names)
        }
        return entities | {name: [row.get(name) for row in self.rows] for name in names}
