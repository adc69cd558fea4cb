"""Reads an experiment and its plan from the output of `ab plan --format json`.

It imports the standard library only, as everything does that `ab run --planned` and `ab revert` need: a
playbook copies this package to the server's host, which has no other packages.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from loadprint.commands.ab.schedule import Plan, Slot
from loadprint.commands.ab.variants import Variants
from loadprint.errors import InputError

if TYPE_CHECKING:
    from loadprint.commands.ab.experiment import Experiment


class _Checked(Variants, SimpleNamespace):
    """An experiment that `ab plan` has checked: the attributes that `ab run` reads of an `Experiment`."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document
        parts = {key: SimpleNamespace(**value) for key, value in document.items() if isinstance(value, dict)}
        super().__init__(**document | parts)
        guards = self.guards
        guards.commands = {name: SimpleNamespace(**each) for name, each in guards.commands.items()}
        if guards.replication_lag is not None:
            guards.replication_lag = SimpleNamespace(**guards.replication_lag)
        if self.server.defaults_file is not None:
            self.server.defaults_file = Path(self.server.defaults_file)

    def model_dump(self, **_: str) -> dict[str, Any]:
        return self._document


def load(path: Path) -> tuple[Experiment, Plan]:
    """Read the file. Raises InputError if it is not an output of `ab plan --format json`."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        planned = document["plan"]
        slots = tuple(Slot(**slot) for slot in planned["slots"])
        plan = Plan(
            slots, planned["flips"], planned["seconds"], planned["smallest_p"], tuple(planned["warnings"])
        )
        return cast("Experiment", _Checked(document["experiment"])), plan
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        fix = "write it with `loadprint ab plan FILE --format json` of the same version"
        raise InputError(path, f"not a planned experiment ({error!r})", fix) from None
