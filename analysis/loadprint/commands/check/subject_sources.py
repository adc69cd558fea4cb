"""Where subjects come from: a live host through the recorder, a file, a run, an execution."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from loadprint.commands.check.subject import Subject
from loadprint.errors import InputError
from loadprint.judging.effective import Server
from loadprint.reading import bounds, documents
from loadprint.reading.cpusets import cpuset, parse_cpus, user_hz
from loadprint.reading.recording import Run, open_run, read_object, require_intact

COLLECTOR = "loadprint-collect"
PATIENCE_S = 60


def live(
    collector: Path | None, data_dir: Path | None, cpusets: Sequence[str], server_json: Path | None
) -> Subject:
    """Fingerprint this host. Raises InputError where the recorder is not there or fails."""
    if data_dir is not None and not data_dir.is_dir():
        raise InputError(
            f"--data-dir {data_dir}", "is no directory of this host", "name the server's datadir"
        )
    command = [str(collector or _collector()), "fingerprint"]
    command += ["--data-dir", str(data_dir)] if data_dir else []
    command += [word for each in cpusets for word in ("--cpuset", each)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(
            command[0], f"does not run ({error})", "run ./setup, or name it: --collector"
        ) from error
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise InputError(command[0], said, "mend that, or name another one: --collector")
    try:
        return given(documents.loads(done.stdout), "this host", (), server_json)
    except ValueError as error:
        raise InputError(command[0], "prints no JSON", "build it again: ./setup") from error


def _collector() -> Path:
    """The recorder of this checkout, else the one in PATH."""
    built = Path(__file__).resolve().parents[4] / "target" / "release" / COLLECTOR
    found = built if built.is_file() else shutil.which(COLLECTOR)
    if found is None:
        raise InputError(COLLECTOR, "is not built", "run ./setup, or name it: --collector")
    return Path(found)


def fingerprint_file(path: Path, cpusets: Sequence[str], server_json: Path | None) -> Subject:
    """Read a fingerprint that was made elsewhere; `-` is the standard input. Raises InputError."""
    if str(path) != "-":
        return given(read_object(path), str(path), cpusets, server_json)
    try:
        told = documents.loads(sys.stdin.read(bounds.DOCUMENT))
    except ValueError as error:
        raise InputError("standard input", "is no JSON", "pipe `loadprint-collect fingerprint` in") from error
    if not isinstance(told, dict):
        raise InputError("standard input", "is no object", "pipe `loadprint-collect fingerprint` in")
    return given(told, "a host", cpusets, server_json)


def given(
    fingerprint: Mapping[str, Any], name: str, cpusets: Sequence[str], server_json: Path | None
) -> Subject:
    """Make a subject of a fingerprint; CPU sets on the command line come before its own."""
    sets: dict[str, Any] = dict(fingerprint.get("cpusets") or {})
    for each in cpusets:
        role, equals, listed = each.partition("=")
        if not equals or role not in ("server", "load"):
            raise InputError(f"--cpuset {each}", "is no CPU set", "write server=0-3 or load=4-7")
        sets[role] = listed
    return Subject(
        name=f"{name} ({fingerprint.get('host')})" if fingerprint.get("host") else name,
        fingerprint=fingerprint,
        server=_server(server_json),
        server_cpus=parse_cpus(sets.get("server"), "CPUs of server"),
        load_cpus=parse_cpus(sets.get("load"), "CPUs of load"),
    )


def _server(path: Path | None) -> Server | None:
    """A server's variables: server.json of a run, or one object of names and values."""
    if path is None:
        return None
    told = read_object(path)
    variables = told.get("variables", told)
    if not isinstance(variables, dict) or not any("innodb" in name for name in variables):
        raise InputError(
            path, "holds no server variables", "give load/server.json of a run, or {name: value}"
        )
    return Server.of({"version": variables.get("version"), **told, "variables": variables})


def recorded(path: Path) -> list[Subject]:
    """All complete runs of an execution, or one run. Raises InputError where there is none."""
    if not (path / "execution.json").is_file():
        run = open_run(path)
        require_intact(run)
        return [_of_run(run, {})]
    from loadprint.reading.sides import side_of, sides_of  # noqa: PLC0415  of executions only

    execution = read_object(path / "execution.json")
    found: list[Subject] = []
    lacking: list[str] = []
    for name in sides_of(execution, path):
        try:
            side = side_of(path, execution, name)
        except InputError as error:
            lacking.append(error.what)
            continue
        plan = dict((execution.get("sides") or {}).get(name) or {})
        data = ((execution.get("campaign") or {}).get("data") or {}).get(plan.get("data")) or {}
        found += [_of_run(run, data) for run in side.runs]
    if not found:
        raise InputError(
            path, lacking[0] if lacking else "has no sides", "run the campaign again, it resumes"
        )
    return found


def _of_run(run: Run, data: Mapping[str, Any]) -> Subject:
    """One run, with what its tables tell of stolen time, quotas and ports."""
    if not run.fingerprints:
        raise InputError(run.path, "holds no fingerprint.json", "record it with loadprint-collect")
    size = data.get("size")
    return Subject(
        name=run.id,
        fingerprint=run.fingerprint("server"),
        server=Server.of(run.server) if run.server else None,
        server_cpus=cpuset(run, "server"),
        load_cpus=cpuset(run, "load"),
        shared_host="load" not in run.fingerprints,
        measured=_measured(run),
        result=run.result or {},
        data_bytes=float(size) if isinstance(size, int | float) else None,
        load_fingerprint=run.fingerprints.get("load"),
    )


def _measured(run: Run) -> Any:
    """Quantities of the recording that rules need: a tenth of what a comparison reads."""
    from loadprint.metrics import sources, sources_limits  # noqa: PLC0415  DuckDB, which a live check can do without
    from loadprint.metrics.quantities import Quantities  # noqa: PLC0415
    from loadprint.reading.queries import Store  # noqa: PLC0415
    from loadprint.reading.window import measure_window  # noqa: PLC0415

    out, store = Quantities(), Store()
    for role in run.roles:
        source = sources.Source(run, measure_window(run, role, store), store, out)
        if role == run.roles[0]:
            sources.cpu(source, "server", cpuset(run, "server"), user_hz(run, role))
            sources_limits.cgroup(source, "server")
        sources_limits.sockets(source, ("load",) if "load" in run.roles else ("server", "load"))
    return out
