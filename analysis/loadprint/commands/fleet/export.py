"""Writes recordings to a fleet's data set: probes' tables, and one row of facts per run.

An export replaces the parts of an earlier export of the same execution.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from loadprint.commands.fleet import dataset, run_facts
from loadprint.errors import InputError
from loadprint.metrics.gather import gather
from loadprint.reading import bounds
from loadprint.reading.call_tree import read_call_tree
from loadprint.reading.queries import TEXT, Store, identifier, listed
from loadprint.reading.recording import Run, read_object
from loadprint.reading.sides import every_side, single

SINGLE = "single-runs"
PROFILE = "profile"


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


def export(words: Sequence[Path], url: str, tables: Sequence[str] | None = None) -> Exported:
    """Write the runs of executions and run directories; `tables` limits the probes, except `ticks`.

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
            for table, part in _parts(execution, store, tables):
                if not files:
                    dataset.mark_version(target)
                path = target.path(table, execution.campaign, execution.name)
                written += dataset.write_part(target, path, part)
                files += 1
            count += len(execution.runs)
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
            campaign = str(run.meta.get("campaign") or SINGLE)
            name = str(run.meta.get("execution") or path.resolve().parent.name)
            yield _Execution(campaign, f"{name}+{run.id}", (run,))


def _execution(path: Path) -> _Execution:
    document = read_object(path / "execution.json")
    sides = list(every_side(path, document))
    campaign = str((document.get("campaign") or {}).get("name") or "unnamed")
    return _Execution(
        campaign,
        path.resolve().name,
        tuple(run for side in sides for run in side.runs),
        tuple(missing for side in sides for missing in side.missing),
    )


def _parts(
    execution: _Execution, store: Store, wanted: Sequence[str] | None
) -> Iterator[tuple[str, pa.Table]]:
    """Yield the tables of an execution: one per probe with all its runs, then CPU sets and facts."""
    by_probe: dict[str, list[pa.Table]] = defaultdict(list)
    rows, cpus = [], []
    for run in execution.runs:
        key = f"{execution.name}/{run.id}"
        measured = gather(run, store)
        interfaces: set[str] = set()
        for role in run.roles:
            for probe in ("ticks", *run.probes(role)):
                if probe != "ticks" and wanted is not None and probe not in wanted:
                    continue
                path = run.path / role / f"{probe}.parquet"
                _require_short_texts(path, store)
                table = _raw(path, key, role)
                by_probe[probe].append(table)
                if probe == "nic":
                    interfaces |= {str(name) for name in table.column("interface").unique().to_pylist()}
        rows.append(run_facts.facts(key, measured, sorted(interfaces)))
        if run.roles:
            cpus += run_facts.sets(key, measured)
    for probe, tables in sorted(by_probe.items()):
        yield probe, pa.concat_tables(tables, promote_options="permissive")
    if rows:
        yield dataset.SETS, pa.Table.from_pylist(cpus, schema=run_facts.SET_COLUMNS)
        yield dataset.RUNS, run_facts.table(rows)


def _require_short_texts(path: Path, store: Store) -> None:
    """Raise InputError if a table's texts exceed memory: a dictionary packs 20 GB in 60 kB."""
    names = tuple(name for name, kind in store.kinds(path).items() if kind == TEXT)
    if not names:
        return
    sums = {f"c{n}": f"sum(length({identifier(name)}))::DOUBLE" for n, name in enumerate(names)}
    lengths = store.fetch(path, f"SELECT {listed(sums)} FROM t")
    if any(column[0] > bounds.EXPORTED for column in lengths.values()):
        what = f"a column contains more than {bounds.EXPORTED // bounds.MIB} MiB of text"
        raise InputError(path, what, "exclude the table with --tables")


def _raw(path: Path, key: str, role: str) -> pa.Table:
    """Read a probe's table, and insert the columns `run` and `host_role` before its columns."""
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowInvalid) as error:
        what = f"cannot be read ({str(error).splitlines()[0]})"
        raise InputError(path, what, "copy the run directory again") from error
    if path.stem == PROFILE:
        table = _with_functions(path, table)
    for name, value in (("host_role", role), ("run", key)):
        table = table.add_column(0, name, pa.array([value] * len(table), pa.string()).dictionary_encode())
    return table


def _with_functions(path: Path, table: pa.Table) -> pa.Table:
    """Samples with the functions of their stacks: the numbers of nodes have a meaning within one run only."""
    place, tree = table.schema.get_field_index("stack"), read_call_tree(path.with_name("stacks.json"))
    if place < 0:
        raise InputError(path, "has no column `stack`", "copy the run directory again")
    numbers = {str(node): node for node in range(len(tree.parents))}
    nodes = [str(node) for node in table.column("stack").to_pylist()]
    if unknown := next((node for node in nodes if node not in numbers), None):
        raise InputError(path, f"stack {unknown!r} is not in stacks.json", "copy the run directory again")
    texts = tree.folded(path, sorted({numbers[node] for node in nodes}))
    codes = {node: code for code, node in enumerate(texts)}
    indices = pa.array([codes[numbers[node]] for node in nodes], pa.int32())
    stacks = pa.DictionaryArray.from_arrays(indices, pa.array(list(texts.values()), pa.string()))
    return table.set_column(place, "stack", stacks)
