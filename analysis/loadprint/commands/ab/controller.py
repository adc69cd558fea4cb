"""Runs an experiment: windows in order, guards between them, and the way back from wherever it ends.

Signals only set a flag; everything that waits looks at it. Whatever happens once the keeper has started ends
in `_way_back`, which has the keeper revert, or in `_without_keeper`, which reverts where it was killed.
"""

from __future__ import annotations

import contextlib
import json
import select
import shutil
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from loadprint.commands.ab import guards, keeper
from loadprint.commands.ab.experiment import Experiment
from loadprint.commands.ab.heartbeat import Heartbeat
from loadprint.commands.ab.interrupts import Interrupts, say
from loadprint.commands.ab.link import KeeperGone, Link
from loadprint.commands.ab.recorder import Recorder, collector, gone, server_pid, why_silent
from loadprint.commands.ab.schedule import Plan, Slot, deadline
from loadprint.configuration.private_files import write_private
from loadprint.errors import InputError
from loadprint.reading.recording import FORMAT_VERSION

START_S = 120.0  # for the recorder to answer, on a host that is busy
SILENT_S = 15.0  # for its first sample of the server after that


class Stop(Exception):
    """The experiment ends before its plan; the message says why."""


class Silent(InputError):
    """The recorder runs, and the server does not answer it; its tables will say why."""


@dataclass(frozen=True)
class Site:
    """What is run, where it goes, on which process, and whose end ends it."""

    experiment: Experiment
    plan: Plan
    out: Path
    pid: int
    heartbeat: Heartbeat | None = None


@dataclass(frozen=True)
class Outcome:
    """How it ended: `reason` is empty when it was complete; `reverted` and how it went, in a line."""

    reason: str
    reverted: bool
    told: str


def run(
    experiment: Experiment,
    plan: Plan,
    out: Path,
    binary: Path | None = None,
    heartbeat: Heartbeat | None = None,
) -> Outcome:
    """Run an experiment into the new directory `out`; a lost `heartbeat` ends it, reverted.

    Raises InputError where it cannot begin; nothing has been switched then.
    """
    if not (out.is_dir() and not any(out.iterdir())) and out.exists():
        raise InputError(out, "is there already", "name a new directory with --out")
    collect, pid = collector(binary), server_pid(experiment.server.process)
    (out / "load").mkdir(parents=True)
    _write(out / "load" / "experiment.json", {**experiment.model_dump(mode="json"), "plan": asdict(plan)})
    _write(out / "run.json", _meta(out, experiment))
    with Interrupts() as interrupts:
        try:
            link = Link(_keeper_config(experiment, plan, out, collect, pid))
        except InputError:  # nothing has begun
            shutil.rmtree(out)
            raise
        controller = Controller(Site(experiment, plan, out, pid, heartbeat), link, interrupts)
        try:
            return controller.conduct(
                lambda: Recorder(collect, out, experiment, pid, deadline(experiment, plan))
            )
        finally:
            keeper_ends(link)


def keeper_ends(link: Link) -> None:
    """Close the keeper's input and wait: it reverts where that was not done."""
    assert link.process.stdin is not None
    with contextlib.suppress(OSError):
        link.process.stdin.close()
    link.wait()


def _meta(out: Path, experiment: Experiment) -> dict[str, Any]:
    return {
        "format_version": FORMAT_VERSION,
        "id": out.resolve().name,
        "generator": "ab",
        "workload": "production",
        "operation": "statement",
        "ab": {
            "name": experiment.name,
            "order": experiment.schedule.order,
            "blocks": experiment.schedule.blocks,
        },
        "roles": {"server": {"host": socket.gethostname(), "cpus": experiment.server.cpus}},
        "status": "running",
        "reason": None,
        "started_realtime_ns": time.time_ns(),
    }


