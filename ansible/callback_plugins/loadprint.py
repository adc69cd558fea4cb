"""Prints the progress of a campaign (run, phase, time left, throughput) and the messages of failures.

A thread reads the local supervisor's status.json every two seconds while tasks run. On a terminal it rewrites
one line, otherwise it prints a line every ten seconds. With -v it prints Ansible's default output instead.
The throughput of a load on another host is not available.
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
description: Prints the number of the run, the phase, the time left and the current throughput.
extends_documentation_fragment: [default_callback, result_format_callback]
"""

# The supervisor of a local target ends when this process exits. The workers, which template the command that
# starts it, inherit the environment. Ansible imports every callback, even with another stdout callback.
os.environ["LOADPRINT_CONTROLLER_PID"] = str(os.getpid())

HOME_CPUS = os.sched_getaffinity(0)
EVERY_S = 2.0
LINE_EVERY_S = 10.0


# What helps against causes that the system and Ansible name without it; the first that matches is added.
FIXES = {
    "Failed to fetch the file: [Errno 28]": "free some space on this machine; the same command resumes",
    "sudo password": "give it with --ask-become-pass, or allow the user NOPASSWD in sudoers",
    "(error 1045": "correct user and password_file in server_existing; the file is on the load's host",
    "(error 2061": "set ssl_mode, public_key_file or get_server_public_key in server_existing",
    "No space left on device": "free some space there; the same command resumes",
    "no supervisor at ": "the same command resumes, with -e supervisor_lease_s=SECONDS after a longer time",
}
# The part of a message that helps only those who use the program without a playbook.
WITHOUT_PLAYBOOK = "; start one with `loadprint-supervise"


def stay_on(cpus: str | None) -> None:
    """Restrict this thread and its children to `cpus` (`0-3,8`); an empty list restores all CPUs."""
    chosen: set[int] = set()
    for part in filter(None, (cpus or "").split(",")):
        first, _, last = part.partition("-")
        chosen |= set(range(int(first), int(last or first) + 1))
    os.sched_setaffinity(0, (chosen & HOME_CPUS) or HOME_CPUS)


def minutes(seconds: float) -> str:
    """Format a remaining time: `40 s`, `4 min`."""
    return f"{max(seconds, 0):.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def brief(line: str) -> str:
    """Shorten a report line of the load, which has sysbench's format; return other lines unchanged."""
    match = re.search(r"tps: ([\d.]+) qps: ([\d.]+).*lat \(ms,(\d+)%\): ([\d.]+)", line)
    if not match:
        return line
    tps, qps, percentile, latency = match.groups()
    return f"{float(tps):,.0f} tps, {float(qps):,.0f} qps, p{percentile} {float(latency):.1f} ms"


def message(content: dict[str, Any], *, hidden: bool) -> str:
    """Return the message of a failed task, or of a failed item of its loop."""
    if hidden or content.get("_ansible_no_log"):
        return "failed; its output is hidden because it contains a secret"
    text = content.get("stderr") or content.get("msg") or content.get("stdout") or "failed"
    text = re.sub(r"^Task failed: (Action failed: )?", "", str(text).strip()).partition(WITHOUT_PLAYBOOK)[0]
    fix = next((fix for cause, fix in FIXES.items() if cause in text), None)
    return f"{text}; {fix}" if fix else text


def host_of(result: Any, content: dict[str, Any]) -> str:
    """Return the host of a failed task, or of an item of its loop: the one to which it was delegated."""
    delegated = content.get("_ansible_delegated_vars", {}).get("ansible_delegated_host")
    return str(content.get("failed_on") or delegated or result._host.get_name())


def printable(text: str) -> str:
    """Replace control characters, such as those of a terminal's escape sequences."""
    return "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text
    )


class Progress:
    """The status file as one line."""

    def __init__(self) -> None:
        self.status: Path | None = None
        self.note: dict[str, Any] = {}
        self.since = time.monotonic()

    def begin(self, note: dict[str, Any]) -> None:
        """Start the display of a new note."""
        self.note, self.since = note, time.monotonic()

    def line(self) -> str | None:
        """Return the state of the campaign as one line, or None without a phase."""
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
        # the throughput of sides in turn would be that of whichever ran last
        answer = self.note.get("answer")
        parts.append(self._throughput() if answer is None else str(answer))
        return "  ".join(filter(None, parts))

    def _throughput(self) -> str:
        if self.status is None:
            return ""
        try:
            status = json.loads(self.status.read_text(encoding="utf-8", errors="replace"))
        except (OSError, ValueError):
            return ""
        for process in status.get("processes", []):
            if process.get("name") in {"load", "prepare"} and process.get("state") == "running":
                line = printable(str(process.get("last_line") or ""))
                # the load's other lines contain only the phase, which is already in this line
                return brief(line) if process["name"] == "prepare" or "tps: " in line else ""
        return ""


class CallbackModule(Default):  # type: ignore[misc]
    """Prints Ansible's default output with -v, otherwise lines about the campaign."""

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

    def _print(self, text: str) -> None:
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
                self._print(line)

    def v2_playbook_on_start(self, playbook: Any) -> None:
        """Start the thread."""
        if not self._quiet:
            super().v2_playbook_on_start(playbook)
            return
        self._ticker = threading.Thread(target=self._tick, daemon=True)
        self._ticker.start()

    def v2_runner_on_ok(self, result: Any) -> None:
        """Follow the supervisor's notes; print the messages of debug tasks."""
        if not self._quiet:
            super().v2_runner_on_ok(result)
            return
        self._follow(result._result.get("cmd"))
        if result._task.action in {"ansible.builtin.debug", "debug"}:
            self._print(str(result._result.get("msg", "")).rstrip())

    def v2_runner_item_on_ok(self, result: Any) -> None:
        """Follow the notes of a loop."""
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
                return  # every host gets the note
            self._progress.begin(note)
            stay_on(self._progress.note.get("controller_cpus"))
            line = self._progress.line()
            if line:
                self._print(line)
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
        # the result of a loop has no message: each item has one
        items = [
            item for item in content.get("results") or [] if item.get("failed") or item.get("unreachable")
        ]
        for outcome in items or [content]:
            text = message(outcome, hidden=bool(content.get("_ansible_no_log")))
            self._print(f"{host_of(result, outcome)}: {result._task.get_name()}: {text}")

    def v2_runner_on_unreachable(self, result: Any) -> None:
        """Print the reason why a host is unreachable."""
        if not self._quiet:
            super().v2_runner_on_unreachable(result)
            return
        items = [item for item in result._result.get("results") or [] if item.get("unreachable")]
        for outcome in items or [result._result]:
            self._print(f"{host_of(result, outcome)}: unreachable: {message(outcome, hidden=False)}")

    def v2_playbook_on_stats(self, stats: Any) -> None:
        """Stop the thread; print the recap only with -v."""
        self._stop.set()
        if self._ticker:
            self._ticker.join(timeout=EVERY_S)
        with self._lock:
            self._clear()
        if not self._quiet:
            super().v2_playbook_on_stats(stats)


def _silence(name: str) -> None:
    """Print an event of the default output only with -v."""
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
