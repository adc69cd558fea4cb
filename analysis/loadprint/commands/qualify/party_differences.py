"""Sorts the differences between the parties: hardware, work, and configuration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch

from loadprint.commands.qualify.measure import Sheet
from loadprint.commands.qualify.parties import Part
from loadprint.judging.comparability import Difference, differences
from loadprint.judging.facts_host import RULES, any_of
from loadprint.reading.recording import Run

Differing = tuple[str, str, str]
WORK = ("load generator", "data")
BOUGHT = ("hardware", "placement")
derived_from_hardware = any_of(RULES["derived_from_hardware"])
# options of recordings of older generators, with the values that mean what every generator does without them
REMOVED_OPTIONS = (("multiplex", False), ("workers", None))


@dataclass(frozen=True)
class Configuration:
    """Material differences as (name, baseline, candidate); those of `invalidating` allow no verdict."""

    hardware: tuple[Differing, ...]
    work: tuple[Differing, ...]
    accepted: tuple[Differing, ...]
    invalidating: tuple[Differing, ...]


def configuration(sheet: Sheet, accept: Sequence[str]) -> Configuration:
    """Sort the differences between the parties of a cell; `accept` contains patterns of names."""
    both = (sheet.baseline, sheet.candidate)
    between = differences([side.part for side in both], [side.runs for side in both])
    kinds: dict[str, list[Differing]] = {"hardware": [], "work": [], "accepted": [], "invalidating": []}
    for difference in between:
        if difference.material and not difference.asked:
            kind = "work" if difference.group in WORK else "invalidating"
            if _is_hardware(difference):
                kind = "hardware"
            elif any(fnmatch(difference.name, pattern) for pattern in accept):
                kind = "accepted"
            kinds[kind].append((difference.name, difference.values[0], difference.values[1]))
    kinds["work"] = _other_work([side.part for side in both]) or kinds["work"]
    return Configuration(**{kind: tuple(differing) for kind, differing in kinds.items()})


def _other_work(parts: Sequence[Part]) -> list[Differing]:
    """Return differences in the work between the parties, or between the runs of one party."""
    sides = [[_work(run, part) for run in part.runs] for part in parts]
    names = dict.fromkeys(name for side in sides for work in side for name in work)
    differing = []
    for name in names:
        values = [sorted({work.get(name, "absent") for work in side}) for side in sides]
        if values[0] != values[1] or len(values[0]) > 1:
            differing.append((name, " / ".join(values[0]), " / ".join(values[1])))
    return differing


def _work(run: Run, part: Part) -> dict[str, str]:
    """Return workload, threads, options and operation of a run, as text."""
    result, meta = run.result, run.meta
    work = {
        "workload": run.workload,
        "threads": result.threads,
        "operation": result.operation or meta.operation,
        "generator": meta.generator,
        "share of the maximum": part.fraction,
        **{
            f"option {name}": value
            for name, value in meta.parameters.items()
            if (name, value) not in REMOVED_OPTIONS
        },
    }
    return {name: str(value) for name, value in work.items()}


def _is_hardware(difference: Difference) -> bool:
    """Whether a difference is one of hardware. Mitigations are, unless only one side is vulnerable."""
    name = difference.name.rpartition(": ")[2]
    if name.startswith("mitigations."):
        return len({"vulnerable" in value.lower() for value in difference.values}) == 1
    return difference.group in BOUGHT or derived_from_hardware(name)
