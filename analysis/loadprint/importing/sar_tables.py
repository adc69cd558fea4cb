"""Converts the intervals of `sadf -j` to the recorder's tables, by the names of sar_names.toml.

sadf prints counters as rates per second with two decimals, and gauges as read (sar(1), sadf(1)). sar has no
separate reads and writes of a disk, no softirqs by kind, and no processes.
"""

from __future__ import annotations

import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadprint.importing.imported import Entity
from loadprint.reading.declared import DECLARED

USER_HZ = 100.0  # unit of the rebuilt counters; sar prints only shares of time
PRINTED = 0.01  # sadf prints two decimals

LIMIT = 1e13  # per second, of any unit of sadf: a printed value above it is an underflow of sysstat
CPU_LIMIT = 101.0  # % of a CPU's time, of one state and of all together

Form = tuple[list[str], float]  # keys to add, and the factor
Seen = dict[Entity, dict[str, float]]


@dataclass(frozen=True)
class Section:
    """A section of sar_names.toml: objects of an interval, and the forms of each column."""

    table: str
    paths: list[str]
    entity: str
    rows: Entity
    columns: Mapping[str, list[Form]]


def _section(entry: Mapping[str, Any]) -> Section:
    return Section(
        entry["table"],
        [path.strip() for path in entry["at"].split("|")],
        entry.get("entity", ""),
        tuple(entry.get("rows", ())),
        {column: [_form(form) for form in forms.split("|")] for column, forms in entry["columns"].items()},
    )


def _form(text: str) -> Form:
    keys, _, factor = text.strip().partition("*")
    return keys.split("+"), float(factor or 1)


SECTIONS = [
    _section(entry)
    for entry in tomllib.loads(Path(__file__).with_name("sar_names.toml").read_text("utf-8"))["section"]
]
# in % of a CPU's time
SHARES = next(section.columns.keys() for section in SECTIONS if section.table == "cpu" and section.entity)
METRICS = frozenset(name for name, table in DECLARED.items() if table.shape == "metrics")