def _keeper_config(experiment: Experiment, plan: Plan, out: Path, collect: Path, pid: int) -> dict[str, Any]:
    commands = ("apply", "revert", "verify_applied", "verify_reverted")
    return {
        "run": str(out.resolve()),
        "commands": {name: getattr(experiment.treatment, name) for name in commands},
        "timeout": experiment.treatment.timeout,
        "lease": experiment.lease,
        "deadline": deadline(experiment, plan),
        "server_pid": pid,
        "collect": str(collect),
    }


def _write(path: Path, value: dict[str, Any]) -> None:
    beside = path.with_name(path.name + ".new")
    write_private(beside, json.dumps(value, indent=1, ensure_ascii=False, default=str) + "\n")
    beside.rename(path)


class Controller:
    """One experiment under way."""

    def __init__(self, site: Site, link: Link, interrupts: Interrupts) -> None:
        self.experiment, self.plan, self.out, self.pid = site.experiment, site.plan, site.out, site.pid
        self.heartbeat = site.heartbeat
        self.link, self.interrupts, self.pid_start = link, interrupts, keeper.start_time(site.pid)
        self.guarding = guards.Guarding(site.experiment.guards)
        self.recorder: Recorder | None = None

    def conduct(self, start: Callable[[], Recorder]) -> Outcome:
        """Begin, go through the windows, and come back. Raises InputError where it cannot begin."""
        reason = ""
        try:
            self._begin(start)
            for slot in self.plan.slots:
                self._window(slot)
        except Stop as stop:
            reason = str(stop)
        except KeeperGone as lost:
            return self._without_keeper(lost)
        except InputError as error:
            self.link.ask("finish", why=error.what)
            self._end_recorder()
            self._close(f"{error.place}: {error.what}", reverted=True, told="nothing was applied")
            if isinstance(error, Silent):
                raise InputError(error.place, why_silent(self.out) or error.what, error.fix) from None
            raise
        except Exception as error:  # a mistake of ours must not leave the treatment on
            reason = f"{type(error).__name__}: {error}"
        try:
            return self._way_back(reason)
        except KeeperGone as lost:
            return self._without_keeper(lost, reason)

    def _begin(self, start: Callable[[], Recorder]) -> None:
        good, told = self.link.ask("verify", what="verify_reverted", why="before the first window")
        if not good:
            raise InputError(
                "treatment.verify_reverted",
                f"says before anything was changed that the server is not as without the treatment ({told})",
                "revert first, or mend the command",
            )
        self.recorder = start()
        self.link.ask("recorder", pid=self.recorder.process.pid, start=self.recorder.start)
        until, answers = time.monotonic() + START_S, False
        while not (sample := guards.scrape(self.recorder.port)).get("mysql.ok"):
            if sample and not answers:
                until, answers = time.monotonic() + SILENT_S, True
            if (died := self.recorder.died()) is not None:
                raise InputError(self.out / "load" / "recorder.log", died, "mend that and run it again")
            if time.monotonic() > until:
                raise Silent(
                    "server", "the recorder cannot ask it", "see docs/mysql-probe.md for the account"
                )
            self._look()
            self._sleep(time.monotonic() + 0.1)
        self.link.ask("mark", phase="measure", event="begin")

    def _window(self, slot: Slot) -> None:
        """Switch if need be, let it settle, and hold the window; raises Stop where something is wrong."""
        self._look()
        if slot.flip:
            say(f"{slot.flip} before window {slot.number}/{len(self.plan.slots)}")
            good, told = self.link.ask(slot.flip, why=f"window {slot.number}")
            if not good:
                raise Stop(f"{slot.flip} before window {slot.number} failed: {told}")
        more = {"block": slot.block, "window": slot.number}
        if slot.settle_s:
            with self._phase("settle", **more):
                self._hold(slot.settle_s)
        with self._phase(slot.variant, **more):
            self._edges(self.experiment.schedule.window)
        pace = self.guarding.queries_per_second
        shown = "" if pace is None else f", {pace:,.0f} queries/s"
        say(f"window {slot.number}/{len(self.plan.slots)} {slot.variant} held{shown}")
        what = "verify_applied" if slot.variant == "treatment" else "verify_reverted"
        good, told = self.link.ask("verify", what=what, why=f"after window {slot.number}")
        if not good:
            raise Stop(f"after window {slot.number} the server is no longer in its variant: {told}")

    def _edges(self, seconds: float) -> None:
        """Hold a window, with a tick of all probes at its begin and before its end."""
        assert self.recorder is not None
        last = 1.5 * self.experiment.recorder.interval
        self.recorder.edge()
        self._hold(seconds - last)
        self.recorder.edge()
        self._hold(last)

    @contextlib.contextmanager
    def _phase(self, name: str, **more: Any) -> Iterator[None]:
        """Stamp a phase; one that is broken off is ended by the keeper, which marks it so."""
        self.link.ask("mark", phase=name, event="begin", more=more)
        yield
        self.link.ask("mark", phase=name, event="end", more=more)

    def _hold(self, seconds: float) -> None:
        """Wait, read the guards, renew the lease. Raises Stop and KeeperGone."""
        until = time.monotonic() + seconds
        pause = min(1.0, self.experiment.recorder.interval, self.experiment.lease / 4)
        while (now := time.monotonic()) < until:
            self._look()
            assert self.recorder is not None
            told = self.guarding.reading(guards.scrape(self.recorder.port), time.monotonic())
            told = told or self.guarding.ask(time.monotonic())
            if told:
                raise Stop(told)
            self._sleep(min(until, now + pause))

    def _look(self) -> None:
        """Look whether anything has ended that must not, and renew the lease."""
        if self.interrupts.received is not None:
            raise Stop(f"interrupted by {self.interrupts.received.name}")
        if self.heartbeat is not None and (lost := self.heartbeat.lost()):
            raise Stop(lost)
        self.link.check()
        self.link.renew()
        if self.recorder is not None and (died := self.recorder.died()) is not None:
            raise Stop(died)
        if gone(self.pid, self.pid_start):
            raise Stop(f"the server's process {self.pid} has ended")

    def _sleep(self, until: float) -> None:
        """Sleep until then, or until a signal or the keeper says something."""
        left = max(0.0, until - time.monotonic())
        ready, _, _ = select.select([self.interrupts.fileno(), self.link.fileno()], [], [], left)
        if self.interrupts.fileno() in ready:
            self.interrupts.drain()
        if ready:
            self._look()

    def _way_back(self, reason: str) -> Outcome:
        """Have the keeper revert and end, then close the recording."""
        if reason:
            say(f"{reason}; reverting")
        reverted, told = self.link.ask("finish", why=reason or "the experiment is over")
        failed = self._end_recorder()
        if failed and not reason:
            reason = failed
        return self._close(reason, reverted=reverted, told=told)

    def _without_keeper(self, lost: KeeperGone, reason: str = "") -> Outcome:
        """After the keeper's end: by itself, having reverted, or killed, so that the reverting is ours."""
        if lost.told is not None:
            self.link.wait()
            why = reason or f"the keeper ended the experiment: {lost.told['why']}"
            say(why)
            self._end_recorder()
            return self._close(why, reverted=bool(lost.told["ok"]), told=str(lost.told["told"]))
        why = reason or "the keeper was killed"
        say(f"{why}; reverting in its place")
        if self.link.touched:
            reverted, told = self.link.revert_instead(why)
        else:
            self.link.wait()
            reverted, told = True, "the treatment is off"
        self._end_recorder()
        return self._close(why, reverted=reverted, told=told)

    def _end_recorder(self) -> str | None:
        return self.recorder.end() if self.recorder is not None else None

    def _close(self, reason: str, *, reverted: bool, told: str) -> Outcome:
        checks = [asdict(check) for check in self.guarding.checks()]
        _write(self.out / "load" / "guards.json", {"checks": checks, "reverted": reverted, "told": told})
        config = self.link.config
        keeper.settle(self.out, f"{reason}; {told}" if reason or not reverted else None, config["collect"])
        return Outcome(reason, reverted, told)
