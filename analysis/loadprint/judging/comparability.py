"""Checks the comparability of sides: differences between hosts, servers, data and generators.

Facts come from fingerprint.json, server.json, result.json and the campaign's plan, compared by meaning where
names mislead (effective.py, facts.toml). A difference is material unless a rule makes it harmless or the
campaign varies it. A fact that a side did not record is reported as unknown, not as a difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loadprint.judging.facts import Fact, asked_for, facts_of
from loadprint.judging.facts_host import BOOT_WORD, BOOTED, expected_facts, is_optional
from loadprint.metrics.gather import Measured
from loadprint.reading.sides import Side

GROUPS = (
    "hardware",
    "kernel",
    "sysctl and boot",
    "placement",
    "server version",
    "durability",
    "memory",
    "server settings",
    "data",
    "load generator",
)
NOT_RECORDED = "not recorded"
MAX_LISTED = 6  # facts that a side did not record
Facts = list[list[dict[tuple[str, str], Fact]]]


@dataclass(frozen=True)
class Difference:
    """One fact that differs; `values` are per side, each distinct value once.

    `decides`: sides that differ in it do different work. `asked`: the campaign varies it.
    """

    group: str
    name: str
    values: tuple[str, ...]
    material: bool
    decides: bool = False
    asked: bool = False

    def summary(self) -> str:
        """Name and values in one text."""
        return f"{self.name} {' | '.join(_short(value) for value in self.values)}"


@dataclass(frozen=True)
class Setting:
    """One fact with its value on each side.

    `kind` is `material`, `varied`, `harmless`, `unknown` (a run did not record it) or `same`.
    """

    group: str
    name: str
    values: tuple[str, ...]
    kind: str


@dataclass(frozen=True)
class Comparability:
    """`answer` is `yes`, `with reserve`, `no` or `inconclusive`; `reason` explains it."""

    answer: str
    reason: str
    differences: tuple[Difference, ...]
    unknown: tuple[str, ...]

    @property
    def material(self) -> tuple[Difference, ...]:
        """Differences that the campaign does not vary and no rule makes harmless."""
        return tuple(each for each in self.differences if each.material and not each.asked)

    @property
    def asked(self) -> tuple[Difference, ...]:
        """Differences that the campaign varies."""
        return tuple(each for each in self.differences if each.asked)

    @property
    def harmless(self) -> tuple[Difference, ...]:
        """Differences that occur between any two instances of one configuration."""
        return tuple(each for each in self.differences if not each.material and not each.asked)


def judge(sides: Sequence[Side], measured: Sequence[Sequence[Measured]]) -> Comparability:
    """Return whether the sides are comparable, with all differences: deciding, material, asked, harmless."""
    differing = differences(sides, measured)
    lacking = _unrecorded(sides, measured)
    unknown = (*lacking, *_unknown_facts(sides, measured))
    material = [each for each in differing if each.material and not each.asked]
    deciding = [each for each in material if each.decides]
    if deciding:
        reason = "; ".join(f"{each.group}: {each.summary()}" for each in deciding)
        return Comparability("no", reason, differing, unknown)
    if material:
        count = f"{len(material)} material difference{'s' if len(material) > 1 else ''}"
        groups = ", ".join(dict.fromkeys(each.group for each in material))
        return Comparability("with reserve", f"{count} ({groups})", differing, unknown)
    if lacking:
        return Comparability("inconclusive", "; ".join(lacking), differing, unknown)
    apart = "no material difference in the configuration"
    apart += " apart from what the campaign varies" if any(each.asked for each in differing) else ""
    return Comparability("yes", apart, differing, unknown)


def differences(sides: Sequence[Side], measured: Sequence[Sequence[Measured]]) -> tuple[Difference, ...]:
    """Facts whose values differ between sides or between the repeats of one, in the order of GROUPS."""
    facts, wanted = _facts(sides, measured), asked_for([_plan(side) for side in sides])
    differing = [each for key in _keys(facts) if (each := _difference(key, facts, wanted)) is not None]
    differing += _of_one_side(facts)
    return tuple(sorted(differing, key=lambda each: (not each.material, GROUPS.index(each.group), each.name)))


def settings(sides: Sequence[Side], measured: Sequence[Sequence[Measured]]) -> tuple[Setting, ...]:
    """Every fact of any side, with the kind of its difference; in the order of GROUPS."""
    facts = _facts(sides, measured)
    differing = {(each.group, each.name): each for each in differences(sides, measured)}
    listed = []
    for key in _keys(facts):
        values = tuple(
            " / ".join(sorted({run[key].value if key in run else NOT_RECORDED for run in runs}))
            for runs in facts
        )
        recorded = all(key in run for runs in facts for run in runs)
        each = differing.get(key)
        same = "same" if recorded else "unknown"
        kind = same if each is None else "varied" if each.asked else "material"
        kind = "harmless" if each is not None and kind == "material" and not each.material else kind
        listed.append(Setting(*key, values, kind))
    return tuple(sorted(listed, key=lambda each: (GROUPS.index(each.group), each.name)))


def _facts(sides: Sequence[Side], measured: Sequence[Sequence[Measured]]) -> Facts:
    """Facts of every run by key; a boot word that only some kernels have is `absent` on the others."""
    facts = [
        [{fact.key: fact for fact in facts_of(run, _plan(side))} for run in runs]
        for side, runs in zip(sides, measured, strict=True)
    ]
    words = [key for key in _keys(facts) if key[1].startswith(BOOT_WORD)]
    for run in (run for runs in facts for run in runs):
        if BOOTED in run:
            for key in words:
                run.setdefault(key, Fact(*key, "absent"))
    return facts


def _keys(facts: Facts) -> dict[tuple[str, str], None]:
    return dict.fromkeys(key for runs in facts for run in runs for key in run)


def _of_one_side(facts: Facts) -> list[Difference]:
    """The number of server variables that only some sides have: another version or flavour."""
    names = [{name for run in runs for group, name in run if group == "server settings"} for runs in facts]
    common = set.intersection(*names)
    counts = [len(each - common) for each in names]
    if not all(names) or not any(counts):
        return []
    values = tuple(map(str, counts))
    return [Difference("server settings", "variables that not all sides have", values, material=False)]


def _plan(side: Side) -> dict[str, object]:
    """The campaign's plan for a side, with the size of its data set."""
    execution = side.execution or {}
    plan = dict((execution.get("sides") or {}).get(side.name) or {})
    data = ((execution.get("campaign") or {}).get("data") or {}).get(plan.get("data")) or {}
    return {**plan, "data_bytes": data.get("size")} if plan else {}


