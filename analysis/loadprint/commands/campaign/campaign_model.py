"""Defines the keys of a campaign file: their types, units and defaults.

A resolved campaign contains plain numbers: seconds for durations, bytes for sizes.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from loadprint.commands.campaign.campaign_sides import CampaignSide, ServerChange, expand
from loadprint.configuration.field_types import (
    Generator,
    Line,
    Name,
    Options,
    Profile,
    Seconds,
    Share,
    Size,
    Strict,
    minutes,
)
from loadprint.statistics.stopping import FIRST_LOOK

MAX_RUNS = 20_000  # of an execution: a week of half-minute runs
MAX_STARTS = 99
EDGES_S = 0.2  # of a slice at most: the two reads at its edges, on a busy host
GAP_S = 0.1  # between two slices: pause, freeze, fixed work
MORE = 1.5  # starts are planned than fit by estimate
FIXED_S = 9.0  # copies, starts and stops of one run, measured on two cores with small data
MAX_TURNS = 5_000  # of a start: its plan is an argument of the program that gives the turns, at most 128 KiB
FROZEN_S = 20.0  # of a side at most: MySQL's net_read_timeout is 30 s


class ServerOptions(Strict):
    """The server under test. Memory sizes have no default: every campaign states them.

    `tarball` is the path of a side's own server; that of the campaign's server is server_tarball.
    """

    source: Literal["auto", "package", "rootfs", "tarball", "existing"] = "auto"
    tarball: str | None = None
    profile: Profile = "durable"
    buffer_pool_size: Size
    redo_capacity: Size
    performance_schema: bool
    options: Options = {}

    def changed(self, change: ServerChange) -> ServerOptions:
        """Return this server with the changes of a side; options of the side override the server's."""
        changes = change.model_dump(exclude_none=True, exclude={"options"})
        return self.model_copy(update={**changes, "options": {**self.options, **change.options}})


class Placement(Strict):
    """The CPUs of server and load: lists as in /proc (`0-3,8`); null: chosen from the topology.

    `irq_affinity`: whether the interrupts of the data disk and the network move to the server's CPUs.
    """

    connection: Literal["veth", "socket"] = "veth"
    server_cpus: str | None = None
    load_cpus: str | None = None
    irq_affinity: Literal["server", "leave"] = "leave"


class Data(Strict):
    """A data set, prepared once; `size` is the approximate size of its data directory after a run."""

    workload: str
    generator: Generator = "native"
    options: Options = {}
    size: Size


class Phases(Strict):
    """The durations of warm-up and measurement of a run; sides that alternate have `slices` instead."""

    warmup: Seconds
    measure: Annotated[Seconds, Field(gt=0)] | None = None


class Slices(Strict):
    """The turns of sides that alternate: measured length, the guard before it, and the seconds of a start.

    On two hosts the last `closing` of the length is not measured: the load pauses before the freeze.
    A server does the work of its timers at the thaw, and a guard would leave it out of the rows of flushing.
    Thawed for a little less than whole seconds, it does it as often as one that runs freely (see
    docs/benchmarks.md).
    """

    length: Annotated[Seconds, Field(gt=0)] = 1.9
    guard: Seconds = 0.0
    closing: Annotated[Seconds, Field(gt=0)] = 0.25
    seconds: Annotated[Seconds, Field(gt=0)] = 60.0


class State(Strict):
    """The state before a run: data restored and page cache dropped or kept, or both carried over."""

    data: Literal["fresh", "carried"] = "fresh"
    page_cache: Literal["dropped", "kept"] = "dropped"

    @model_validator(mode="before")
    @classmethod
    def _kept(cls, given: Any) -> Any:
        """Nothing is done between the runs of an existing server."""
        carried = isinstance(given, dict) and given.get("data") == "carried"
        return {"page_cache": "kept"} | given if carried else given


class Warm(Strict):
    """The warm-up that the campaign promises: a sentence, and the figures that are checked."""

    promise: str
    redo_capacities_written: Annotated[float, Field(ge=0)] | None = None
    free_buffer_pages: Annotated[float, Field(ge=0)] | None = None


class RecorderOptions(Strict):
    """The recorder: interval, exporters, `probes` instead of the standard set or `more_probes` with it."""

    interval: Annotated[Seconds, Field(gt=0)] = 1.0
    probes: list[str] = []
    more_probes: list[str] = []
    mysql_probe: bool = True
    exporters: list[Literal["node_exporter", "mysqld_exporter"]] = []

    @model_validator(mode="after")
    def _consistent(self) -> RecorderOptions:
        """Check that no exporter is listed twice, that mysqld_exporter has an account, and the probes."""
        for name in self.exporters:
            if self.exporters.count(name) > 1:
                raise ValueError(f"{name} is listed twice in exporters")
        if self.probes and self.more_probes:
            raise ValueError("give `probes` or `more_probes`")
        if "mysqld_exporter" in self.exporters and not self.mysql_probe:
            raise ValueError("mysqld_exporter needs the account that `mysql_probe: false` omits")
        return self


