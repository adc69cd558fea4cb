"""Resolves the operands of the command line to two parties, and matches their sides as cells.

A party is one or more executions of one or more hosts; sides of the same name form one part of it.
A cell is a part that both parties have: one workload at one concurrency and one kind of load.
"""

from __future__ import annotations

import glob
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from loadprint.commands.operands import fractions, named
from loadprint.commands.qualify.spec import Spec
from loadprint.errors import InputError
from loadprint.reading.run_documents import ExecutionPlan
from loadprint.reading.sides import Side, read_plan, side_of, single, split


@dataclass(frozen=True)
class Part(Side):
    """All runs of a party's side, as one side of one execution."""

    @property
    def fraction(self) -> float | None:
        """The rate of an open loop as a share of the slower side's maximum; None at saturation."""
        return self.plan.fraction

    @property
    def threads(self) -> int | None:
        """Connections of the load."""
        threads = self.runs[0].result.threads
        threads = self.plan.threads if threads is None else threads
        return None if threads is None else int(threads)


@dataclass(frozen=True)
class Party:
    """The baseline or the candidate."""

    words: tuple[str, ...]
    executions: tuple[str, ...]
    parts: dict[str, Part]
    missing: tuple[tuple[str, str], ...]


def party(words: Sequence[str], spec: Spec) -> Party:
    """Return the runs of operands. Raises InputError for unusable runs and refused profiles."""
    parts: dict[str, Part] = {}
    executions: list[str] = []
    missing: list[tuple[str, str]] = []
    for path, name in _expanded(words):
        executions.append(str(path))
        for side in _opened(path, name, spec, missing):
            part = parts.setdefault(side.name, Part(side.name, side.label, (), (), side.execution))
            parts[side.name] = replace(part, runs=part.runs + side.runs, missing=part.missing + side.missing)
    if not parts:
        reasons = "; ".join(f"{name}: {why}" for name, why in missing) or "it has no sides"
        raise InputError(" ".join(words), f"no usable side ({reasons})", "run the campaign again")
    for part in parts.values():
        _require_profile(part, spec)
    return Party(tuple(words), tuple(executions), parts, tuple(missing))


def cells(baseline: Party, candidate: Party) -> tuple[list[tuple[str, Part, Part]], list[str], list[str]]:
    """Return the cells that match by name, names of the baseline only, and names of the candidate only.

    A cell is its name, the part of the baseline and the matching part of the candidate.
    Two single sides match regardless of their names. Raises InputError if nothing matches.
    """
    old, new = baseline.parts, candidate.parts
    if len(old) == 1 and len(new) == 1:
        one, other = next(iter(old.values())), next(iter(new.values()))
        name = one.name if one.name == other.name else f"{one.name} | {other.name}"
        return [(name, one, other)], [], []
    matched = [(name, old[name], new[name]) for name in old if name in new]
    if not matched:
        raise InputError(
            " ".join(candidate.words),
            f"no side of it ({', '.join(new)}) is a side of the baseline ({', '.join(old)})",
            "name one side of each as EXECUTION:side, or run the same campaign on both",
        )
    return matched, [name for name in old if name not in new], [name for name in new if name not in old]


def _expanded(words: Sequence[str]) -> Iterator[tuple[Path, str | None]]:
    """Yield the executions or runs of operands, globs and directories of executions; each one once."""
    seen: set[tuple[Path, str | None]] = set()
    for word in words:
        operands = [word]
        if not Path(word).exists() and glob.has_magic(word):
            pattern, colon, side = word.rpartition(":")
            if not colon or "/" in side:
                pattern, side = word, ""
            operands = [f"{path}:{side}" if side else path for path in sorted(glob.glob(pattern))]
            if not operands:
                raise InputError(word, "matches nothing", "give a pattern of directories of executions")
        for operand in operands:
            path, name = split(operand)
            if not path.exists():
                raise InputError(
                    path, "no such execution or run", "give a directory that contains execution.json"
                )
            for place in _below(path):
                if (key := (place.resolve(), name)) not in seen:
                    seen.add(key)
                    yield place, name


def _below(path: Path) -> list[Path]:
    """Return the executions in a directory, or the directory itself if it is an execution or a run."""
    if (path / "execution.json").is_file() or (path / "run.json").is_file():
        return [path]
    return sorted(child.parent for child in path.glob("*/execution.json")) or [path]


def _opened(path: Path, name: str | None, spec: Spec, missing: list[tuple[str, str]]) -> Iterator[Side]:
    """Yield the sides of an execution or a run; adds unusable ones to `missing`."""
    if not (path / "execution.json").is_file():
        if name is not None:
            fix = "give EXECUTION:side or a run directory"
            raise InputError(path, "does not contain execution.json", fix)
        yield single(path)
        return
    execution = read_plan(path)
    for side in _judged(execution, spec) if name is None else named(path, execution, name):
        try:
            resolved = side_of(path, execution, side)
        except InputError as error:
            if name is not None:
                raise
            missing.append((f"{path}:{side}", error.what))
            continue
        yield resolved


def _judged(execution: ExecutionPlan, spec: Spec) -> list[str]:
    """Return the sides at saturation, and those at one rate of equal load."""
    loads, wanted = fractions(execution), spec.equal_load / 100
    kept = wanted if wanted in loads else loads[len(loads) // 2] if loads else None
    return [name for name, side in execution.sides.items() if side.fraction in (None, kept)]


def _require_profile(part: Part, spec: Spec) -> None:
    """Raise InputError for a run of a server profile that is not accepted."""
    for run in part.runs:
        profile = run.meta.profile or part.plan.server.profile
        if profile not in spec.accept_profiles:
            accepted = " or ".join(spec.accept_profiles)
            raise InputError(
                run.path,
                f"server profile is {f'`{profile}`' if profile else 'unknown'}, only {accepted} qualifies",
                "run it with an accepted profile, or add it to `accept_profiles`",
            )
