"""What is put beside what: the words of a command line as two parties, their sides as cells that match.

A party is one execution or many, of one host or many; sides of the same name are one part of it. A cell is a
part that both parties have: one workload at one concurrency and one kind of load.
"""

from __future__ import annotations

import glob
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loadprint.commands.qualify.spec import Spec
from loadprint.errors import InputError
from loadprint.reading.recording import Run, read_object
from loadprint.reading.sides import Side, side_of, sides_of, single, split


@dataclass(frozen=True)
class Part:
    """All runs of a party's side; `plan` is the side's entry in execution.json."""

    name: str
    plan: dict[str, Any]
    runs: tuple[Run, ...]
    missing: tuple[tuple[str, str], ...]
    execution: dict[str, Any] | None

    @property
    def side(self) -> Side:
        """All of it as if it were one side of one execution."""
        return Side(self.name, self.name, self.runs, self.missing, self.execution)

    @property
    def fraction(self) -> float | None:
        """Share of the slower side's maximum that an open loop was held to; None at saturation."""
        found = self.plan.get("fraction")
        return float(found) if isinstance(found, int | float) else None

    @property
    def threads(self) -> int | None:
        """Connections of the load."""
        found = (self.runs[0].result or {}).get("threads", self.plan.get("threads"))
        return found if isinstance(found, int) else None


@dataclass(frozen=True)
class Party:
    """The baseline or the candidate."""

    words: tuple[str, ...]
    executions: tuple[str, ...]
    parts: dict[str, Part]
    missing: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Cell:
    """A part of the baseline and the same of the candidate."""

    name: str
    baseline: Part
    candidate: Part


@dataclass
class _Gathered:
    sides: dict[str, list[tuple[Side, dict[str, Any]]]] = field(default_factory=dict)
    executions: list[str] = field(default_factory=list)
    missing: list[tuple[str, str]] = field(default_factory=list)


def party(words: Sequence[str], spec: Spec) -> Party:
    """Runs that some words stand for. Raises InputError where one is unusable or of a refused profile."""
    out = _Gathered()
    for path, name in _expanded(words):
        out.executions.append(str(path))
        if (path / "execution.json").is_file():
            _execution(path, name, spec, out)
        elif name is not None:
            raise InputError(path, "holds no execution.json", "give EXECUTION:side or a run directory")
        else:
            side = single(path)
            out.sides.setdefault(side.name, []).append((side, {}))
    if not out.sides:
        told = "; ".join(f"{name}: {why}" for name, why in out.missing) or "it plans none"
        raise InputError(" ".join(words), f"no side of it can be judged ({told})", "run the campaign again")
    parts = {
        name: Part(
            name,
            found[0][1],
            tuple(run for side, _ in found for run in side.runs),
            tuple(each for side, _ in found for each in side.missing),
            found[0][0].execution,
        )
        for name, found in out.sides.items()
    }
    for part in parts.values():
        _require_profile(part, spec)
    return Party(tuple(words), tuple(out.executions), parts, tuple(out.missing))


def cells(baseline: Party, candidate: Party) -> tuple[list[Cell], list[str], list[str]]:
    """Cells that match by name, names that only the baseline has, and names that only the candidate has.

    Two single sides are a cell whatever they are called. Raises InputError where nothing matches.
    """
    old, new = baseline.parts, candidate.parts
    if len(old) == 1 and len(new) == 1:
        one, other = next(iter(old.values())), next(iter(new.values()))
        name = one.name if one.name == other.name else f"{one.name} | {other.name}"
        return [Cell(name, one, other)], [], []
    found = [Cell(name, old[name], new[name]) for name in old if name in new]
    if not found:
        raise InputError(
            " ".join(candidate.words),
            f"its sides ({', '.join(new)}) are none of the baseline's ({', '.join(old)})",
            "name one of each as EXECUTION:side, or run the same campaign on both",
        )
    return found, [name for name in old if name not in new], [name for name in new if name not in old]


def _expanded(words: Sequence[str]) -> Iterator[tuple[Path, str | None]]:
    """Executions or runs of words, globs and directories that hold executions; each one once."""
    seen: set[tuple[Path, str | None]] = set()
    for word in words:
        found = [word]
        if not Path(word).exists() and glob.has_magic(word):
            pattern, colon, side = word.rpartition(":")
            if not colon or "/" in side:
                pattern, side = word, ""
            found = [f"{path}:{side}" if side else path for path in sorted(glob.glob(pattern))]
            if not found:
                raise InputError(word, "matches nothing", "quote it, and name directories of executions")
        for each in found:
            path, name = split(each)
            if not path.exists():
                raise InputError(
                    path, "no such execution or run", "give a directory that holds execution.json"
                )
            for place in _below(path):
                if (key := (place.resolve(), name)) not in seen:
                    seen.add(key)
                    yield place, name


def _below(path: Path) -> list[Path]:
    """A directory of executions stands for all of them; links such as `latest` are seen through."""
    if (path / "execution.json").is_file() or (path / "run.json").is_file():
        return [path]
    return sorted(child.parent for child in path.glob("*/execution.json")) or [path]


def _execution(path: Path, name: str | None, spec: Spec, out: _Gathered) -> None:
    execution = read_object(path / "execution.json")
    for side in _chosen(path, execution, name, spec):
        plan = execution["sides"][side] or {}
        try:
            found = side_of(path, execution, side)
        except InputError as error:
            if name is not None:
                raise
            out.missing.append((f"{path}:{side}", error.what))
            continue
        out.sides.setdefault(side, []).append((found, plan))


def _chosen(path: Path, execution: dict[str, Any], name: str | None, spec: Spec) -> list[str]:
    """Sides that are judged: those at saturation, and those at one rate of equal load."""
    known = sides_of(execution, path)
    if name is not None and not name.startswith("@"):
        if name in known:
            return [name]
        raise InputError(f"{path}:{name}", f"no side `{name}`", f"its sides are {', '.join(known)}")
    fraction = {side: (execution["sides"][side] or {}).get("fraction") for side in known}
    if name is not None:
        chosen = [side for side in known if side.endswith(name) or (name == "@max" and not fraction[side])]
        if chosen:
            return chosen
        raise InputError(f"{path}:{name}", f"no side at `{name}`", f"its sides are {', '.join(known)}")
    loads = sorted({each for each in fraction.values() if each})
    wanted = spec.equal_load / 100
    kept = wanted if wanted in loads else loads[len(loads) // 2] if loads else None
    return [side for side in known if fraction[side] in (None, kept)]


def _require_profile(part: Part, spec: Spec) -> None:
    """Raise InputError for a run whose server did not keep what it acknowledged, or may not have."""
    for run in part.runs:
        profile = run.meta.get("profile") or (part.plan.get("server") or {}).get("profile")
        if profile not in spec.accept_profiles:
            told = f"of server profile `{profile}`" if profile else "of an unknown server profile"
            only = " or ".join(spec.accept_profiles)
            raise InputError(
                run.path, f"is {told}, only {only} qualifies", "run it so, or name it under `accept_profiles`"
            )