class EqualLoad(Strict):
    """The rates of mode `equal-load`, as shares of the slower side's maximum."""

    fractions: Annotated[list[Annotated[float, Field(gt=0, lt=1)]], Field(min_length=1, max_length=20)] = [
        0.5,
        0.7,
        0.9,
    ]

    @field_validator("fractions")
    @classmethod
    def _distinct(cls, fractions: list[float]) -> list[float]:
        """Each has sides of its own, named by the percentage."""
        if len({f"{100 * fraction:g}" for fraction in fractions}) < len(fractions):
            raise ValueError("a fraction is given twice")
        return fractions


class Campaign(Strict):
    """A campaign: its sides, design, repeats or starts, order, and server.

    Starts are added until the intervals of `rows` have the half-width `precision`, for `within` seconds.
    `study` names the study whose claims the campaign measures (`loadprint study`). `variables` are names
    that the file uses as `{{ name }}`, `scales` are named sets of overrides;
    both are resolved before validation (campaign_file.py), which leaves the names of the sets. `scale` lists
    the chosen ones, `left_out` the sides whose programs are missing.
    """

    name: Name
    title: Line
    study: Name | None = None
    variables: dict[str, Any] = {}
    scales: dict[Name, dict[str, Any]] = {}
    scale: list[str] = []
    reference: str
    design: Literal["alternate", "sequential"] = "sequential"
    repeats: Annotated[int, Field(ge=1, le=99)] | None = None
    starts: Annotated[int, Field(ge=1, le=MAX_STARTS)] = FIRST_LOOK
    precision: Share | None = None
    within: Annotated[Seconds, Field(gt=0)] = 1200.0
    rows: Annotated[list[Line], Field(min_length=1)] = ["client statements", "server CPU per statement"]
    slices: Slices = Slices()
    order: Literal["random", "rotated", "listed"] = "random"
    seed: Annotated[int, Field(ge=0)] | None = None
    mode: Literal["saturation", "equal-load"] = "saturation"
    equal_load: EqualLoad | None = None
    phases: Phases
    state: State = State()
    warm: Warm
    server: ServerOptions
    placement: Placement = Placement()
    recorder: RecorderOptions = RecorderOptions()
    canary: bool = True
    ceilings: bool = False
    data: Annotated[dict[Name, Data], Field(min_length=1)]
    sides: Annotated[dict[Name, CampaignSide], Field(min_length=1)]
    left_out: list[str] = []

    @model_validator(mode="after")
    def _names_agree(self) -> Campaign:
        """Check the names that refer to other parts of the file."""
        columns = expand(self.sides)
        if self.design == "alternate":
            _refuse_turns(self)
        else:
            _refuse_runs(self)
        if self.reference not in columns:
            raise ValueError(f'reference: no side "{self.reference}"; the sides are {", ".join(columns)}')
        for name, side in self.sides.items():
            if side.data not in self.data:
                raise ValueError(
                    f'sides.{name}.data: no data set "{side.data}"; the data sets are {", ".join(self.data)}'
                )
            if (side.generator == "command") != (side.workload == "command"):
                raise ValueError(f"sides.{name}.generator: generator and workload `command` need each other")
            by_minute = side.generator == "hammerdb" and self.design == "sequential"
            if by_minute and (self.phases.warmup % 60 or self.seconds % 60):
                raise ValueError(f"phases: HammerDB (side {name}) supports whole minutes only")
            if self.mode == "equal-load" and side.rate:
                raise ValueError(f"sides.{name}.rate: mode equal-load measures the rate; remove this key")
        stages = 1 + len((self.equal_load or EqualLoad()).fractions) * (self.mode == "equal-load")
        if (runs := len(columns) * self.blocks * stages) > MAX_RUNS:
            raise ValueError(f"repeats: {runs:,} runs, more than the limit of {MAX_RUNS:,}; use fewer values")
        # an explicit `mode: saturation` next to `equal_load` runs the saturation runs only
        if self.equal_load and "mode" not in self.model_fields_set:
            raise ValueError("equal_load: write `mode: equal-load` too, or remove this key")
        _refuse_state(self)
        return self

    @property
    def instead(self) -> str:
        """What to use where the sides cannot alternate."""
        has_scale = "sequential" in self.scales
        return f"use {'-e campaign_scale=sequential' if has_scale else '`design: sequential`'}"

    @property
    def rounds(self) -> int:
        """In a round each side has one slice; in as many rounds as sides, each has each position once."""
        sides = len(self.columns)
        return sides * math.ceil(self.slices.seconds / self.slices.length / sides)

    @property
    def blocks(self) -> int:
        """The number of runs of each side: its repeats, or its starts; a precision can need fewer."""
        if self.design == "sequential":
            return self.repeats or 0
        if self.precision is None:
            return self.starts
        # a start can take less than estimated
        return min(MAX_STARTS, math.ceil(MORE * self.within / self.start_s))

    @property
    def load_s(self) -> float:
        """The seconds of load of one run: warm-up and what is measured, without copies and starts."""
        if self.design == "sequential":
            return self.phases.warmup + (self.phases.measure or 0)
        return self.phases.warmup + self.rounds * (self.slices.length + self.slices.guard + GAP_S)

    @property
    def start_s(self) -> float:
        """The seconds of a start of all sides."""
        return len(self.columns) * (self.load_s + FIXED_S)

    @property
    def seconds(self) -> float:
        """The measured seconds of a run."""
        return self.slices.seconds if self.design == "alternate" else self.phases.measure or 0.0

    @property
    def columns(self) -> dict[str, CampaignSide]:
        """The columns by name: the sides, with every matrix expanded."""
        return expand(self.sides)


