"""What a campaign may say: the keys, their types, their units and their defaults.

A resolved campaign holds plain numbers: seconds for durations, bytes for sizes.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_BYTES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def seconds(value: Any) -> float:
    """Read a duration such as `8s`, `2m` or a number of seconds; ValueError names the form."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ms|s|min|m|h)", str(value).strip())
    if not match:
        raise ValueError(f'"{value}" is no duration; write it as 8s, 2m or 1h')
    return float(match[1]) * _SECONDS[match[2]]


def size(value: Any) -> int:
    """Read a size such as `256M` (powers of 1024, as MySQL has it) or a number of bytes.

    Raises ValueError, which names the form.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    match = re.fullmatch(r"(\d+)\s*([KMGT]?)(?:iB|B)?", str(value).strip(), re.IGNORECASE)
    if not match:
        raise ValueError(f'"{value}" is no size; write it as 256M or 4G')
    return int(match[1]) * _BYTES[match[2].upper()]


Seconds = Annotated[float, BeforeValidator(seconds), Field(ge=0)]
Size = Annotated[int, BeforeValidator(size), Field(ge=0)]
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.-]*$", max_length=40)]
Options = dict[str, bool | int | float | str]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Server(_Strict):
    """The server under test; what it keeps in memory and how durable it is are never left to a default."""

    source: Literal["auto", "package", "rootfs", "tarball", "existing"] = "auto"
    profile: Literal["durable", "blog", "stock"] = "durable"
    buffer_pool_size: Size
    redo_capacity: Size
    performance_schema: bool
    options: Options = {}


class Placement(_Strict):
    """Where server and load run; CPU lists as in /proc (`0-3,8`), null means: from the topology."""

    connection: Literal["veth", "socket"] = "veth"
    server_cpus: str | None = None
    load_cpus: str | None = None


class Data(_Strict):
    """A data set, prepared once; `size` is about what its data directory takes when a run has ended."""

    workload: str
    options: Options = {}
    size: Size


class Side(_Strict):
    """One column of the table: a workload, its threads and options (for the generator: --name=value)."""

    label: str | None = None
    workload: str
    data: str
    threads: Annotated[int, Field(ge=1)]
    generator: Literal["native"] = "native"
    options: Options = {}


class Phases(_Strict):
    """How long a run warms up and how long it is measured."""

    warmup: Seconds
    measure: Annotated[Seconds, Field(gt=0)]


class State(_Strict):
    """What a repeat starts from: a restored copy or what the last run left; page cache dropped or kept."""

    data: Literal["fresh", "carried"] = "fresh"
    page_cache: Literal["dropped", "kept"] = "dropped"


class Warm(_Strict):
    """What the campaign promises of warm-up: a sentence for the reader, and the figures it stands for."""

    promise: str
    redo_capacities_written: Annotated[float, Field(ge=0)] | None = None
    checkpoint_cycles: Annotated[int, Field(ge=0)] | None = None
    free_buffer_pages: Annotated[float, Field(ge=0)] | None = None


class Recorder(_Strict):
    """What records the run and how often."""

    interval: Annotated[Seconds, Field(gt=0)] = 1.0
    probes: list[str] = []


class Campaign(_Strict):
    """A campaign: which sides, how often, in which order, on which server."""

    name: Name
    title: str
    reference: str
    repeats: Annotated[int, Field(ge=1, le=99)]
    order: Literal["random", "listed"] = "random"
    seed: Annotated[int, Field(ge=0)] | None = None
    mode: Literal["saturation"] = "saturation"
    phases: Phases
    state: State = State()
    warm: Warm
    server: Server
    placement: Placement = Placement()
    recorder: Recorder = Recorder()
    data: Annotated[dict[Name, Data], Field(min_length=1)]
    sides: Annotated[dict[Name, Side], Field(min_length=1)]

    @model_validator(mode="after")
    def _names_agree(self) -> Campaign:
        """Check the names that point elsewhere in the file."""
        if self.reference not in self.sides:
            raise ValueError(
                f'reference: there is no side "{self.reference}"; the sides are {", ".join(self.sides)}'
            )
        for name, side in self.sides.items():
            if side.data not in self.data:
                raise ValueError(
                    f'sides.{name}.data: there is no data set "{side.data}"; there are {", ".join(self.data)}'
                )
        if self.server.source == "existing" and self.state.data == "fresh":
            raise ValueError("state.data: an existing server cannot be restored; set state.data: carried")
        return self
