"""Opens a run directory (docs/recording-format.md) and returns its parts as plain values.

It checks the manifest, and accepts the files that a killed recorder leaves: `Run.problems` lists what is
missing; nothing is filled in.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from loadprint.errors import InputError
from loadprint.printable import printable
from loadprint.reading.bounds import COPY_AGAIN, require_regular
from loadprint.reading.crc32c import crc32c_file
from loadprint.reading.documents import FORMAT_VERSION, Model, read
from loadprint.reading.names import LOAD
from loadprint.reading.run_documents import (
    Fingerprint,
    LoadResult,
    Manifest,
    RoleOfRun,
    RunMeta,
    ServerRecord,
)
from loadprint.reading.slices import SLICES, Slice, read_slices
from loadprint.reading.stamps import Exchange, Phase, read_exchanges, read_phases

ELSEWHERE = ("journal", "sysstat.sa")


@dataclass(frozen=True)
class Run:
    """One run directory: its JSON files, empty where a file is missing.

    `phases` are the load's, `exchanges` relate its clock to the server's. `slices` are the turns of all sides
    of a start; empty if the run had all of the time. `segments` are begins and ends of the measured time,
    CLOCK_MONOTONIC of the server's host in ns, in order; None: phase `measure`. The same of a load on another
    host, in its clock, are `load_slices` and `load_segments`.
    """

    path: Path
    meta: RunMeta
    result: LoadResult
    server: ServerRecord
    fingerprints: dict[str, Fingerprint]
    manifest: Manifest | None = None
    phases: tuple[Phase, ...] = ()
    exchanges: tuple[Exchange, ...] = ()
    slices: tuple[Slice, ...] = ()
    load_slices: tuple[Slice, ...] = ()
    problems: tuple[str, ...] = ()
    segments: tuple[tuple[float, float], ...] | None = None
    load_segments: tuple[tuple[float, float], ...] | None = None

    @property
    def id(self) -> str:
        """The id in run.json, else the directory's name."""
        return self.meta.id or printable(self.path.name)

    @property
    def workload(self) -> str:
        """Name of the workload: that of the generator, else that of run.json; empty if unknown."""
        return self.result.workload or self.meta.workload

    @property
    def turns(self) -> tuple[Slice, ...]:
        """The slices of its own side; empty if it is the recording of all sides, or had all of the time."""
        return tuple(turn for turn in self.slices if turn.side == self.meta.side)

    @cached_property
    def _tables(self) -> dict[tuple[str, str], Path]:
        """Path of every table by role and probe."""
        return {
            (path.parent.name, path.stem): path for path in self.path.glob("*/*.parquet") if path.is_file()
        }

    @cached_property
    def roles(self) -> tuple[str, ...]:
        """Directories with a recorder's tables, `server` first."""
        names = [role for role, probe in self._tables if probe == "ticks"]
        return tuple(sorted(names, key=lambda role: (role != "server", role)))

    @property
    def journals(self) -> tuple[Path, ...]:
        """Journals that `loadprint-collect finish` has not converted to tables."""
        return tuple(sorted(self.path.glob("*/journal")))

    def table(self, role: str, probe: str) -> Path | None:
        """Path of a probe's table; None if there is none."""
        return self._tables.get((role, probe))

    def phase(self, name: str) -> Phase | None:
        """Return the last phase of this name."""
        return next((phase for phase in reversed(self.phases) if phase.name == name), None)

    def fingerprint(self, role: str) -> Fingerprint:
        """Fingerprint of a role's host; on a shared host only the server has one."""
        return self.fingerprints.get(role) or self.fingerprints.get("server") or Fingerprint()

    def role(self, name: str) -> RoleOfRun:
        """A role as the run was given it; empty without."""
        return self.meta.roles.get(name, RoleOfRun())

    def host(self, role: str) -> str:
        """Name of a role's host in the inventory: clones of an image give themselves one name.

        Without an inventory, or where it has the control node's own name for itself, the name that the host
        gives itself; the role if that is not recorded.
        """
        declared = self.role(role).host
        if declared and declared != "localhost":
            return declared
        return self.fingerprints.get(role, Fingerprint()).host or declared or role

    @property
    def shares_host(self) -> bool:
        """Whether server and load ran on one host, by their recorders and boots."""
        if LOAD in self.roles:
            return False
        boots = {stamp.boot_id for stamp in self.phases} - {None}
        server = self.fingerprint("server").boot_id
        return server is None or not boots or server in boots


