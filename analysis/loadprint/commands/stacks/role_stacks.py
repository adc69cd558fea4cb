"""Reads the sampled stacks of one role within a run's window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from loadprint.errors import InputError
from loadprint.metrics.quantities import Quantities
from loadprint.metrics.sources import Source
from loadprint.metrics.sources_profile import read_profile
from loadprint.reading.call_tree import CallTree
from loadprint.reading.queries import Store
from loadprint.reading.recording import open_run, require_intact
from loadprint.reading.window import measure_window

FIX = "record with the probe profile, which needs root, or CAP_BPF and CAP_PERFMON"


@dataclass(frozen=True)
class RoleStacks:
    """Samples of a role by node of the call tree; `title` names the run and the role."""

    title: str
    tree: CallTree
    samples: Mapping[int, int]
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
    samples = profile.samples.get(role)
    if not samples:
        known = ", ".join(sorted(profile.samples)) or "none"
        raise InputError(path, f"no samples of role `{role}` in the window", f"roles with samples: {known}")
    counts = {node: round(count) for node, count in samples.items()}
    return RoleStacks(f"{run.id} {role}", profile.tree, counts, window.seconds)
