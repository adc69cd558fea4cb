"""Writes the recording of another tool as a run directory (docs/recording-format.md).

Such a run has no generator and one clock: all stamps are the tool's times, CLOCK_REALTIME. The boot_id is
null, so they are not read as monotonic. Facts that the tool did not record are null.
"""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from loadprint.errors import InputError, as_input_error
from loadprint.importing.imported import LAYOUTS, Array, Imported, ImportedTable
from loadprint.reading import bounds
from loadprint.reading.crc32c import crc32c_file
from loadprint.reading.documents import FORMAT_VERSION
from loadprint.safe_files import require_output

WRITER = "loadprint import"
ROLE = "server"
LATEST = (1 << 63) - 1  # ns since 1970
NAMES = (
    "host boot_id kernel cmdline user_hz config_hz cpu_accounting cpus mitigations memory sysctl thp governor"
    " clocksource block_devices storage nics virtualisation cpusets"
)
FACTS = dict.fromkeys(NAMES.split())


def write_run(out: Path, imported: Imported) -> Path:
    """Write a complete run directory, or none at all. Raises InputError."""
    out = out.absolute()  # `.` has no name
    _require_recording(out, imported)
    with as_input_error(out, "give another directory with --out"):
        require_output(out.parent, create=True)
        temporary = out.with_name(f".{out.name}-{secrets.token_hex(4)}")
        try:
            temporary.mkdir()
            _write_parts(temporary, out.name, imported)
            temporary.rename(out)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
    return out


def _require_recording(out: Path, imported: Imported) -> None:
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(out, "already exists", "give a new directory with --out")
    place = ", ".join(imported.sources)
    times = imported.realtime_ns
    if len(times) < 2:
        raise InputError(place, f"contains {len(times)} points in time", "import two or more")
    if not imported.tables:
        raise InputError(place, "contains no table that is imported", "import the source with all its data")
    if not 0 <= times[0] <= times[-1] <= LATEST:
        raise InputError(place, "its times are not between 1970 and 2262", "correct the times")
    if len(times) * len(imported.tables) > bounds.IMPORTED_TICKS:
        raise InputError(place, f"contains {len(times):,} points in time, too many", "import a shorter span")


def _write_parts(run: Path, name: str, imported: Imported) -> None:
    (run / ROLE).mkdir()
    (run / "load").mkdir()
    for table in imported.tables:
        _write_table(run / ROLE / f"{table.name}.parquet", table, imported)
    _write_ticks(run / ROLE / "ticks.parquet", imported)
    facts: dict[str, Any] = {**FACTS, **imported.facts}
    _write_json(run / ROLE / "fingerprint.json", facts)
    begin, end = imported.realtime_ns[0], imported.realtime_ns[-1]
    first, last = imported.measure or (0, len(imported.realtime_ns) - 1)
    stamps = [
        {"phase": "measure", "event": event, "monotonic_ns": at, "realtime_ns": at, "boot_id": None}
        for event, at in (("begin", imported.realtime_ns[first]), ("end", imported.realtime_ns[last]))
    ]
    (run / "load" / "phases.jsonl").write_text("".join(json.dumps(stamp) + "\n" for stamp in stamps))
    meta = {
        "format_version": FORMAT_VERSION,
        "id": name,
        "roles": {ROLE: {"host": facts["host"], "cpus": None}},
        "status": "complete",
        "imported": {"kind": imported.kind, "sources": [str(source) for source in imported.sources]},
        "started_realtime_ns": begin,
        "ended_realtime_ns": end,
        **imported.meta,
    }
    _write_json(run / "run.json", meta)
    files = {
        str(path.relative_to(run)): {"bytes": path.stat().st_size, "crc32c": f"{crc32c_file(path):08x}"}
        for path in sorted(run.rglob("*"))
        if path.is_file()
    }
    _write_json(run / "manifest.json", {"format_version": FORMAT_VERSION, "files": files})


