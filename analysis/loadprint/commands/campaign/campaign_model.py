"""What a campaign may say: the keys, their types, their units and their defaults.

A resolved campaign holds plain numbers: seconds for durations, bytes for sizes.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from loadprint.commands.campaign.campaign_sides import ServerChange, Side, expand
from loadprint.configuration.field_types import Generator, Name, Options, Profile, Seconds, Size, Strict


class Server(Strict):
    """The server under test; what it keeps in memory and how durable it is are never left to a default."""

    source: Literal["auto", "package", "rootfs", "tarball", "existing"] = "auto"
    profile: Profile = "durable"
    buffer_pool_size: Size
    redo_capacity: Size
    performance_schema: bool
    options: Options = {}

    def changed(self, change: ServerChange) -> Server:
        """Return this server with what one side asks for; options are merged, the side's win."""
        given = change.model_dump(exclude_none=True, exclude={"options"})
        return self.model_copy(update={**given, "options": {**self.options, **change.options}})


class Placement(Strict):
    """Where server and load run; CPU lists as in /proc (`0-3,8`), null means: from the topology."""

    connection: Literal["veth", "socket"] = "veth"
    server_cpus: str | None = None
    load_cpus: str | None = None


class Data(Strict):
    """A data set, prepared once; `size` is about what its data directory takes when a run has ended."""

    workload: str
    generator: Generator = "native"
    options: Options = {}
    size: Size


class Phases(Strict):
    """How long a run warms up and how long it is measured."""

    warmup: Seconds
    measure: Annotated[Seconds, Field(gt=0)]


class State(Strict):
    """What a repeat starts from: a restored copy or what the last run left; page cache dropped or kept."""

    data: Literal["fresh", "carried"] = "fresh"
    page_cache: Literal["dropped", "kept"] = "dropped"


class Warm(Strict):
    """What the campaign promises of warm-up: a sentence for the reader, and the figures it stands for."""

    promise: str
    redo_capacities_written: Annotated[float, Field(ge=0)] | None = None
    checkpoint_cycles: Annotated[int, Field(ge=0)] | None = None
    free_buffer_pages: Annotated[float, Field(ge=0)] | None = None


class Recorder(Strict):
    """What records the run and how often."""

    interval: Annotated[Seconds, Field(gt=0)] = 1.0
    probes: list[str] = []
    mysql_probe: bool = True
    exporters: list[Literal["node_exporter", "mysqld_exporter"]] = []

    @model_validator(mode="after")
    def _exporters_can_work(self) -> Recorder:
        """Check that none is asked for twice, and that what logs in to the server has an account."""
        for name in self.exporters:
            if self.exporters.count(name) > 1:
                raise ValueError(f"{name} is given twice in exporters")
        if "mysqld_exporter" in self.exporters and not self.mysql_probe:
            raise ValueError("mysqld_exporter logs in with the account that `mysql_probe: false` leaves out")
        return self


class EqualLoad(Strict):
    """Which shares of the slower side's maximum the open-loop runs of mode `equal-load` are driven at."""

    fractions: Annotated[list[Annotated[float, Field(gt=0, lt=1)]], Field(min_length=1)] = [0.5, 0.7, 0.9]


class Campaign(Strict):
    """A campaign: which sides, how often, in which order, on which server.

    `variables` are names that the file uses as `{{ name }}`, `scales` named sets of overrides; both are
    resolved before the rest is read (campaign_file.py). `scale` says which sets were chosen.
    """

    name: Name
    title: str
    variables: dict[str, Any] = {}
    scales: dict[Name, dict[str, Any]] = {}
    scale: list[str] = []
    reference: str
    repeats: Annotated[int, Field(ge=1, le=99)]
    order: Literal["random", "listed"] = "random"
    seed: Annotated[int, Field(ge=0)] | None = None
    mode: Literal["saturation", "equal-load"] = "saturation"
    equal_load: EqualLoad | None = None
    phases: Phases
    state: State = State()
    warm: Warm
    server: Server
    placement: Placement = Placement()
    recorder: Recorder = Recorder()
    canary: bool = True
    sysstat: bool = False
    ceilings: bool = False
    data: Annotated[dict[Name, Data], Field(min_length=1)]
    sides: Annotated[dict[Name, Side], Field(min_length=1)]

    @model_validator(mode="after")
    def _names_agree(self) -> Campaign:
        """Check the names that point elsewhere in the file."""
        columns = expand(self.sides)
        if self.reference not in columns:
            raise ValueError(
                f'reference: there is no side "{self.reference}"; the sides are {", ".join(columns)}'
            )
        for name, side in self.sides.items():
            if side.data not in self.data:
                raise ValueError(
                    f'sides.{name}.data: there is no data set "{side.data}"; there are {", ".join(self.data)}'
                )
            if (side.generator == "command") != (side.workload == "command"):
                raise ValueError(f"sides.{name}.generator: generator and workload `command` go together")
            if self.mode == "equal-load" and side.rate:
                raise ValueError(f"sides.{name}.rate: mode equal-load finds the rate by itself; leave it out")
        # `mode: saturation` where it is written means what it says: only the saturation runs
        if self.equal_load and "mode" not in self.model_fields_set:
            raise ValueError("equal_load: write `mode: equal-load` too, or leave this out")
        if self.server.source == "existing" and self.state.data == "fresh":
            raise ValueError("state.data: an existing server cannot be restored; set state.data: carried")
        if self.server.source == "existing" and any(
            side.server != ServerChange() for side in columns.values()
        ):
            raise ValueError(
                "server.source: an existing server cannot be configured; no side may have `server`"
            )
        return self

    @property
    def columns(self) -> dict[str, Side]:
        """Every column by its name: the sides, those with a matrix expanded."""
        return expand(self.sides)
