"""Starts the process that carries out an experiment on this host, and reverts if it was killed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from loadprint.commands.ab import conduct
from loadprint.commands.ab.switch import Taken, say
from loadprint.configuration import collector_binary
from loadprint.errors import InputError, as_input_error
from loadprint.safe_files import require_trusted

RENEW_S = 1.0


def run(document: dict[str, Any], out: Path) -> int:
    """Carry out a plan into the new directory `out`. Returns the exit status of `ab run`.

    Raises InputError if other users can change what `out` names.
    """
    with as_input_error(out.parent, "name another directory with --out"):
        require_trusted(out.parent, create=True, shared=True)
    child = subprocess.Popen(
        [sys.executable, "-P", "-m", conduct.__name__, str(out.absolute())],
        stdin=subprocess.PIPE,
        bufsize=0,
        start_new_session=True,
    )
    for caught in conduct.SIGNALS:
        signal.signal(caught, lambda number, _: child.send_signal(number))
    assert child.stdin is not None
    line = json.dumps(document).encode() + b"\n"
    while True:
        with suppress(BrokenPipeError):
            child.stdin.write(line)
        line = b"\n"
        with suppress(subprocess.TimeoutExpired):
            status = child.wait(RENEW_S)
            break
    if status >= 0:
        return status
    say(f"its process was killed by signal {-status}")
    if not (out / "run.json").exists():
        say("before the start; nothing was applied")
        return 1
    reverted, message = revert(out, Path(document["collector"]))
    say(message if reverted else f"NOT REVERTED ({message}). Run by hand, now: loadprint ab revert {out}")
    return 1 if reverted else 2


def revert(run: Path, collector: Path | None = None) -> tuple[bool, str]:
    """Revert with the commands of a run directory, unless already reverted, verify, and finish the recording.

    `collector` is the program loadprint-collect (default: this installation's). Raises InputError if others
    can change the directory, if it is none, or if it is being reverted.
    """
    for name in ("run.json", "load/experiment.json", "load/switches.jsonl", "load/phases.jsonl"):
        with as_input_error(run / name, "copy it where only you can write, and check its commands"):
            require_trusted(run / name)
    fix = "give a run directory of `ab run`, or revert the change yourself"
    try:
        reverted, message = conduct.revert(run)
    except Taken as taken:
        raise InputError(run, str(taken), "wait for its end") from None
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(run, f"its commands cannot be read ({error!r})", fix) from error
    try:
        conduct.finish(run, str(collector_binary.find(collector)))
    except InputError as error:
        say(f"the recording was not completed: {error}")
    return reverted, message
