"""Writes the rows of recordings to a fleet's data set: one line for each run and row.

An export replaces the parts of an earlier export of the same execution.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from loadprint.commands.fleet import dataset
from loadprint.commands.fleet.run_rows import run_rows, table
from loadprint.errors import InputError
from loadprint.metrics.gather import gather
from loadprint.reading.queries import Store
from loadprint.reading.recording import Run
from loadprint.reading.sides import every_side, read_plan, single

SINGLE = "single-runs"


@dataclass(frozen=True)
class Exported:
    """The result of an export; `left_out` contains (run, reason)."""

    runs: int
    files: int
    bytes: int
    left_out: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class _Execution:
    campaign: str
    name: str
    runs: tuple[Run, ...]
    left_out: tuple[tuple[str, str], ...] = ()


def export(words: Sequence[Path], url: str) -> Exported:
    """Write the runs of executions and run directories.

    Raises InputError that names the file that cannot be read or written.
    """
    if any((Path(url) / name).is_file() for name in ("execution.json", "run.json")):
        raise InputError(url, "is a recording, not a data set", "name another directory")
    target = dataset.open_dataset(url)
    store, count, files, written = Store(), 0, 0, 0
    left_out: list[tuple[str, str]] = []
    try:
        for execution in _executions(words):
            left_out += execution.left_out
            lines = [
                line
                for run in execution.runs
                for line in run_rows(f"{execution.name}/{run.id}", gather(run, store))
            ]
            if not lines:
                continue
            if not files:
                dataset.require_version(target, is_new=True)
                dataset.mark_version(target)
            path = target.path(execution.campaign, execution.name)
            written += dataset.write_part(target, path, table(lines))
            files, count = files + 1, count + len(execution.runs)
    except OSError as error:
        raise InputError(url, str(error), "name a writable directory or URL") from error
    return Exported(count, files, written, tuple(left_out))


def _executions(words: Sequence[Path]) -> Iterator[_Execution]:
    # runs/*/* includes `latest`, a link to one of the executions
    for path in {path.resolve(): path for path in words}.values():
        if (path / "execution.json").is_file():
            yield _execution(path)
        else:
            (run,) = single(path).runs
            campaign = run.meta.campaign or SINGLE
            name = run.meta.execution or path.resolve().parent.name
            yield _Execution(campaign, f"{name}+{run.id}", (run,))


def _execution(path: Path) -> _Execution:
    document = read_plan(path)
    sides = list(every_side(path, document))
    return _Execution(
        document.campaign.name or "unnamed",
        path.resolve().name,
        tuple(run for side in sides for run in side.runs),
        tuple(missing for side in sides for missing in side.missing),
    )
