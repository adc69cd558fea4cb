"""Progress: which run of how many, phase, time left, current throughput; failures with their message.

A thread reads the local supervisor's status.json every two seconds while tasks run; on a terminal one line
is rewritten, elsewhere a line is printed every ten seconds. With -v Ansible's own output is shown instead.
It cannot see the throughput of a load on another host.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import threading
import time
from pathlib import Path
from typing import Any

from ansible.plugins.callback.default import CallbackModule as Default  # type: ignore[import-untyped]

DOCUMENTATION = """
name: loadprint
type: stdout
short_description: progress of a measurement campaign
description: Prints which run of how many, the phase, the time left and the current throughput.
extends_documentation_fragment: [default_callback, result_format_callback]
"""

# The supervisor of a local target ends when this process is gone. The environment reaches the workers, which
# template the command that starts it; every callback is imported, also beside another stdout callback.
os.environ["LOADPRINT_CONTROLLER_PID"] = str(os.getpid())

HOME_CPUS = os.sched_getaffinity(0)
EVERY_S = 2.0
LINE_EVERY_S = 10.0


def stay_on(cpus: str | None) -> None:
    """Keep this thread, and what it starts, on `cpus` (`0-3,8`); an empty list gives all back."""
    chosen: set[int] = set()
    for part in filter(None, (cpus or "").split(",")):
        first, _, last = part.partition("-")
        chosen |= set(range(int(first), int(last or first) + 1))
    os.sched_setaffinity(0, (chosen & HOME_CPUS) or HOME_CPUS)


def minutes(seconds: float) -> str:
    """Write a time left: `40 s`, `4 min`."""
    return f"{max(seconds, 0):.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def brief(line: str) -> str:
    """Shorten a report line of the load, which has sysbench's form; other lines pass."""
    found = re.search(r"tps: ([\d.]+) qps: ([\d.]+).*lat \(ms,(\d+)%\): ([\d.]+)", line)
    if not found:
        return line
    tps, qps, percentile, latency = found.groups()
    return f"{float(tps):,.0f} tps, {float(qps):,.0f} qps, p{percentile} {float(latency):.1f} ms"


def message(content: dict[str, Any], *, hidden: bool) -> str:
    """Give the message of a failed task, or of a failed item of its loop."""
    if hidden or content.get("_ansible_no_log"):
        return "failed; its output is hidden because it holds a secret"
    text = content.get("stderr") or content.get("msg") or content.get("stdout") or "failed"
    return str(text).strip()