def _refuse_state(campaign: Campaign) -> None:
    """Raises ValueError, with the key first, if the server cannot have the state that runs begin with."""
    is_existing = campaign.server.source == "existing"
    if is_existing and campaign.state.data == "fresh":
        raise ValueError("state.data: an existing server cannot be restored; set state.data: carried")
    if not is_existing and campaign.state.data == "carried":
        raise ValueError("state.data: each run has fresh data, except on an existing server; remove it")
    if is_existing and campaign.state.page_cache == "dropped":
        raise ValueError("state.page_cache: that of an existing server is kept; remove it")
    if is_existing and any(side.server != ServerChange() for side in campaign.columns.values()):
        raise ValueError(
            "server.source: an existing server cannot be configured; remove `server` from all sides"
        )


def _refuse_runs(campaign: Campaign) -> None:
    """Raises ValueError, with the key first, if the sides of a campaign cannot run one after the other."""
    if campaign.precision is not None:
        raise ValueError("precision: only sides that alternate add starts; remove it")
    if campaign.repeats is None or campaign.phases.measure is None:
        key = "repeats" if campaign.repeats is None else "phases.measure"
        raise ValueError(f"{key}: missing; add it, or use `design: alternate`")


def _refuse_turns(campaign: Campaign) -> None:
    """Raises ValueError, with the key first, if the sides of a campaign cannot alternate."""
    slices, columns, instead = campaign.slices, campaign.columns, campaign.instead
    if len(columns) < 2:
        raise ValueError(f"design: one side cannot alternate; add another, or {instead}")
    if slices.length < slices.guard + EDGES_S:
        raise ValueError(
            f"slices.length: {slices.length:g}s is shorter than the guard plus {EDGES_S:g}s for the reads at "
            f"its edges; use {slices.guard + EDGES_S:g}s or more"
        )
    if (turns := len(columns) * campaign.rounds) > MAX_TURNS:
        raise ValueError(
            f"slices.seconds: {turns:,} turns in a start, more than the limit of {MAX_TURNS:,}; use more "
            "starts"
        )
    frozen = (len(columns) - 1) * (slices.length + slices.guard + GAP_S)
    if frozen > FROZEN_S:
        raise ValueError(
            f"slices.length: each of {len(columns)} sides would be frozen for {frozen:.0f}s, and a server's "
            f"timeouts allow {FROZEN_S:.0f}s; use shorter slices, or {instead}"
        )
    if "measure" in campaign.phases.model_fields_set:
        raise ValueError(
            f"phases.measure: sides that alternate have `slices.seconds`; remove it, or {instead}"
        )
    if "repeats" in campaign.model_fields_set:
        raise ValueError(f"repeats: sides that alternate have `starts`; remove it, or {instead}")
    for name, side in columns.items():
        if side.events:
            raise ValueError(f"sides.{name}.events: a side that alternates cannot end by itself; {instead}")
    if campaign.precision is not None:
        _refuse_precision(campaign)
    unusable = {
        "mode": (campaign.mode != "saturation", "the rates of equal load are measured run by run"),
        "server.source": (campaign.server.source == "existing", "an existing server is not started twice"),
        "state.data": (campaign.state.data != "fresh", "each start has fresh data"),
        "recorder.exporters": (bool(campaign.recorder.exporters), "an exporter reads one server"),
    }
    for key, (is_so, why) in unusable.items():
        if is_so:
            raise ValueError(f"{key}: sides cannot alternate, because {why}; {instead}")


def _refuse_precision(campaign: Campaign) -> None:
    """Raises ValueError, with the key first, if the precision asked for cannot be looked at."""
    if "starts" in campaign.model_fields_set:
        raise ValueError("starts: `precision` adds starts until the answer is precise; remove one of both")
    from loadprint.statistics.stats import MIN_REPEATS  # noqa: PLC0415  SciPy, for a precision only

    if (holds := int(campaign.within / campaign.start_s)) < MIN_REPEATS:
        raise ValueError(
            f"within: {minutes(campaign.within)} holds {holds} start{'' if holds == 1 else 's'} of about "
            f"{campaign.start_s:.0f}s; an interval needs {MIN_REPEATS}"
        )
