"""Defines the result of an A/B experiment as plain values, for the renderers and the report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

HEADLINE = "queries_per_cpu_second"


@dataclass(frozen=True)
class AbWindow:
    """One window of one variant; None: not measured.

    `begin_s`, `end_s`: seconds since the start of the experiment. `queries`, `commits`, `rows`: per
    second, without the recorder's statements. `cpu`: cores used by all threads of the server's
    process. `host_busy`: share of the host's CPUs, 0 to 1. `connections`: mean of
    Threads_connected. `kinds`: statements in the window by `Com_*`, `digests`: by digest, None if
    they were not read at both edges. `previous`: the variant of the previous window. `fixed_work_ns`: CPU
    time of the fixed work in the gap before the window.
    """

    number: int
    block: int
    variant: str
    previous: str | None
    begin_s: float
    end_s: float
    queries: float | None
    cpu: float | None
    commits: float | None = None
    rows: float | None = None
    host_busy: float | None = None
    connections: float | None = None
    kinds: Mapping[str, float] = field(default_factory=dict)
    digests: Mapping[str, float] | None = None
    fixed_work_ns: float | None = None
    note: str = ""

    @property
    def name(self) -> str:
        """Short name for tables and sentences: `3T`."""
        return f"{self.number}{self.variant[0].upper()}"

    @property
    def efficiency(self) -> float | None:
        """Queries per CPU-second of the server; None if one of them is missing or zero."""
        return self.queries / self.cpu if self.queries and self.cpu else None

    @property
    def cost(self) -> float | None:
        """CPU seconds of the server per query."""
        return self.cpu / self.queries if self.queries and self.cpu else None


@dataclass(frozen=True)
class Effect:
    """One quantity under both variants.

    `treatment`, `baseline`: geometric means over the windows used, in `unit`; `ratio`: treatment ÷
    baseline, exp of the mean over blocks of (mean ln T − mean ln B); `low`, `high`: its 95 % t
    interval over blocks, None below three blocks; `p_sign`: p of the exact sign-flip test.
    `better`: higher, lower or neither. `note`: why a value is missing.
    """

    key: str
    label: str
    unit: str
    better: str
    treatment: float | None
    baseline: float | None
    ratio: float | None
    low: float | None = None
    high: float | None = None
    p_sign: float | None = None
    blocks: int = 0
    note: str = ""


@dataclass(frozen=True)
class Check:
    """A gate, guard or diagnostic: `state` is passed, failed or untested; `text` has its numbers."""

    name: str
    state: str
    text: str


@dataclass(frozen=True)
class Result:
    """The result of an experiment.

    `status`: complete, aborted or failed, with `reason`. `excluded`: window number → why its block
    is excluded; `with_excluded` are the effects with these blocks, empty if none is excluded.
    `verdict`: better, worse, equivalent, undecided, or not measured. `flips`: one line per switch.
    `analyse` computes the values from the windows.
    """

    name: str
    title: str
    schedule: str
    status: str = "complete"
    reason: str = ""
    effects: tuple[Effect, ...] = ()
    windows: tuple[AbWindow, ...] = ()
    blocks: int = 0
    blocks_used: int = 0
    excluded: Mapping[int, str] = field(default_factory=dict)
    checks: tuple[Check, ...] = ()
    regime: str = ""
    verdict: str = ""
    sentence: str = ""
    flips: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    with_excluded: tuple[Effect, ...] = ()

    def effect(self, key: str) -> Effect | None:
        """Return the effect with this key."""
        return next((effect for effect in self.effects if effect.key == key), None)
