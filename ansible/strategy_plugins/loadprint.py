"""Runs the tasks of outcome host independently, and treats an unreachable host as a failed task.

Ansible removes an unreachable host from the play without running `rescue` and `always`: an outage in one
run would end the whole campaign, and no supervisor. It also loses an interrupt (Ctrl-C) that arrives while it
starts a process: Python ignores exceptions of the functions that it calls at a fork (os.register_at_fork).
"""

from __future__ import annotations

import signal
from collections import deque
from typing import Any

from ansible.plugins.strategy.free import StrategyModule as Free  # type: ignore[import-untyped]

DOCUMENTATION = """
name: loadprint
short_description: independent hosts, and a failed task for an unreachable host
description: As the strategy free; an unreachable host is a failed task, which a block can rescue.
author: Loadprint
"""


class Results(deque[Any]):
    """The queue of task results."""

    def append(self, result: Any) -> None:
        """Add a result; failures name their host, and one of an unreachable host fails its task."""
        content = result._return_data
        items = [item for item in content.get("results") or [] if isinstance(item, dict)]
        for outcome in [content, *items]:
            unreachable = outcome.pop("unreachable", False)
            if unreachable or outcome.get("failed"):
                outcome["failed_on"] = host_of(result, outcome)
            if unreachable:
                reason = str(outcome.get("msg", "")).strip().removeprefix("Task failed: ")
                outcome |= {"failed": True, "msg": f"{outcome['failed_on']} is unreachable: {reason}"}
        super().append(result)


def host_of(result: Any, content: dict[str, Any]) -> str:
    """Return the host to which a task, or this item of its loop, was delegated, else the play's host.

    The result of a connection that failed does not name it; then it is the item of the loop.
    """
    item = content.get(content.get("ansible_loop_var", ""))
    candidates = [
        content.get("_ansible_delegated_vars", {}).get("ansible_delegated_host"),
        item[0] if isinstance(item, list) and item else item,
        result.task_fields.get("delegate_to"),
    ]
    hosts = {*result.task.get_variable_manager()._inventory.hosts, "localhost"}
    match = next((name for name in candidates if isinstance(name, str) and name in hosts), None)
    return match or str(result.host.name)


class StrategyModule(Free):  # type: ignore[misc]
    """The strategy."""

    def __init__(self, tqm: Any) -> None:
        super().__init__(tqm)
        self._results = Results()
        self._interrupted = False
        handler = signal.getsignal(signal.SIGINT)

        def interrupt(number: int, frame: Any) -> None:
            self._interrupted = True
            if callable(handler):
                handler(number, frame)

        signal.signal(signal.SIGINT, interrupt)

    def _queue_task(self, host: Any, task: Any, task_vars: Any, play_context: Any) -> None:
        super()._queue_task(host, task, task_vars, play_context)
        if self._interrupted:
            raise KeyboardInterrupt
