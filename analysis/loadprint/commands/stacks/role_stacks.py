"""Reads the sampled stacks of one role within a run's window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from loadprint.errors import InputError
from loadprint.metrics.profile import read_profile
from loadprint.metrics.quantities import Quantities
from loadprint.metrics.rates import Source
from loadprint.reading.bounds import STACK_FRAMES
from loadprint.reading.call_tree import CallTree
from loadprint.reading.queries import Store
from loadprint.reading.recording import open_run, require_intact
from loadprint.reading.window import measure_window

FIX = "record with the probe profile, which needs root, or CAP_BPF and CAP_PERFMON"


@dataclass(frozen=True)
class RoleStacks:
    """Samples of a role by node of the call tree; `path` is the run, `title` names it and the role.

    `cycles` is what the samples of hardware cycles stand for, None of the CPU clock.
    """

    path: Path
    title: str
    tree: CallTree
    samples: Mapping[int, int]
    cycles: Mapping[int, int] | None
    seconds: float


def read(path: Path, role: str) -> RoleStacks:
    """Stacks of a role. Raises InputError if the run has none."""
    run = open_run(path)
    require_intact(run)
    if not run.roles:
        raise InputError(path, "contains no recorder's tables", FIX)
    store = Store()
    window = measure_window(run, run.roles[0], store)
    profile = read_profile(Source(run, window, store, Quantities()))
    if profile is None:
        raise InputError(path, window.why_missing("profile"), FIX)
    samples = profile.counts.get(role)
    if not samples:
        roles = ", ".join(sorted(profile.samples)) or "none"
        hint = f"choose one with --role; roles with samples: {roles}"
        raise InputError(path, f"no samples of role `{role}` in the window", hint)
    cycles = _rounded(profile.cycles[role]) if role in profile.cycles else None
    frames = sum(profile.tree.depths[node] for node in samples)
    if frames > STACK_FRAMES:
        what = f"its stacks have {frames:,} frames, more than the limit of {STACK_FRAMES:,}"
        raise InputError(path, what, "record for less time")
    return RoleStacks(path, f"{run.id} {role}", profile.tree, _rounded(samples), cycles, window.seconds)


def _rounded(values: Mapping[int, float]) -> dict[int, int]:
    return {node: round(value) for node, value in values.items()}
