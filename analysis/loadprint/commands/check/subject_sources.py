"""Reads subjects: a live host through the recorder, a fingerprint file, a run, an execution."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from loadprint.commands.check.subject import Subject
from loadprint.configuration import collector_binary
from loadprint.errors import InputError
from loadprint.judging.effective import Server
from loadprint.reading import bounds, documents
from loadprint.reading.cpusets import cpuset, parse_cpus
from loadprint.reading.recording import Run, open_run, require_intact
from loadprint.reading.run_documents import Fingerprint, ServerRecord


def live(
    collector: Path | None, data_dir: Path | None, cpusets: Sequence[str], server_json: Path | None
) -> Subject:
    """Fingerprint this host. Raises InputError if the recorder is missing or fails."""
    if data_dir is not None and not data_dir.is_dir():
        raise InputError(
            f"--data-dir {data_dir}", "not a directory of this host", "give the server's datadir"
        )
    command = [str(collector_binary.find(collector)), "fingerprint"]
    command += ["--data-dir", str(data_dir)] if data_dir else []
    command += [word for cpuset in cpusets for word in ("--cpuset", cpuset)]
    printed = collector_binary.output(
        command,
        "run ./setup, or name it with --collector PATH",
        "fix this, or name another program with --collector PATH",
    )
    fingerprint = documents.parse(command[0], printed, Fingerprint, collector_binary.REBUILD)
    return from_fingerprint(fingerprint, "this host", (), server_json)


def fingerprint_file(path: Path, cpusets: Sequence[str], server_json: Path | None) -> Subject:
    """Read a fingerprint from a file, or from standard input if `path` is `-`. Raises InputError."""
    if str(path) != "-":
        return from_fingerprint(documents.read(path, Fingerprint), str(path), cpusets, server_json)
    fix = "pipe the output of `loadprint-collect fingerprint`"
    text = sys.stdin.read(bounds.DOCUMENT)
    fingerprint = documents.parse("standard input", text, Fingerprint, fix)
    return from_fingerprint(fingerprint, "a host", cpusets, server_json)


def from_fingerprint(
    fingerprint: Fingerprint, name: str, cpusets: Sequence[str], server_json: Path | None
) -> Subject:
    """Make a subject of a fingerprint; CPU sets of the command line override those in the fingerprint."""
    sets = dict(fingerprint.cpusets)
    for word in cpusets:
        role, equals, cpus = word.partition("=")
        if not equals or role not in ("server", "load"):
            raise InputError(f"--cpuset {word}", "not a CPU set", "write server=0-3 or load=4-7")
        sets[role] = cpus
    return Subject(
        name=f"{name} ({fingerprint.host})" if fingerprint.host else name,
        fingerprint=fingerprint,
        server=_server(server_json),
        server_cpus=parse_cpus(sets.get("server"), "CPUs of server"),
        load_cpus=parse_cpus(sets.get("load"), "CPUs of load"),
    )


def _server(path: Path | None) -> Server | None:
    """Read a server's variables: server.json of a run, or an object of names and values."""
    if path is None:
        return None
    record = documents.read(path, ServerRecord)
    if not record.variables:  # an object of names and values
        variables = {name: value for name, value in record.items() if isinstance(value, str | int | float)}
        record = ServerRecord.model_validate({"version": record.version, "variables": variables})
    if not any("innodb" in name for name in record.variables):
        raise InputError(
            path, "contains no server variables", "give load/server.json of a run, or {name: value}"
        )
    version = record.version or str(record.variables.get("version", ""))
    return Server.of(record.model_copy(update={"version": version}))


def recorded(path: Path) -> list[Subject]:
    """Return all complete runs of an execution, or one run. Raises InputError if there is none."""
    if not (path / "execution.json").is_file():
        run = open_run(path)
        require_intact(run)
        return [_of_run(run, None)]
    from loadprint.reading.sides import every_side, read_plan  # noqa: PLC0415  only executions need it

    execution = read_plan(path)
    sides = list(every_side(path, execution))
    subjects = [_of_run(run, side.plan.data_bytes) for side in sides for run in side.runs]
    if not subjects:
        raise InputError(path, sides[0].missing[0][1], "run the campaign again, it resumes")
    return subjects


def _of_run(run: Run, data_bytes: float | None) -> Subject:
    """Make a subject of a run, with its recorded stolen time, throttling and ports."""
    if not run.fingerprints:
        raise InputError(run.path, "does not contain fingerprint.json", "record it with loadprint-collect")
    return Subject(
        name=run.id,
        fingerprint=run.fingerprint("server"),
        server=Server.of(run.server) if run.server else None,
        server_cpus=cpuset(run, "server"),
        load_cpus=cpuset(run, "load"),
        shared_host=run.shares_host and "load" not in run.fingerprints,
        measured=_measured(run),
        result=run.result,
        data_bytes=data_bytes,
        load_fingerprint=run.fingerprints.get("load"),
    )


def _measured(run: Run) -> Any:
    """Read the quantities that rules need, a tenth of those that a comparison reads."""
    # a live check does not need DuckDB
    from loadprint.catalogue.files import catalogue  # noqa: PLC0415
    from loadprint.metrics import host, limits  # noqa: PLC0415
    from loadprint.metrics.quantities import Quantities  # noqa: PLC0415
    from loadprint.metrics.rates import Source  # noqa: PLC0415
    from loadprint.metrics.recorded import recorded  # noqa: PLC0415
    from loadprint.reading.queries import Store  # noqa: PLC0415
    from loadprint.reading.window import measure_window  # noqa: PLC0415

    out, store = Quantities(), Store()
    for role in run.roles:
        source = Source(run, measure_window(run, role, store), store, out)
        if role == run.roles[0]:
            host.cpu(source, "server", cpuset(run, "server"))
            limits.cgroup(source)
        recorded(source, catalogue(), tables={"sockets"})
    return out
