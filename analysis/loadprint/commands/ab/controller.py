"""Runs an experiment: the windows in order, the guards, and the revert at any end.

Signals only set a flag, which every wait checks. After the keeper has started, every path ends in
`_revert`, which requests the keeper to revert, or in `_without_keeper`, which reverts if the keeper
was killed.
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadprint.commands.ab import fixed_work, guards, keeper
from loadprint.commands.ab.heartbeat import Heartbeat
from loadprint.commands.ab.interrupts import Interrupts, say
from loadprint.commands.ab.link import KeeperGone, Link
from loadprint.commands.ab.recorder import Recorder, gone, server_pid, why_silent
from loadprint.commands.ab.schedule import Plan, Slot, deadline
from loadprint.configuration import collector_binary
from loadprint.configuration.checkout import CHECKOUT
from loadprint.errors import InputError
from loadprint.reading.documents import FORMAT_VERSION
from loadprint.safe_files import Directory, require_trusted

if TYPE_CHECKING:
    from loadprint.commands.ab.experiment import Experiment

START_S = 120.0  # for the first answer of the recorder, on a busy host
SILENT_S = 15.0  # for its first sample of the server after that


class Stop(Exception):
    """The experiment ends early; the message is the reason."""


class Silent(InputError):
    """The recorder runs, but the server does not answer it; its tables contain the reason."""


@dataclass(frozen=True)
class Site:
    """An experiment with its plan, run directory, server process, and heartbeat."""

    experiment: Experiment
    plan: Plan
    run: Directory
    pid: int
    heartbeat: Heartbeat | None = None


@dataclass(frozen=True)
class Outcome:
    """The end of an experiment: `reason` is empty if complete; `revert_result` is one line."""

    reason: str
    reverted: bool
    revert_result: str


def run(
    experiment: Experiment,
    plan: Plan,
    out: Path,
    binary: Path | None = None,
    heartbeat: Heartbeat | None = None,
) -> Outcome:
    """Run an experiment into the new directory `out`; if `heartbeat` is lost, it is reverted and ends.

    Raises InputError if it cannot start; then nothing was switched.
    """
    collect, pid = collector_binary.find(binary), server_pid(experiment.server.process)
    directory = _new_run(out)
    _write(
        directory.make("load"), "experiment.json", experiment.model_dump(mode="json") | {"plan": asdict(plan)}
    )
    _write(directory, "run.json", _meta(out, experiment), 0o644)
    with Interrupts() as interrupts:
        try:
            link = Link(_keeper_config(experiment, plan, out, collect, pid), directory)
        except InputError:  # nothing was started
            directory.remove()
            raise
        controller = Controller(Site(experiment, plan, directory, pid, heartbeat), link, interrupts)
        try:
            return controller.conduct(
                lambda: Recorder(collect, directory, experiment, pid, deadline(experiment, plan))
            )
        finally:
            end_keeper(link)


def _new_run(out: Path) -> Directory:
    """Create the run directory, into which no other user can write."""
    try:
        directory = Directory.new(out)
    except FileExistsError:
        raise InputError(out, "already exists", "name a new directory with --out") from None
    except OSError as error:
        raise InputError(error.filename or out, str(error.strerror), "name another with --out") from error
    try:
        require_trusted(out, owner=CHECKOUT.stat().st_uid)
    except OSError as error:
        say(f"warning: {error.filename} {error.strerror}: `ab revert` would refuse this run without --yes")
    return directory


def end_keeper(link: Link) -> None:
    """Close the keeper's input and wait for its end: it reverts if that was not done."""
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
    return {
        "run": str(out.resolve()),
        "commands": experiment.keeper_commands,
        "treated": experiment.initial == "treatment",
        "timeout": experiment.treatment.timeout,
        "lease": experiment.lease,
        "deadline": deadline(experiment, plan),
        "server_pid": pid,
        "collect": str(collect),
    }


def _write(directory: Directory, name: str, value: dict[str, Any], mode: int = 0o600) -> None:
    directory.replace(name, json.dumps(value, indent=1, ensure_ascii=False, default=str) + "\n", mode)