class Integral:
    """Rebuilds one table's counters from rates; every entity starts at zero where it first appears.

    Where a rate is missing among others of its entity, the counter has no reading and grows by its mean so
    far, so that the mean over any window is that of the known intervals.
    """

    def __init__(self, table: str) -> None:
        self.gauges = ("value",) if table == "memory" else DECLARED[table].of_kind("gauge", "1")
        self.rows: dict[tuple[Entity, int], dict[str, float]] = {}
        self.totals: dict[Entity, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        self.seconds: dict[Entity, dict[str, float]] = defaultdict(lambda: defaultdict(float))

    def add(self, begin: int, end: int, seconds: float, seen: Seen) -> None:
        """Add the interval from tick `begin` to tick `end`: each counter grows by rate × `seconds`."""
        for entity, readings in seen.items():
            totals = self.totals[entity]
            counters = [column for column in readings if column not in self.gauges]
            lasted = self.seconds[entity]
            # a new entity, or one that is back after a gap, has no row at the begin
            row = self.rows.setdefault((entity, begin), {column: totals[column] for column in counters})
            # nor has a column whose rates in the intervals before were odd
            row.update({column: 0.0 for column in counters if column not in lasted})
            for column in totals.keys() - readings.keys():
                totals[column] *= 1 + seconds / lasted[column]
                lasted[column] += seconds
            for column in counters:
                totals[column] += readings[column] * seconds
                lasted[column] += seconds
            self.rows[entity, end] = {**readings, **{column: totals[column] for column in counters}}


def tables(interval: Mapping[str, Any], odd: Counter[str] | None = None) -> dict[str, Seen]:
    """All readings of one interval by table: rates of counters, and gauges at its end.

    `odd` counts by key what is left out: values that are no rates, and objects that differ under one name.
    """
    odd = Counter() if odd is None else odd
    seen: dict[str, Seen] = {"interrupts": _interrupts(interval, odd)}
    for section in SECTIONS:
        rows = seen.setdefault(section.table, {})
        for name, one in _named(_at(interval, section.paths), section.entity, odd).items():
            rates = _rates(one, section, odd)
            if section.table in METRICS:
                for metric, forms in section.columns.items():
                    if any(keys[0] in one for keys, _ in forms):
                        rows[metric,] = {"value": rates[metric]} if metric in rates else {}
            elif section.rows:
                if rates:
                    rows.setdefault(section.rows, {}).update(rates)
            else:
                entity = (name,)
                rows.setdefault(entity, {}).update(rates)
                waited, transfers = _number(one, "await", odd), _number(one, "tps", odd)
                if section.table == "disk" and waited is not None and transfers is not None:
                    # requests waited this long per second: their mean wait × their number
                    rows[entity]["transfer_ms"] = waited * transfers
    seen["cpu"] = _ticks(seen["cpu"], odd)
    if total := seen["interrupts"].get(("all", "all")):
        seen["cpu"].setdefault(("all",), {})["intr"] = total["count"]
    return {name: rows for name, rows in seen.items() if rows}


def resolution(table: str, column: str, cpus: int) -> float:
    """Resolution of a mean of this column, in its unit per second: sadf's last digit."""
    forms = [of.columns[column] for of in SECTIONS if of.table == table and column in of.columns]
    factor = forms[0][0][1] if forms else 1.0
    return PRINTED * factor * (USER_HZ / 100 * cpus if table == "cpu" and column in SHARES else 1.0)


def _ticks(rows: Seen, odd: Counter[str]) -> Seen:
    """The rows of CPUs with ticks in place of shares.

    sadf prints only zeros for an offline CPU, and for all of them where a counter went back (sysstat #157).
    `odd` counts the latter, and states that add up to more than a CPU's time: neither is a reading.
    """
    shares = {entity: {name: row[name] for name in SHARES & row.keys()} for entity, row in rows.items()}
    online = {entity for entity, row in shares.items() if any(row.values())}
    cores = len(online - {("all",)}) or 1
    made: Seen = {}
    for entity, row in rows.items():
        of_host = {name: value for name, value in row.items() if name not in SHARES}
        ticks = USER_HZ / 100 * (cores if entity == ("all",) else 1)
        # the time of guests is also in `user` and `nice`
        total = sum(share for name, share in shares[entity].items() if not name.startswith("guest"))
        offline = entity not in online
        impossible = total > CPU_LIMIT or (offline and entity == ("all",) and shares[entity])
        if impossible:
            odd[f"cpu {entity[0]}"] += 1
        of_cpu = (
            {} if offline or impossible else {name: share * ticks for name, share in shares[entity].items()}
        )
        if of_cpu or of_host or impossible:
            made[entity] = of_cpu | of_host
    return made


def _interrupts(interval: Mapping[str, Any], odd: Counter[str]) -> Seen:
    """Rows (line, all) and (all, CPU), as the recorder writes."""
    seen: Seen = {}
    for name, one in _named(_at(interval, ["interrupts"]), "intr", odd).items():
        line = "all" if name == "sum" else name
        for key in one:
            cpus = "all" if key in ("all", "value") else key.removeprefix("CPU")
            wanted = key.startswith("CPU") and line == "all"
            if (wanted or cpus == "all") and (count := _number(one, key, odd)) is not None:
                seen[line, cpus] = {"count": count}
    return seen


def _rates(values: Mapping[str, Any], section: Section, odd: Counter[str]) -> dict[str, float]:
    """Readings by column, of the first form whose first key is there."""
    rates = {}
    for column, forms in section.columns.items():
        keys, factor = next((form for form in forms if form[0][0] in values), forms[0])
        limit = CPU_LIMIT if section.table == "cpu" and column in SHARES else LIMIT
        parts = [_number(values, key, odd, limit) for key in keys if key in values]
        if parts and None not in parts and keys[0] in values:
            rates[column] = sum(part for part in parts if part is not None) * factor
    return rates


def _number(values: Mapping[str, Any], key: str, odd: Counter[str], limit: float = LIMIT) -> float | None:
    """A value that is a possible rate; None if there is none, or another value, which is counted."""
    value = values.get(key)
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < limit:
        return float(value)
    if value is not None:
        odd[key] += 1
    return None


def _named(items: Iterable[Mapping[str, Any]], key: str, odd: Counter[str]) -> dict[str, Mapping[str, Any]]:
    """The objects of an interval by the name under `key`; an empty one for a name whose objects differ."""
    named: dict[str, Mapping[str, Any]] = {}
    for one in items:
        if not key or key in one:
            name = str(one.get(key, ""))
            if named.setdefault(name, one) not in (one, {}):
                named[name] = {}
                odd[f"{key} {name}".strip() or "several objects"] += 1
    return named


def _at(interval: Mapping[str, Any], paths: Iterable[str]) -> list[Mapping[str, Any]]:
    """The objects at the first of these paths that is there: of a list, or the only one."""
    for path in paths:
        value: Any = interval
        for name in path.split("/"):
            value = value.get(name) if isinstance(value, dict) else None
        objects: list[Mapping[str, Any]] = [
            one for one in (value if isinstance(value, list) else [value]) if isinstance(one, dict)
        ]
        if objects:
            return objects
    return []