class Progress:
    """What the status file says, as one line; `None` where there is nothing to say."""

    def __init__(self) -> None:
        self.status: Path | None = None
        self.note: dict[str, Any] = {}
        self.since = time.monotonic()

    def begin(self, note: dict[str, Any]) -> None:
        """Take over a new note, from now on."""
        self.note, self.since = note, time.monotonic()

    def line(self) -> str | None:
        """Describe where the campaign stands."""
        phase = self.note.get("phase")
        if not phase:
            return None
        spent = time.monotonic() - self.since
        parts = []
        if "run" in self.note:
            parts.append(f"[{self.note['run']}/{self.note['of']}] {self.note['id']}")
        expected, warmup = self.note.get("expected_s"), self.note.get("warmup_s")
        if warmup is not None and expected is not None:
            name, done, of = (
                ("warm-up", spent, warmup)
                if spent < warmup
                else ("measure", spent - warmup, expected - warmup)
            )
            parts.append(f"{name} {min(done, of):.0f}/{of:.0f} s")
        elif expected:
            parts.append(f"{phase}, {spent:.0f} of about {expected:.0f} s")
        else:
            parts.append(phase if spent < EVERY_S else f"{phase}, {spent:.0f} s")
        if self.note.get("left_s") is not None:
            parts.append(f"{minutes(float(self.note['left_s']) - spent)} left")
        throughput = self._throughput()
        return "  ".join([*parts, throughput] if throughput else parts)

    def _throughput(self) -> str:
        if self.status is None:
            return ""
        try:
            status = json.loads(self.status.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return ""
        for process in status.get("processes", []):
            if process.get("name") in {"load", "prepare"} and process.get("state") == "running":
                line = str(process.get("last_line") or "")
                # the load's other lines only name the phase, which stands here already
                return brief(line) if process["name"] == "prepare" or "tps: " in line else ""
        return ""


class CallbackModule(Default):  # type: ignore[misc]
    """Ansible's default output with -v, else lines about the campaign."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "loadprint"

    def __init__(self) -> None:
        super().__init__()
        self._progress = Progress()
        self._terminal = sys.stdout.isatty()
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._rewritten = False
        self._printed = time.monotonic()
        self._ticker: threading.Thread | None = None

    @property
    def _quiet(self) -> bool:
        return bool(self._display.verbosity == 0)

    def _say(self, text: str) -> None:
        with self._lock:
            self._clear()
            self._display.display(text)
            sys.stdout.flush()
            self._printed = time.monotonic()

    def _clear(self) -> None:
        if self._rewritten:
            sys.stdout.write("\r\033[K")
            self._rewritten = False

    def _tick(self) -> None:
        while not self._stop.wait(EVERY_S):
            stay_on(self._progress.note.get("controller_cpus"))
            line = self._progress.line()
            if line is None:
                continue
            if self._terminal:
                with self._lock:
                    sys.stdout.write("\r\033[K" + line[: shutil.get_terminal_size().columns - 1])
                    sys.stdout.flush()
                    self._rewritten = True
            elif time.monotonic() - self._printed >= LINE_EVERY_S:
                self._say(line)

    def v2_playbook_on_start(self, playbook: Any) -> None:
        """Start the thread."""
        if not self._quiet:
            super().v2_playbook_on_start(playbook)
            return
        self._ticker = threading.Thread(target=self._tick, daemon=True)
        self._ticker.start()

    def v2_runner_on_ok(self, result: Any) -> None:
        """Follow the supervisor's notes; print what a task of type debug says."""
        if not self._quiet:
            super().v2_runner_on_ok(result)
            return
        self._follow(result._result.get("cmd"))
        if result._task.action in {"ansible.builtin.debug", "debug"}:
            self._say(str(result._result.get("msg", "")).rstrip())

    def v2_runner_item_on_ok(self, result: Any) -> None:
        """Follow the notes that are sent in a loop."""
        if not self._quiet:
            super().v2_runner_item_on_ok(result)
            return
        self._follow(result._result.get("cmd"))

    def _follow(self, command: Any) -> None:
        if (
            not isinstance(command, list)
            or len(command) < 4
            or not command[0].endswith("/loadprint-supervise")
        ):
            return
        self._progress.status = Path(command[command.index("--state") + 1]) / "status.json"
        if command[1] == "note":
            note = json.loads(command[-1])
            if note == self._progress.note:
                return  # every host is told
            self._progress.begin(note)
            stay_on(self._progress.note.get("controller_cpus"))
            line = self._progress.line()
            if line:
                self._say(line)
        elif command[1] == "end":
            self._progress.begin({})

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        """Print the message of a failure, not the whole result."""
        if not self._quiet:
            super().v2_runner_on_failed(result, ignore_errors)
            return
        if ignore_errors:
            return
        content = result._result
        # a loop says only that an item failed: each item has the message
        items = [item for item in content.get("results") or [] if item.get("failed")]
        for each in items or [content]:
            text = message(each, hidden=bool(content.get("_ansible_no_log")))
            self._say(f"{result._host.get_name()}: {result._task.get_name()}: {text}")

    def v2_runner_on_unreachable(self, result: Any) -> None:
        """Print why a host cannot be reached."""
        if not self._quiet:
            super().v2_runner_on_unreachable(result)
            return
        self._say(f"{result._host.get_name()}: unreachable: {str(result._result.get('msg', '')).strip()}")

    def v2_playbook_on_stats(self, stats: Any) -> None:
        """Stop the thread; the recap is shown with -v only."""
        self._stop.set()
        if self._ticker:
            self._ticker.join(timeout=EVERY_S)
        with self._lock:
            self._clear()
        if not self._quiet:
            super().v2_playbook_on_stats(stats)


def _silence(name: str) -> None:
    """Show an event of the default output with -v only."""
    shown = getattr(Default, name)

    def event(self: CallbackModule, *arguments: Any, **options: Any) -> None:
        if not self._quiet:
            shown(self, *arguments, **options)

    setattr(CallbackModule, name, event)


for _event in (
    "v2_playbook_on_play_start",
    "v2_playbook_on_task_start",
    "v2_playbook_on_handler_task_start",
    "v2_playbook_on_include",
    "v2_playbook_on_no_hosts_matched",
    "v2_runner_on_start",
    "v2_runner_on_skipped",
    "v2_runner_item_on_skipped",
    "v2_runner_item_on_failed",
    "v2_runner_retry",
):
    _silence(_event)