def _write_json(path: Path, value: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _store(path: Path, rows: pa.Table, imported: Imported, **described: Any) -> None:
    """Write a table in the order of its entities, with the recorder's metadata."""
    times = imported.realtime_ns
    metadata = {
        "format_version": FORMAT_VERSION,
        "probe": path.stem,
        "role": ROLE,
        "interval_ns": int(median(later - earlier for earlier, later in pairwise(times))),
        "boot_id": None,
        "writer": f"{WRITER} {imported.kind}",
        **described,
    }
    rows = rows.sort_by([(name, "ascending") for name in (*described["entity"], "tick")])
    encoded = json.dumps(metadata, ensure_ascii=False).encode()
    pq.write_table(rows.replace_schema_metadata({"loadprint": encoded}), path, compression="zstd")


def _write_table(path: Path, table: ImportedTable, imported: Imported) -> None:
    layout = LAYOUTS.get(table.name)
    metrics = [name for name in ("endpoint", "metric") if name in table.columns]
    entity = list(layout.entity) if layout else metrics
    meanings = {name: dict(meaning) for name, meaning in table.meanings.items()}
    values = [name for name in table.columns if name not in entity]
    if layout:
        values = [*layout.columns, *(name for name in values if name not in layout.columns)]
        for name, (unit, kind) in layout.columns.items():
            meanings.setdefault(name, {"unit": unit, "kind": kind})
    arrays: dict[str, Array] = {name: pa.array(table.columns[name], pa.string()) for name in entity}
    for name in values:
        text = meanings.get(name, {}).get("kind") == "info"
        arrays[name] = _array(table.columns.get(name), len(table.ticks), pa.string() if text else pa.uint64())
    arrays["tick"] = pa.array(table.ticks, pa.uint32())
    shape, key, order = "table", "columns", ["tick", *entity, *values]
    if not layout:
        shape, key, order = "metrics", "metrics", [*entity, "tick", *values]
        seen = set(pc.unique(arrays["metric"]).to_pylist())
        meanings = {name: meaning for name, meaning in meanings.items() if name in seen}
    described: dict[str, Any] = {"shape": shape, "entity": entity}
    described |= {"source": table.source} if table.source else {}
    _store(path, pa.table(arrays).select(order), imported, **described, **{key: meanings})


def _array(given: Sequence[Any] | Array | None, length: int, missing: Any) -> Array:
    """The values of a column; `missing` is the type of one without values."""
    if given is None:
        empty: Array = pa.nulls(length, missing)
        return empty
    if isinstance(given, pa.Array):
        return given
    try:
        made: Array = pa.array(given)
    except (pa.ArrowInvalid, OverflowError):  # integers beyond 2^53 mixed with reals
        made = pa.array([None if value is None else float(value) for value in given], pa.float64())
    typed: Array = made.cast(missing) if pa.types.is_null(made.type) else made
    return typed


def _write_ticks(path: Path, imported: Imported) -> None:
    """Write each probe at each tick: `ok` if its table has rows, else `skipped`."""
    times, names = imported.realtime_ns, [table.name for table in imported.tables]
    read = [ok for table in imported.tables for ok in np.isin(range(len(times)), table.ticks).tolist()]
    stamps = pa.array(np.tile(np.array(times, np.int64), len(names)))
    missing = "the imported files have no data of it at this time"
    columns = {
        "tick": pa.array(np.tile(np.arange(len(times), dtype=np.uint32), len(names))),
        "probe": pa.array(np.repeat(names, len(times)), pa.string()),
        **dict.fromkeys(("intended_ns", "start_ns", "end_ns", "realtime_ns"), stamps),
        "status": pa.array(["ok" if ok else "skipped" for ok in read], pa.string()),
        "missed": pa.array(np.zeros(len(read), np.uint32)),
        "reason": pa.array([None if ok else missing for ok in read], pa.string()),
    }
    _store(
        path,
        pa.table(columns),
        imported,
        shape="table",
        entity=["probe"],
        probes=[{"name": name, "status": "running", "reason": None} for name in names],
        ticks=len(times),
        missed=0,
        torn_bytes=0,
        ended="imported",
    )