def _difference(key: tuple[str, str], facts: Facts, wanted: set[str]) -> Difference | None:
    """Return the difference in one fact; None if all runs agree, or if one did not record it."""
    by_side = [[run.get(key) for run in runs] for runs in facts]
    if any(fact is None for runs in by_side for fact in runs):
        return None
    known = [[fact for fact in runs if fact is not None] for runs in by_side]
    texts = tuple(" / ".join(sorted({fact.value for fact in runs})) for runs in known)
    everyone = [fact for runs in known for fact in runs]
    if len({(fact.value, fact.meaning) for fact in everyone}) == 1:
        return None
    if len(set(texts)) == 1 and len({fact.meaning for fact in everyone}) > 1:
        texts = tuple(
            f"{text} ({' / '.join(dict.fromkeys(fact.meaning for fact in runs))})"
            for text, runs in zip(texts, known, strict=True)
        )
    if len(set(texts)) == 1:
        return None  # every side's repeats differ in the same way
    first = everyone[0]
    changed = {name for fact in everyone for name in fact.inputs if _differs(name, everyone)}
    asked = bool(changed) and changed <= wanted
    return Difference(
        first.group, first.name, texts, any(fact.material for fact in everyone), first.decides, asked
    )


def _differs(name: str, facts: Sequence[Fact]) -> bool:
    """Whether an input of a fact has different values; one without recorded values counts as different."""
    values = {fact.raw[name] for fact in facts if name in fact.raw}
    return len(values) != 1


def _unrecorded(sides: Sequence[Side], measured: Sequence[Sequence[Measured]]) -> list[str]:
    """The sides that did not record their host, their server, or the offset between their hosts' clocks."""
    texts = []
    for side, runs in zip(sides, measured, strict=True):
        lacking = []
        if any(not run.run.fingerprints for run in runs):
            lacking.append("host")
        if any(not run.run.server for run in runs):
            lacking.append("server")
        if lacking:
            texts.append(f"{side.name} has no record of its {' and '.join(lacking)}")
        if any(run.clocks.offset and not run.clocks.offset.measured for run in runs):
            texts.append(f"{side.name} has no record of the offset between its hosts' clocks")
    return texts


def _unknown_facts(sides: Sequence[Side], measured: Sequence[Sequence[Measured]]) -> list[str]:
    """Facts of hardware and kernel, expected or of another side, that a side with a host does not have."""
    facts = _facts(sides, measured)
    of_any = {
        fact.name
        for runs in facts
        for run in runs
        for fact in run.values()
        if fact.group in ("hardware", "kernel") and fact.material and not is_optional(fact.name)
    }
    lacking: dict[tuple[str, ...], list[str]] = {}
    for side, runs, known in zip(sides, measured, facts, strict=True):
        wanted = [of_any | expected_facts(run.run) if run.run.fingerprints else set() for run in runs]
        names = [name for each, run in zip(wanted, known, strict=True) for name in each - {n for _, n in run}]
        if names:
            lacking.setdefault(tuple(sorted(set(names))), []).append(side.name)
    return [f"{', '.join(of)} did not record {_listed(names)}" for names, of in lacking.items()]


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
    return ", ".join(names[:MAX_LISTED]) + more


def _short(value: str) -> str:
    return value if len(value) <= 60 else value[:57] + "…"
