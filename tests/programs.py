"""Runs the programs of this checkout for tests, and waits for what they do."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
COLLECT = ROOT / "target/release/loadprint-collect"
LOAD = ROOT / "target/release/loadprint-load"
LOADPRINT = ROOT / ".venv/bin/loadprint"
TIMEOUT_S = 300.0  # of the end of a program


def wait_for(what: str, condition: Callable[[], Any], seconds: float = 900) -> Any:
    """Poll until the condition gives something, and return that; for longer than any machine needs."""
    deadline = time.monotonic() + seconds
    while not (result := condition()):
        assert time.monotonic() < deadline, f"{what}: not within {seconds:.0f} s"
        time.sleep(0.05)
    return result


def wait_while(process: subprocess.Popen[Any], what: str, condition: Callable[[], Any], log: Path) -> Any:
    """As `wait_for`, while a process runs: its end fails with its log."""
    result = wait_for(what, lambda: condition() or process.poll() is not None)
    assert process.poll() is None, log.read_text(encoding="utf-8")
    return result


def environment() -> dict[str, str]:
    """Give the environment of playbooks: the configuration of this checkout, and lines of 100 columns."""
    return os.environ | {"ANSIBLE_CONFIG": str(ROOT / "ansible/ansible.cfg"), "COLUMNS": "100"}


def playbook(name: str, *options: str | Path, **variables: Any) -> list[str]:
    """Give the command line of a playbook."""
    words = [ROOT / ".venv/bin/ansible-playbook", ROOT / f"ansible/{name}.yml", *options]
    return [*map(str, words), "-e", json.dumps(variables)]


def finished(command: Sequence[str | Path], **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; `stdout` has all that it prints."""
    return subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        check=False,
        **{"env": environment(), **options},
    )


SUCCEEDED, FAILED, ANY = (0,), range(1, 256), range(256)  # exit statuses


def ended(command: Sequence[str | Path], statuses: Container[int] = SUCCEEDED, **options: Any) -> str:
    """Run a command to its end, which must have one of these exit statuses; gives all that it prints."""
    done = finished(command, **options)
    assert done.returncode in statuses, done.stdout
    return done.stdout


def started(command: Sequence[str | Path], log: Path, **options: Any) -> subprocess.Popen[str]:
    """Start a command in a separate session, with all that it prints in the file `log`."""
    with log.open("w") as output:
        return subprocess.Popen(
            command,
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
            **{"env": environment(), **options},
        )


@contextmanager
def running(command: Sequence[object], log: Path | str = os.devnull) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program until the block ends; what it prints goes to the file `log`."""
    with (
        open(log, "wb") as output,
        subprocess.Popen([str(word) for word in command], stdout=output, stderr=output) as process,
    ):
        try:
            yield process
        finally:
            process.terminate()
            process.wait(TIMEOUT_S)


@contextmanager
def commanded(*command: object) -> Iterator[Callable[[str], str]]:
    """Run a program that prints `ready` and then a line for each one that it reads, until the block ends.

    Gives the function that sends a line and returns the reply.
    """
    words = [str(word) for word in command]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        commands, replies = process.stdin, process.stdout
        assert commands is not None
        assert replies is not None

        def send(line: str) -> str:
            commands.write(f"{line}\n")
            commands.flush()
            return replies.readline().rstrip("\n")

        try:
            assert replies.readline() == "ready\n", words
            yield send
        finally:
            process.kill()


@contextmanager
def recording(out: Path, *options: object, prefix: Sequence[object] = (), **variables: str) -> Iterator[None]:
    """Record into the directory `out` while the block runs; its log is next to it."""
    log, pid_file = out.with_suffix(".log"), out.with_suffix(".pid")
    words = [*prefix, COLLECT, "record", "--out", out, "--pid-file", pid_file, *options]
    with log.open("w") as output:
        recorder = subprocess.Popen(list(map(str, words)), stderr=output, env=os.environ | variables)
    try:
        wait_while(recorder, "the recorder", pid_file.exists, log)
        yield
    finally:
        recorder.terminate()
        assert recorder.wait(TIMEOUT_S) == 0, log.read_text(encoding="utf-8")


def printed(*command: object, **options: Any) -> str:
    """Give what a command prints on its standard output; it must succeed."""
    done: subprocess.CompletedProcess[str] = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=False, **options
    )
    assert done.returncode == 0, f"{command}: status {done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout


def read(path: Path) -> dict[str, Any]:
    """Read a JSON object."""
    return dict(json.loads(path.read_text(encoding="utf-8")))


def in_measure_phase(run: Path, since_ns: int = 0) -> bool:
    """Whether the load of a run, started after a time, is in its measure phase now."""
    phases = run / "load/phases.jsonl"
    # what follows the last end of a line is being written
    whole = phases.read_text().rpartition("\n")[0] if phases.exists() else ""
    lines = [json.loads(line) for line in whole.splitlines()]
    if not lines or lines[0]["realtime_ns"] < since_ns:
        return False
    return (lines[-1]["phase"], lines[-1]["event"]) == ("measure", "begin")
