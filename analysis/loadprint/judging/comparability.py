"""Checks the comparability of sides: differences between hosts, servers, data and generators.

Facts come from fingerprint.json, server.json, result.json and the campaign's plan, compared by meaning where
names mislead (effective.py, facts.toml). A difference is material unless a rule makes it harmless or the
campaign varies it. A material fact that only some runs recorded is unknown: neither equal nor a difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loadprint import numbers
from loadprint.judging.facts import asked_for, facts_of
from loadprint.judging.facts_host import BOOT_WORD, BOOTED, SETTINGS, expected_facts
from loadprint.judging.findings import Fact
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
HOST_GROUPS = ("hardware", "kernel", SETTINGS)
SERVER_GROUPS = ("server version", "durability", "memory", "server settings")
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
    """`answer` is `yes`, `with reserve`, `no` or `unknown`; `reason` explains it."""

    answer: str
    reason: str
    differences: tuple[Difference, ...]
    unknown: tuple[str, ...]

    @property
    def material(self) -> tuple[Difference, ...]:
        """Differences that the campaign does not vary and no rule makes harmless."""
        return tuple(fact for fact in self.differences if fact.material and not fact.asked)

    @property
    def asked(self) -> tuple[Difference, ...]:
        """Differences that the campaign varies."""
        return tuple(fact for fact in self.differences if fact.asked)

    @property
    def harmless(self) -> tuple[Difference, ...]:
        """Differences that occur between any two instances of one configuration."""
        return tuple(fact for fact in self.differences if not fact.material and not fact.asked)


def judge(sides: Sequence[Side], measured: Sequence[Sequence[Measured]]) -> Comparability:
    """Return whether the sides are comparable, with all differences: deciding, material, asked, harmless."""
    differing = differences(sides, measured)
    lacking = _unrecorded(sides, measured)
    facts, wanted = _facts(sides, measured), _wanted(sides)
    partly = _recorded_in_part(sides, measured, facts, wanted)
    unknown = (*lacking, *partly, *_recorded_nowhere(sides, measured, facts))
    material = [fact for fact in differing if fact.material and not fact.asked]
    deciding = [fact for fact in material if fact.decides]
    if deciding:
        reason = "; ".join(f"{fact.group}: {fact.summary()}" for fact in deciding)
        return Comparability("no", reason, differing, unknown)
    if material:
        count = f"{len(material)} material difference{'s' if len(material) > 1 else ''}"
        groups = ", ".join(dict.fromkeys(fact.group for fact in material))
        return Comparability("with reserve", f"{count} ({groups})", differing, unknown)
    if lacking or partly:
        return Comparability("unknown", "; ".join([*lacking, *partly]), differing, unknown)
    apart = "no material difference in the configuration"
    apart += " apart from what the campaign varies" if any(fact.asked for fact in differing) else ""
    return Comparability("yes", apart, differing, unknown)


def differences(sides: Sequence[Side], measured: Sequence[Sequence[Measured]]) -> tuple[Difference, ...]:
    """Facts whose values differ between sides or between the repeats of one, in the order of GROUPS."""
    facts, wanted = _facts(sides, measured), _wanted(sides)
    differing = [fact for key in _keys(facts) if (fact := _difference(key, facts, wanted)) is not None]
    differing += _of_one_side(facts)
    return tuple(sorted(differing, key=lambda fact: (not fact.material, GROUPS.index(fact.group), fact.name)))


def _wanted(sides: Sequence[Side]) -> set[str]:
    """Settings that the campaign varies between the sides; between executions nothing varies on purpose."""
    is_one = all(side.execution == sides[0].execution for side in sides)
    return asked_for([side.plan for side in sides]) if is_one else set()


def settings(sides: Sequence[Side], measured: Sequence[Sequence[Measured]]) -> tuple[Setting, ...]:
    """Every fact of any side, with the kind of its difference; in the order of GROUPS."""
    facts = _facts(sides, measured)
    differing = {(fact.group, fact.name): fact for fact in differences(sides, measured)}
    settings = []
    for key in _keys(facts):
        values = tuple(
            " / ".join(sorted({run[key].value if key in run else NOT_RECORDED for run in runs}))
            for runs in facts
        )
        recorded = all(key in run for runs in facts for run in runs)
        fact = differing.get(key)
        same = "same" if recorded else "unknown"
        kind = same if fact is None else "varied" if fact.asked else "material"
        kind = "harmless" if fact is not None and kind == "material" and not fact.material else kind
        settings.append(Setting(*key, values, kind))
    return tuple(sorted(settings, key=lambda fact: (GROUPS.index(fact.group), fact.name)))


def _facts(sides: Sequence[Side], measured: Sequence[Sequence[Measured]]) -> Facts:
    """Facts of every run by key; a boot word that only some kernels have is `absent` on the others."""
    facts = [
        [{fact.key: fact for fact in facts_of(run, side.plan)} for run in runs]
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
    counts = [len(words - common) for words in names]
    if not all(names) or not any(counts):
        return []
    values = tuple(map(str, counts))
    return [Difference("server settings", "variables that not all sides have", values, material=False)]


def _difference(key: tuple[str, str], facts: Facts, wanted: set[str]) -> Difference | None:
    """Return the difference in one fact; None if all runs agree, or if one did not record it."""
    by_side = [[run.get(key) for run in runs] for runs in facts]
    if any(fact is None for runs in by_side for fact in runs):
        return None
    recorded = [[fact for fact in runs if fact is not None] for runs in by_side]
    texts = tuple(" / ".join(sorted({fact.value for fact in runs})) for runs in recorded)
    everyone = [fact for runs in recorded for fact in runs]
    if len({(fact.value, fact.meaning) for fact in everyone}) == 1:
        return None
    if len(set(texts)) == 1 and len({fact.meaning for fact in everyone}) > 1:
        texts = tuple(
            f"{text} ({' / '.join(dict.fromkeys(fact.meaning for fact in runs))})"
            for text, runs in zip(texts, recorded, strict=True)
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
    """The sides that did not record their host, their server, or the offset between their hosts' clocks.

    Sides that took turns in one run have one host and one server.
    """
    texts, is_one = [], len({run.run.path for runs in measured for run in runs}) == 1
    for side, runs in zip(sides, measured, strict=True):
        lacking = []
        if any(not run.run.fingerprints for run in runs) and not is_one:
            lacking.append("host")
        if any(not run.run.server for run in runs) and not is_one:
            lacking.append("server")
        if lacking:
            texts.append(f"{side.name} has no record of its {' and '.join(lacking)}")
        if any(run.clocks.offset and not run.clocks.offset.measured for run in runs):
            texts.append(f"{side.name} has no record of the offset between its hosts' clocks")
    return texts


def _recorded_in_part(
    sides: Sequence[Side], measured: Sequence[Sequence[Measured]], facts: Facts, wanted: set[str]
) -> list[str]:
    """Material facts that some runs recorded and others lack, apart from those that the campaign varies.

    A fact counts only between runs of one `_kind`: servers of other releases have other variables.
    """
    kinds: dict[tuple[str, str], set[object]] = {}
    for runs, of_side in zip(measured, facts, strict=True):
        for run, own in zip(runs, of_side, strict=True):
            for key, fact in own.items():
                varied = bool(fact.inputs) and wanted.issuperset(fact.inputs)
                if fact.material and not fact.optional and not varied:
                    kinds.setdefault(key, set()).add(_kind(key, run, own))
    names = [
        [
            {
                key[1]
                for key, of in kinds.items()
                if key not in own and _has_record(key[0], run) and _kind(key, run, own) in of
            }
            for run, own in zip(runs, of_side, strict=True)
        ]
        for runs, of_side in zip(measured, facts, strict=True)
    ]
    return _unknown(sides, names)


def _kind(key: tuple[str, str], run: Measured, facts: dict[tuple[str, str], Fact]) -> object:
    """What decides whether a run has a fact at all, if it is recorded as a fact itself."""
    group, name = key
    generator = _value(facts, ("load generator", "generator"))
    if group == "server settings":
        return _value(facts, ("server version", "version"))
    if group == SETTINGS:
        kernels = [own for own in facts if own[0] == "kernel" and own[1].endswith(("kernel", "release"))]
        return tuple((own, _value(facts, own)) for own in kernels)
    if group == "data":
        return run.run.result.workload, generator
    return generator if group == "load generator" and name != "generator" else None


def _value(facts: dict[tuple[str, str], Fact], key: tuple[str, str]) -> str | None:
    return facts[key].value if key in facts else None


def _has_record(group: str, run: Measured) -> bool:
    """Whether the file with a group's facts was recorded; `_unrecorded` names those that were not."""
    if group in HOST_GROUPS:
        return bool(run.run.fingerprints)
    return bool(run.run.server) or group not in SERVER_GROUPS


def _recorded_nowhere(
    sides: Sequence[Side], measured: Sequence[Sequence[Measured]], facts: Facts
) -> list[str]:
    """Facts that every host has and that no run recorded."""
    of_any = {name for runs in facts for run in runs for _, name in run}
    return _unknown(sides, [[expected_facts(run.run) - of_any for run in runs] for runs in measured])


def _unknown(sides: Sequence[Side], lacking: Sequence[Sequence[set[str]]]) -> list[str]:
    """The facts that the runs of each side lack; sides that lack the same in one text."""
    sides_by_names: dict[tuple[str, ...], list[str]] = {}
    for side, runs in zip(sides, lacking, strict=True):
        if names := tuple(sorted(set().union(*runs))):
            without = sum(map(bool, runs))
            of = "" if without == len(runs) else f" ({without} of {len(runs)} runs)"
            sides_by_names.setdefault(names, []).append(side.name + of)
    return [
        f"{', '.join(of)} did not record {numbers.listed(names, MAX_LISTED)}"
        for names, of in sides_by_names.items()
    ]


def _short(value: str) -> str:
    return value if len(value) <= 60 else value[:57] + "…"
