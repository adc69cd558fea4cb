"""Defines and reads experiment files: the change, the schedule, the server, guards and gates.

Durations are converted to seconds. Errors name the file, the line and the key.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from loadprint.configuration.field_types import Line, Name, Seconds, Strict
from loadprint.configuration.model_file import read_model

# YAML reads the command `true`, that of an experiment without a change, as a boolean
Command = Annotated[
    str, Field(min_length=1), BeforeValidator(lambda given: "true" if given is True else given)
]
Positive = Annotated[Seconds, Field(gt=0)]
Share = Annotated[float, Field(gt=0, le=1)]
FIX = "check it with `loadprint ab plan FILE`; docs/ab.md explains every key"


class Treatment(Strict):
    """The change: shell commands, each run by `sh -c` on the server's host; exit 0 is success.

    `verify_applied` and `verify_reverted` check the state of the server. The settle times are
    between a switch and the next window; None: that of the schedule.
    """

    apply: Command
    revert: Command
    verify_applied: Command
    verify_reverted: Command
    timeout: Positive = 60.0
    apply_settle: Seconds | None = None
    revert_settle: Seconds | None = None


class Schedule(Strict):
    """The order of the variants. A = baseline, B (or T) = treatment.

    `ABBA`: baseline, treatment, treatment, baseline in each block; drift within a block cancels.
    `TB`: treatment, then baseline, with the fewest flips. `random`: one pair per block in random
    order, half of them in each order. `max_flips`: the maximum number of switches, in both
    directions; None: no limit.
    """

    order: Literal["ABBA", "TB", "random"] = "ABBA"
    blocks: Annotated[int, Field(ge=1, le=500)] = 6
    window: Positive = 30.0
    settle: Seconds = 5.0
    seed: Annotated[int, Field(ge=0)] = 1
    max_flips: Annotated[int, Field(ge=2)] | None = None


class ServerAddress(Strict):
    """The server: its process (a number, @PIDFILE or the name of the only such process) and its address.

    The account is in an option file of mode 0600 (docs/mysql-probe.md lists its privileges).
    """

    process: str = "mysqld"
    defaults_file: Path | None = None
    socket: Path | None = None
    host: str | None = None
    port: Annotated[int, Field(ge=1, le=65535)] | None = None
    data_dir: Path | None = None
    cpus: str | None = None


class CommandGuard(Strict):
    """A custom guard: the number that a command prints must be within `min` and `max`."""

    command: Command
    max: float | None = None
    min: float | None = None
    every: Positive = 5.0
    timeout: Positive = 5.0

    @model_validator(mode="after")
    def _has_a_limit(self) -> CommandGuard:
        if self.max is None and self.min is None:
            raise ValueError("a guard needs `max` or `min`")
        return self


class Guards(Strict):
    """Limits: after `readings` consecutive readings beyond a limit, the experiment stops and reverts.

    `threads_running`: maximum. `error_rate`: maximum of connections lost or refused per second
    (Aborted_clients, Aborted_connects, Connection_errors_*). `queries_per_second_min`: minimum.
    `host_cpu`: maximum, a share of all CPUs. `replication_lag`: a command that prints the seconds.
    `silence`: maximum time without an answer of the server.
    """

    threads_running: Annotated[float, Field(gt=0)] | None = None
    error_rate: Annotated[float, Field(ge=0)] | None = None
    queries_per_second_min: Annotated[float, Field(gt=0)] | None = None
    host_cpu: Share | None = None
    replication_lag: CommandGuard | None = None
    commands: dict[Name, CommandGuard] = Field(default_factory=dict)
    readings: Annotated[int, Field(ge=1)] = 2
    silence: Positive = 10.0


class Gates(Strict):
    """Limits of the differences between windows (`gates.py`).

    `fixed_work`: difference of the CPU time of fixed work from the median of the variant's windows, as a
    share of it. `mix_distance`: share of statements of another kind, beyond the expected random difference.
    `load_difference`: difference of queries/s or connections from the median of the variant's windows, as a
    share of it. `min_cpu`: minimum share of the host's CPUs that is busy; None: no limit. Only `fixed_work`
    excludes blocks. The other three are reported: what they measure can be an effect.
    """

    mix_distance: Annotated[float, Field(gt=0, le=1)] = 0.05
    load_difference: Annotated[float, Field(gt=0)] = 0.2
    min_cpu: Share | None = None
    fixed_work: Annotated[float, Field(gt=0)] = 0.2


class RecorderSettings(Strict):
    """The recorder: its interval, and the probes that are off on a production server."""

    interval: Positive = 1.0
    without: tuple[str, ...] = ("ebpf",)


class Experiment(Strict):
    """One A/B experiment.

    `initial` is the variant in which the server is found, and to which it is restored at any end.
    `lease`: the change is reverted after this time without a sign of the caller. `deadline`: it is
    reverted this long after the start in any case; None: twice the plan, one timeout per flip, and
    two minutes.
    """

    name: Name
    title: Line = ""
    initial: Literal["baseline", "treatment"] = "baseline"
    treatment: Treatment
    schedule: Schedule = Field(default_factory=Schedule)
    server: ServerAddress = Field(default_factory=ServerAddress)
    guards: Guards = Field(default_factory=Guards)
    gates: Gates = Field(default_factory=Gates)
    recorder: RecorderSettings = Field(default_factory=RecorderSettings)
    lease: Annotated[Positive, Field(ge=1)] = 15.0
    deadline: Positive | None = None

    @model_validator(mode="after")
    def _fits(self) -> Experiment:
        if self.schedule.window < 3 * self.recorder.interval:
            raise ValueError("schedule.window: shorter than three intervals of the recorder; increase it")
        return self


def load(path: Path) -> Experiment:
    """Read an experiment file. Raises InputError with file, line and key."""
    return read_model(path, Experiment, "experiment", "docs/ab.md has one", FIX)