class Controller:
    """Runs one experiment."""

    def __init__(self, site: Site, link: Link, interrupts: Interrupts) -> None:
        self.experiment, self.plan, self.pid = site.experiment, site.plan, site.pid
        self.run, self.load, self.heartbeat = site.run, site.run.sub("load"), site.heartbeat
        self.link, self.interrupts, self.pid_start = link, interrupts, keeper.start_time(site.pid)
        self.guarding = guards.Guarding(site.experiment.guards)
        self.recorder: Recorder | None = None

    def conduct(self, start: Callable[[], Recorder]) -> Outcome:
        """Start, run the windows, and revert. Raises InputError if it cannot start."""
        reason = ""
        try:
            self._start(start)
            for slot in self.plan.slots:
                self._window(slot)
        except Stop as stop:
            reason = str(stop)
        except KeeperGone as lost:
            return self._without_keeper(lost)
        except InputError as error:
            self.link.request("finish", why=error.what)
            self._end_recorder()
            self._close(f"{error.place}: {error.what}", reverted=True, revert_result="nothing was applied")
            if isinstance(error, Silent):
                raise InputError(
                    error.place, why_silent(self.run.by_descriptor) or error.what, error.fix
                ) from None
            raise
        except Exception as error:  # a defect of this program must not leave the treatment applied
            reason = f"{type(error).__name__}: {error}"
        try:
            return self._revert(reason)
        except KeeperGone as lost:
            return self._without_keeper(lost, reason)

    def _start(self, start: Callable[[], Recorder]) -> None:
        verified, message = self.link.request("verify", what="verify_reverted", why="before the first window")
        if not verified:
            raise InputError(
                f"treatment.{self.experiment.keeper_name('verify_reverted')}",
                f"failed before the first switch: the server is not in the initial variant, "
                f"{self.experiment.initial} ({message})",
                "change the server, `initial`, or the command",
            )
        self.recorder = start()
        self.link.request("recorder", pid=self.recorder.process.pid, start=self.recorder.start)
        until, answers = time.monotonic() + START_S, False
        while not (sample := guards.parse(self.recorder.newest())).get("mysql.ok"):
            if sample and not answers:
                until, answers = time.monotonic() + SILENT_S, True
            if (died := self.recorder.died()) is not None:
                raise InputError(self.load.path / "recorder.log", died, "fix this and run it again")
            if time.monotonic() > until:
                raise Silent(
                    "server", "it does not answer the recorder", "see docs/mysql-probe.md for the account"
                )
            self._check()
            self._sleep(time.monotonic() + 0.1)
        self.link.request("mark", phase="measure", event="begin")

    def _window(self, slot: Slot) -> None:
        """Switch if needed, wait for the settle time, and measure the window. Raises Stop."""
        self._check()
        if slot.flip:
            say(f"{slot.flip} before window {slot.number}/{len(self.plan.slots)}")
            switched, message = self.link.request(
                self.experiment.keeper_name(slot.flip), why=f"window {slot.number}"
            )
            if not switched:
                raise Stop(f"{slot.flip} before window {slot.number} failed: {message}")
        more = {"block": slot.block, "window": slot.number}
        if slot.settle_s:
            with self._phase("settle", **more):
                self._hold(slot.settle_s)
        # in the gap, so that the window does not contain it
        with self._phase(slot.variant, **more, fixed_work_ns=fixed_work.cpu_ns()):
            self._measure(self.experiment.schedule.window)
        pace = self.guarding.queries_per_second
        rate = "" if pace is None else f", {pace:,.0f} queries/s"
        say(f"window {slot.number}/{len(self.plan.slots)} {slot.variant} complete{rate}")
        what = "verify_applied" if slot.variant == "treatment" else "verify_reverted"
        verified, message = self.link.request(
            "verify", what=self.experiment.keeper_name(what), why=f"after window {slot.number}"
        )
        if not verified:
            raise Stop(f"after window {slot.number} the server is no longer in its variant: {message}")

    def _measure(self, seconds: float) -> None:
        """Wait for the end of a window, with a tick of all probes at its start and before its end."""
        assert self.recorder is not None
        last = 1.5 * self.experiment.recorder.interval
        self.recorder.edge()
        self._hold(seconds - last)
        self.recorder.edge()
        self._hold(last)

    @contextlib.contextmanager
    def _phase(self, name: str, **more: Any) -> Iterator[None]:
        """Record the start and end of a phase; the keeper ends and marks an interrupted phase."""
        self.link.request("mark", phase=name, event="begin", more=more)
        yield
        self.link.request("mark", phase=name, event="end", more=more)

    def _hold(self, seconds: float) -> None:
        """Wait, read the guards, renew the lease. Raises Stop and KeeperGone."""
        until = time.monotonic() + seconds
        pause = min(1.0, self.experiment.recorder.interval, self.experiment.lease / 4)
        while (now := time.monotonic()) < until:
            self._check()
            assert self.recorder is not None
            reason = self.guarding.reading(guards.parse(self.recorder.newest()), time.monotonic())
            reason = reason or self.guarding.run_commands(time.monotonic())
            if reason:
                raise Stop(reason)
            self._sleep(min(until, now + pause))

    def _check(self) -> None:
        """Renew the lease. Raises Stop if interrupted, or if the caller, recorder or server is gone."""
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
        """Sleep until then, or until a signal or a message of the keeper."""
        left = max(0.0, until - time.monotonic())
        ready, _, _ = select.select([self.interrupts.fileno(), self.link.fileno()], [], [], left)
        if self.interrupts.fileno() in ready:
            self.interrupts.drain()
        if ready:
            self._check()

    def _revert(self, reason: str) -> Outcome:
        """Request the keeper to revert and end, then close the recording."""
        if reason:
            say(f"{reason}; reverting")
        reverted, message = self.link.request("finish", why=reason or "the experiment is over")
        failed = self._end_recorder()
        if failed and not reason:
            reason = failed
        return self._close(reason, reverted=reverted, revert_result=message)

    def _without_keeper(self, lost: KeeperGone, reason: str = "") -> Outcome:
        """Close the recording after the keeper reverted and ended, or revert because it was killed."""
        if lost.last is not None:
            self.link.wait()
            # what the controller noticed may follow from the keeper's end, or from its own suspension
            after = f"; {reason}" if reason else ""
            why = f"the keeper ended the experiment: {lost.last['why']}{after}"
            say(why)
            self._end_recorder()
            return self._close(why, reverted=bool(lost.last["ok"]), revert_result=str(lost.last["message"]))
        why = reason or "the keeper was killed"
        say(f"{why}; reverting in its place")
        if self.link.touched:
            reverted, message = self.link.revert_instead(why)
        else:
            self.link.wait()
            reverted, message = True, keeper.OFF[self.experiment.initial == "treatment"]
        self._end_recorder()
        return self._close(why, reverted=reverted, revert_result=message)

    def _end_recorder(self) -> str | None:
        return self.recorder.end() if self.recorder is not None else None

    def _close(self, reason: str, *, reverted: bool, revert_result: str) -> Outcome:
        checks = [asdict(check) for check in self.guarding.checks()]
        document = {"checks": checks, "reverted": reverted, "told": revert_result}
        _write(self.load, "guards.json", document)
        failure = f"{reason}; {revert_result}" if reason or not reverted else None
        keeper.set_status(self.run, failure, self.link.config["collect"])
        return Outcome(reason, reverted, revert_result)