def open_run(path: Path) -> Run:
    """Open a run directory. Raises InputError if it is not one, or a JSON file in it is damaged."""
    _refuse_execution(path)
    if not path.exists():
        raise InputError(path, "no such run directory", "give a directory that contains run.json")
    if not path.is_dir():
        raise InputError(path, "is a file, not a run directory", "give the directory that contains run.json")
    refuse_special_files(path)
    problems: list[str] = []
    if not (path / "run.json").is_file():
        _explain_missing_run(path)
    meta = read(path / "run.json", RunMeta)
    version = meta.format_version
    if version > FORMAT_VERSION:
        raise InputError(
            path / "run.json",
            f"format version {version}, this loadprint reads {FORMAT_VERSION}",
            "update loadprint",
        )
    for journal in sorted(path.glob("*/journal")):
        problems.append(
            f"{journal.parent.name}/journal is not finished: run `loadprint-collect finish {path}`"
        )
    if f"{LOAD}-2" in meta.roles:
        raise InputError(path, "has several load hosts", "use loadprint of the version that recorded it")
    load = path / LOAD
    result = _optional(load / "result.json", LoadResult, problems)
    phases = read_phases(load / "phases.jsonl", problems)
    server = _optional(load / "server.json", ServerRecord, problems)
    fingerprints = {p.parent.name: read(p, Fingerprint) for p in sorted(path.glob("*/fingerprint.json"))}
    return Run(
        path=path,
        meta=meta,
        result=result or LoadResult(),
        server=server or ServerRecord(),
        fingerprints=fingerprints,
        manifest=_optional(path / "manifest.json", Manifest, problems),
        phases=phases,
        exchanges=read_exchanges(load / "clock.jsonl"),
        slices=read_slices(path / SLICES, problems),
        load_slices=read_slices(load / SLICES, problems),
        problems=tuple(problems),
    )


def refuse_special_files(run: Path) -> None:
    """Raise InputError for a link to a file outside of a run directory, and for FIFOs, sockets and devices.

    A received recording must not refer to other files of its reader, and a FIFO blocks the reader. The links
    of a killed recorder (`ELSEWHERE`) are accepted, because nothing reads them.
    """
    inside = Path(os.path.realpath(run))
    for folder, folders, files in os.walk(run):
        for path in (Path(folder) / name for name in folders + files if name not in ELSEWHERE):
            kind = path.lstat().st_mode
            if stat.S_ISLNK(kind) and not Path(os.path.realpath(path)).is_relative_to(inside):
                raise InputError(path, "is a link to a file outside of the run directory", COPY_AGAIN)
            if not stat.S_ISLNK(kind):
                require_regular(path, or_folder=True)


def _refuse_execution(path: Path) -> None:
    """Refuse an execution, or EXECUTION:side, where one run is read."""
    execution, _, side = (str(path), "", "*") if path.exists() else str(path).rpartition(":")
    if (Path(execution) / "execution.json").is_file():
        runs = sorted(Path(execution).glob(f"b*-{side}-r*/run.json"))
        such = f", such as {runs[0].parent}" if runs else ""
        raise InputError(path, "is an execution, or a side of one, of several runs", f"give one run{such}")


def _explain_missing_run(path: Path) -> None:
    journals = sorted(path.glob("*/journal"))
    if journals:
        raise InputError(
            path,
            "contains a journal and no run.json: the recorder was killed",
            f"run `loadprint-collect finish {path}`",
        )
    below = sorted(path.glob("*/execution.json"))
    if below:
        raise InputError(path, "contains executions", f"give one of them, such as {below[-1].parent}")
    empty = not any(path.iterdir())
    raise InputError(
        path, "is empty" if empty else "contains no run.json", "give a directory that Loadprint recorded"
    )


def _optional(path: Path, model: type[Model], problems: list[str]) -> Model | None:
    if path.is_file():
        return read(path, model)
    in_role = path.name != "manifest.json"
    problems.append(f"{path.parent.name}/{path.name} is missing" if in_role else f"{path.name} is missing")
    return None


def check_manifest(run: Run) -> list[str]:
    """Compare every file with manifest.json: one line for each difference, with the file's name."""
    if run.manifest is None:
        return []
    wrong = []
    for name, entry in sorted(run.manifest.files.items()):
        path = run.path / name
        if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(run.path)):
            wrong.append(f"{name} is in manifest.json and outside of the run directory")
        elif not path.is_file():
            wrong.append(f"{name} is in manifest.json and does not exist")
        elif path.stat().st_size != entry.bytes:
            wrong.append(f"{name} has {path.stat().st_size} bytes, in manifest.json {entry.bytes}")
        elif f"{crc32c_file(path):08x}" != entry.crc32c:
            wrong.append(f"{name} does not match its checksum in manifest.json")
    return wrong


def require_intact(run: Run) -> None:
    """Raise InputError for the first file that differs from the manifest."""
    for problem in check_manifest(run):
        name, _, what = problem.partition(" ")
        # run.json is written before the manifest: an interruption in between leaves an older manifest
        fix = f"run `loadprint-collect finish {run.path}`" if name == "run.json" else COPY_AGAIN
        raise InputError(run.path / name, what, fix)
