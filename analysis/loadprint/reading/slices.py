"""Reads slices.jsonl: whose turn it was, of sides that alternate."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from loadprint.errors import InputError
from loadprint.reading.bounds import COPY_AGAIN
from loadprint.reading.documents import read_lines
from loadprint.reading.strict_json import LARGEST_INTEGER

SLICES = "slices.jsonl"


class Slice(BaseModel):
    """The time of one side, CLOCK_MONOTONIC of its host in ns; a guard until `measured_from_ns`.

    `in_event`: None if the generator does not know it, or is on another host; `probed`: whether the gate of
    the scheduler's programs was open.
    """

    model_config = ConfigDict(strict=True, frozen=True)
    round: int = Field(ge=0)
    position: int = Field(ge=0)
    side: str = Field(min_length=1)
    begin_ns: int = Field(ge=0, le=LARGEST_INTEGER)
    measured_from_ns: int = Field(ge=0, le=LARGEST_INTEGER)
    end_ns: int = Field(ge=0, le=LARGEST_INTEGER)
    fixed_work_ns: int | None = Field(None, ge=0)
    in_event: int | None = Field(0, ge=0)
    probed: bool = True


def read_slices(path: Path, problems: list[str]) -> tuple[Slice, ...]:
    """The slices of a run by time; empty without the file.

    A last line that a crash cut off is dropped and reported. Raises InputError for any other mistake.
    """
    turns: list[tuple[Slice, int]] = []
    for number, turn in read_lines(path, Slice, "a slice", problems):
        if turn.end_ns < turn.begin_ns:
            raise InputError(f"{path} line {number}", "ends before it begins", COPY_AGAIN)
        if not turn.begin_ns <= turn.measured_from_ns <= turn.end_ns:
            raise InputError(f"{path} line {number}", "is measured from outside of it", COPY_AGAIN)
        turns.append((turn, number))
    turns.sort(key=lambda pair: pair[0].begin_ns)
    for (before, first), (after, second) in pairwise(turns):
        if after.begin_ns < before.end_ns:
            place = f"{path} line {max(first, second)}"
            raise InputError(place, f"overlaps line {min(first, second)}", COPY_AGAIN)
    return tuple(turn for turn, _ in turns)
