"""What an experiment file may say: the change, the schedule, the server, guards and gates.

Durations are seconds once read. Mistakes name the file, the line and the key.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from loadprint.configuration.document import DocumentError, compose
from loadprint.configuration.field_types import Name, Seconds, Strict
from loadprint.configuration.mistakes import describe
from loadprint.errors import InputError

# a bare `true` is YAML's, and the command of an experiment that changes nothing
Command = Annotated[
    str, Field(min_length=1), BeforeValidator(lambda given: "true" if given is True else given)
]
Positive = Annotated[Seconds, Field(gt=0)]
Share = Annotated[float, Field(gt=0, le=1)]
MEND = "`loadprint ab plan FILE` checks it; docs/ab.md explains every key"


class Treatment(Strict):
    """The change: shell commands, each run by `sh -c` on the server's host; exit 0 is success.

    `verify_applied` and `verify_reverted` ask the server for its state. A settle time passes between a
    switch and the next window; None: that of the schedule.
    """

    apply: Command
    revert: Command
    verify_applied: Command
    verify_reverted: Command
    timeout: Positive = 60.0
    apply_settle: Seconds | None = None
    revert_settle: Seconds | None = None


class Schedule(Strict):
    """Which variant when. A = baseline, B (or T) = treatment.

    `ABBA`: baseline, treatment, treatment, baseline a block; drift over a block cancels. `TB`: treatment,
    then baseline, as few flips as it goes. `random`: a pair a block, its order drawn, half of them each
    way. `max_flips`: how often the switch may be used, both ways counted; None: any number.
    """

    order: Literal["ABBA", "TB", "random"] = "ABBA"
    blocks: Annotated[int, Field(ge=1, le=500)] = 6
    window: Positive = 30.0
    settle: Seconds = 5.0
    seed: Annotated[int, Field(ge=0)] = 1
    max_flips: Annotated[int, Field(ge=2)] | None = None


class Server(Strict):
    """The server: its process (a number, @PIDFILE or the name of the one such process) and how to ask it.

    The account stands in an option file of mode 0600 (docs/mysql-probe.md says what it may do).
    """

    process: str = "mysqld"
    defaults_file: Path | None = None
    socket: Path | None = None
    host: str | None = None
    port: Annotated[int, Field(ge=1, le=65535)] | None = None
    data_dir: Path | None = None
    cpus: str | None = None


class CommandGuard(Strict):
    """A guard of one's own: what a command prints as a number must stay within `min` and `max`."""

    command: Command
    max: float | None = None
    min: float | None = None
    every: Positive = 5.0
    timeout: Positive = 5.0

    @model_validator(mode="after")
    def _has_a_limit(self) -> CommandGuard:
        if self.max is None and self.min is None:
            raise ValueError("give it a `max` or a `min`")
        return self


class Guards(Strict):
    """When to stop and revert: so many `readings` in a row beyond a limit.

    `threads_running`: most of them. `error_rate`: most connections lost or refused a second
    (Aborted_clients, Aborted_connects, Connection_errors_*). `queries_per_second_min`: least. `host_cpu`:
    most, a share of all CPUs. `replication_lag`: a command that prints the seconds. `silence`: longest time
    without an answer of the server.
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
    """What must match between windows for a block to count; measured by `gates.py`."""

    mix_distance: Annotated[float, Field(gt=0, le=1)] = 0.05
    load_difference: Annotated[float, Field(gt=0)] = 0.2
    min_cpu: Share | None = None


class Recorder(Strict):
    """The recorder: how often it reads, and which probes stay off on a production server."""

    interval: Positive = 1.0
    without: tuple[str, ...] = ("ebpf",)


class Experiment(Strict):
    """One A/B experiment.

    `lease`: the keeper reverts when the controller has been silent so long. `deadline`: it reverts so long
    after the begin, whatever happens; None: twice the plan, a timeout for each flip, and two minutes.
    """

    name: Name
    title: str = ""
    treatment: Treatment
    schedule: Schedule = Field(default_factory=Schedule)
    server: Server = Field(default_factory=Server)
    guards: Guards = Field(default_factory=Guards)
    gates: Gates = Field(default_factory=Gates)
    recorder: Recorder = Field(default_factory=Recorder)
    lease: Annotated[Positive, Field(ge=1)] = 15.0
    deadline: Positive | None = None

    @model_validator(mode="after")
    def _fits(self) -> Experiment:
        if self.schedule.window < 3 * self.recorder.interval:
            raise ValueError("schedule.window: shorter than three intervals of the recorder; make it longer")
        asked = dict(self.guards.commands)
        if self.guards.replication_lag is not None:
            asked["replication_lag"] = self.guards.replication_lag
        if sum(each.timeout for each in asked.values()) > self.lease / 2:
            raise ValueError("lease: the timeouts of the guards' commands add up to more than half of it")
        return self

    @property
    def apply_settle(self) -> float:
        """Seconds between applying and the window."""
        own = self.treatment.apply_settle
        return self.schedule.settle if own is None else own

    @property
    def revert_settle(self) -> float:
        """Seconds between reverting and the window."""
        own = self.treatment.revert_settle
        return self.schedule.settle if own is None else own


def load(path: Path) -> Experiment:
    """Read an experiment file. Raises InputError with file, line and key."""
    try:
        document = compose(path, "experiment", "docs/ab.md has one")
        try:
            return Experiment.model_validate(document.data)
        except ValidationError as error:
            raise DocumentError(describe(document, error, Experiment)) from None
    except DocumentError as error:
        place, _, what = str(error).partition(": ")
        raise InputError(place, what, MEND) from None
