"""Whether the sides may be compared at all: what differs between hosts, servers, data and generators.

Facts come from fingerprint.json, server.json, result.json and the campaign's plan, by meaning where the name
would mislead (effective.py, meanings.py). A difference that no rule calls harmless is material; one that the
campaign asked for is neither. What one side did not record is no difference, and is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loadprint.judging.facts import Fact, asked_for, facts_of
from loadprint.judging.facts_host import BOOT_WORD, BOOTED
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
NOT_TOLD = "not told"
Told = list[list[dict[tuple[str, str], Fact]]]


@dataclass(frozen=True)
class Difference:
    """One fact that is not the same everywhere; `values` are per side, each distinct value once.

    `decides`: sides that differ in it do not do the same work. `asked`: the campaign wants it so.
    """

    group: str
    name: str
    values: tuple[str, ...]
    material: bool
    decides: bool = False
    asked: bool = False

    def told(self) -> str:
        """Name and values, as one text."""
        return f"{self.name} {' | '.join(_short(value) for value in self.values)}"


@dataclass(frozen=True)
class Setting:
    """One fact with its value on each side; `kind` is `material`, `varied`, `harmless` or `same`."""

    group: str
    name: str
    values: tuple[str, ...]
    kind: str


@dataclass(frozen=True)
class Comparability:
    """`answer` is `yes`, `with reserve`, `no` or `cannot tell`; `reason` says why it is not `yes`."""

    answer: str
    reason: str
    differences: tuple[Difference, ...]
    unknown: tuple[str, ...]

    @property
    def material(self) -> tuple[Difference, ...]:
        """Differences that no campaign asked for and no rule calls harmless."""
        return tuple(each for each in self.differences if each.material and not each.asked)

    @property
    def asked(self) -> tuple[Difference, ...]:
        """Differences that the campaign is about."""
        return tuple(each for each in self.differences if each.asked)

    @property
    def harmless(self) -> tuple[Difference, ...]:
        """Differences between any two instances of one configuration."""
        return tuple(each for each in self.differences if not each.material and not each.asked)


def judge(sides: Sequence[Side], measured: Sequence[Sequence[Measured]]) -> Comparability:
    """Say whether the sides may be compared, and list what differs: deciding, material, asked, harmless."""
    found = differences(sides, measured)
    unknown = tuple(_unrecorded(sides, measured))
    own = [each for each in found if each.material and not each.asked]
    deciding = [each for each in own if each.decides]
    if deciding:
        reason = "; ".join(f"{each.group}: {each.told()}" for each in deciding)
        return Comparability("no", reason, found, unknown)
    if own:
        count = f"{len(own)} material difference{'s' if len(own) > 1 else ''}"
        groups = ", ".join(dict.fromkeys(each.group for each in own))
        return Comparability("with reserve", f"{count} ({groups})", found, unknown)
    if unknown:
        return Comparability("cannot tell", "; ".join(unknown), found, unknown)
    apart = "apart from what the campaign varies" if any(each.asked for each in found) else ""
    return Comparability("yes", apart, found, unknown)


def differences(sides: Sequence[Side], measured: Sequence[Sequence[Measured]]) -> tuple[Difference, ...]:
    """Facts whose values differ between sides or between the repeats of one, in the order of GROUPS."""
    told, wanted = _told(sides, measured), asked_for([_plan(side) for side in sides])
    found = [each for key in _keys(told) if (each := _difference(key, told, wanted)) is not None]
    found += _of_one_side(told)
    return tuple(sorted(found, key=lambda each: (not each.material, GROUPS.index(each.group), each.name)))


def settings(sides: Sequence[Side], measured: Sequence[Sequence[Measured]]) -> tuple[Setting, ...]:
    """Every fact of any side, with what a difference in it means; in the order of GROUPS."""
    told = _told(sides, measured)
    differing = {(each.group, each.name): each for each in differences(sides, measured)}
    found = []
    for key in _keys(told):
        values = tuple(
            " / ".join(sorted({run[key].value if key in run else NOT_TOLD for run in runs})) for runs in told
        )
        each = differing.get(key)
        kind = "same" if each is None else "varied" if each.asked else "material"
        kind = "harmless" if each is not None and kind == "material" and not each.material else kind
        found.append(Setting(*key, values, kind))
    return tuple(sorted(found, key=lambda each: (GROUPS.index(each.group), each.name)))


def _told(sides: Sequence[Side], measured: Sequence[Sequence[Measured]]) -> Told:
    """Facts of every run by key; a word that only some kernels were booted with is absent on the others."""
    told = [
        [{fact.key: fact for fact in facts_of(run, _plan(side))} for run in runs]
        for side, runs in zip(sides, measured, strict=True)
    ]
    words = [key for key in _keys(told) if key[1].startswith(BOOT_WORD)]
    for run in (run for runs in told for run in runs):
        if BOOTED in run:
            for key in words:
                run.setdefault(key, Fact(*key, "absent"))
    return told


def _keys(told: Told) -> dict[tuple[str, str], None]:
    return dict.fromkeys(key for runs in told for run in runs for key in run)


def _of_one_side(told: Told) -> list[Difference]:
    """How many server variables only some sides have: another version, or another flavour."""
    names = [{name for run in runs for group, name in run if group == "server settings"} for runs in told]
    if not all(names):
        return []
    common = set.intersection(*names)
    counts = tuple(str(len(each - common)) for each in names)
    if not any(each - common for each in names):
        return []
    return [Difference("server settings", "variables that not all have", counts, material=False)]


def _plan(side: Side) -> dict[str, object]:
    """What the campaign planned for a side, with the size of its data set."""
    execution = side.execution or {}
    plan = dict((execution.get("sides") or {}).get(side.name) or {})
    data = ((execution.get("campaign") or {}).get("data") or {}).get(plan.get("data")) or {}
    return {**plan, "data_bytes": data.get("size")} if plan else {}


def _difference(key: tuple[str, str], told: Told, wanted: set[str]) -> Difference | None:
    """Return the difference in one fact; None where all agree, or a run does not tell it."""
    facts = [[run.get(key) for run in runs] for runs in told]
    if any(fact is None for runs in facts for fact in runs):
        return None
    known = [[fact for fact in runs if fact is not None] for runs in facts]
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
    moved = {name for fact in everyone for name in fact.inputs if _moves(name, everyone)}
    asked = bool(moved) and moved <= wanted
    return Difference(
        first.group, first.name, texts, any(fact.material for fact in everyone), first.decides, asked
    )


def _moves(name: str, facts: Sequence[Fact]) -> bool:
    """Whether an input of a fact has different values; one that is only named counts as moving."""
    values = {fact.raw[name] for fact in facts if name in fact.raw}
    return len(values) != 1


def _unrecorded(sides: Sequence[Side], measured: Sequence[Sequence[Measured]]) -> list[str]:
    """What no fact is known of, by side: host or server."""
    told = []
    for side, runs in zip(sides, measured, strict=True):
        lacking = []
        if any(not run.run.fingerprints for run in runs):
            lacking.append("host")
        if any(not run.run.server for run in runs):
            lacking.append("server")
        if lacking:
            told.append(f"{side.name} has no record of its {' and '.join(lacking)}")
    return told


def _short(value: str) -> str:
    return value if len(value) <= 60 else value[:57] + "…"
