"""Reads the segments of a run's measured time: slices of sides that take turns, windows of an A/B experiment.

A run whose side had all of the measure phase has no such file, and one segment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from loadprint.errors import InputError
from loadprint.reading import bounds, documents
from loadprint.reading.bounds import COPY_AGAIN
from loadprint.reading.recording import LOAD, Run
from loadprint.reading.stamps import BASELINE, TREATMENT

SLICES = "slices.jsonl"


class Slice(BaseModel):
    """The time of one side, CLOCK_MONOTONIC of the server's host in ns; a guard until `measured_from_ns`."""

    model_config = ConfigDict(strict=True, frozen=True)
    round: int = Field(ge=0)
    position: int = Field(ge=0)
    side: str = Field(min_length=1)
    begin_ns: int = Field(ge=0, le=documents.LARGEST_INTEGER)
    measured_from_ns: int = Field(ge=0, le=documents.LARGEST_INTEGER)
    end_ns: int = Field(ge=0, le=documents.LARGEST_INTEGER)


@dataclass(frozen=True)
class WindowSpan:
    """A window of an A/B experiment, CLOCK_MONOTONIC of the server's host in ns."""

    number: int
    block: int
    variant: str
    begin_ns: int
    end_ns: int
    fixed_work_ns: int | None = None


def sides_in(run: Run) -> Mapping[str, tuple[Run, ...]]:
    """The sides that took turns in a run, each with its replicates; empty if there was one.

    A replicate is a run with the segments of one side: all slices, or the windows of a complete block of an
    A/B experiment. Raises InputError with the line of the first mistake.
    """
    problems = list(run.problems)
    slices = read_slices(run.path / SLICES, problems)
    if slices:
        run = replace(run, problems=tuple(problems))
        names = dict.fromkeys(each.side for each in slices)
        spans = {
            name: tuple((each.measured_from_ns, each.end_ns) for each in slices if each.side == name)
            for name in names
        }
        return {name: (replace(run, segments=spans[name]),) for name in names}
    windows = list(windows_of(run)) if run.meta.get("generator") == "ab" else []
    return {
        variant: tuple(_of_blocks(run, variant, windows))
        for variant in (BASELINE, TREATMENT)
        if any(each.variant == variant for each in windows)
    }


def _of_blocks(run: Run, variant: str, windows: list[WindowSpan]) -> Iterator[Run]:
    """One run for each block with as many windows as the largest one."""
    blocks = sorted({each.block for each in windows})
    sizes = {block: sum(each.block == block for each in windows) for block in blocks}
    for block in blocks:
        spans = tuple(
            (each.begin_ns, each.end_ns)
            for each in windows
            if each.block == block and each.variant == variant
        )
        if spans and sizes[block] == max(sizes.values()):
            named = {"id": f"{run.id} block {block}", "side": variant, "block": block, "repeat": block}
            yield replace(run, meta=run.meta | named, segments=spans)


def read_slices(path: Path, problems: list[str]) -> tuple[Slice, ...]:
    """The slices of a run by time; empty without the file.

    A last line that a crash cut off is dropped and reported. Raises InputError for any other mistake.
    """
    found: list[tuple[Slice, int]] = []
    for number, is_last, line in bounds.lines(path):
        try:
            found.append((Slice.model_validate(documents.loads(line)), number))
        except (ValueError, ValidationError) as error:
            if is_last:
                problems.append(f"{path.name}: last line {number} is cut off")
                break
            raise InputError(f"{path} line {number}", "is not a slice", COPY_AGAIN) from error
        each = found[-1][0]
        if each.end_ns < each.begin_ns:
            raise InputError(f"{path} line {number}", "ends before it begins", COPY_AGAIN)
        if not each.begin_ns <= each.measured_from_ns <= each.end_ns:
            raise InputError(f"{path} line {number}", "is measured from outside of it", COPY_AGAIN)
    found.sort(key=lambda pair: pair[0].begin_ns)
    for (before, first), (after, second) in pairwise(found):
        if after.begin_ns < before.end_ns:
            place = f"{path} line {max(first, second)}"
            raise InputError(place, f"overlaps line {min(first, second)}", COPY_AGAIN)
    return tuple(each for each, _ in found)


def windows_of(run: Run) -> Iterator[WindowSpan]:
    """The complete windows of an A/B experiment, in order. Raises InputError if a line is not a stamp."""
    path, begin_ns = run.path / LOAD / "phases.jsonl", dict[int, int]()
    for number, is_last, line in bounds.lines(path):
        try:
            stamp: dict[str, Any] = documents.loads(line)
            name, event, when = stamp["phase"], stamp["event"], int(stamp["monotonic_ns"])
            if abs(when) > documents.LARGEST_INTEGER:
                raise ValueError(line)
            if name not in (TREATMENT, BASELINE):
                continue
            key = int(stamp["window"])
            if event == "begin":
                begin_ns[key] = when
            elif key in begin_ns and not stamp.get("broken_off"):
                work = stamp.get("fixed_work_ns")
                work = None if work is None else int(work)
                if work is not None and not 0 < work <= documents.LARGEST_INTEGER:
                    raise ValueError(line)
                yield WindowSpan(key, int(stamp["block"]), name, begin_ns[key], when, work)
        except (ValueError, KeyError, TypeError) as error:
            if is_last:  # cut off by a crash
                return
            raise InputError(f"{path} line {number}", "is not a phase stamp", COPY_AGAIN) from error
