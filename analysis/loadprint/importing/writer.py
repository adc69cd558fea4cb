"""Writes the recording of another tool as a run directory (docs/recording-format.md).

Such a run has no generator and one clock: all stamps are the tool's times, CLOCK_REALTIME. The boot_id is
null, so they are not read as monotonic. Facts that the tool did not record are null.
"""

from __future__ import annotations

import contextlib
import json
import secrets
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from loadprint.errors import InputError
from loadprint.importing.recorded_tables import LAYOUTS
from loadprint.importing.values import Array, Imported, ImportedTable
from loadprint.reading import bounds
from loadprint.reading.crc32c import crc32c_file
from loadprint.reading.documents import FORMAT_VERSION
from loadprint.safe_files import Directory

WRITER = "loadprint import"
ROLE = "server"
LATEST = (1 << 63) - 1  # ns since 1970
FACTS = (
    "host",
    "boot_id",
    "kernel",
    "cmdline",
    "user_hz",
    "config_hz",
    "cpu_accounting",
    "cpus",
    "mitigations",
    "memory",
    "sysctl",
    "thp",
    "governor",
    "clocksource",
    "block_devices",
    "storage",
    "nics",
    "virtualisation",
    "cpusets",
)


def write_run(out: Path, imported: Imported) -> Path:
    """Write a complete run directory, or none at all. Raises InputError."""
    out = out.absolute()  # `.` has no name
    _require_recording(out, imported)
    try:
        temporary = Directory.new(out.with_name(f".{out.name}-{secrets.token_hex(4)}"))
        try:
            _write_parts(temporary.by_descriptor, out.name, imported)
            temporary.path.rename(out)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.remove()
            raise
    except OSError as error:
        what = error.strerror or "cannot be written"
        raise InputError(error.filename or out, what, "give another directory with --out") from error
    return out


def _require_recording(out: Path, imported: Imported) -> None:
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(out, "already exists", "give a new directory with --out")
    place = ", ".join(imported.sources)
    times = imported.realtime_ns
    if len(times) < 2:
        raise InputError(place, f"contains {len(times)} points in time", "import two or more")
    if not 0 <= times[0] <= times[-1] <= LATEST:
        raise InputError(place, "its times are not between 1970 and 2262", "correct the times")
    if len(times) * len(imported.tables) > bounds.IMPORTED_TICKS:
        raise InputError(place, f"contains {len(times):,} points in time, too many", "import a shorter span")
    if any(later <= earlier for earlier, later in pairwise(times)):
        raise InputError(place, "its times do not increase", "give each point in time once")


def _write_parts(run: Path, name: str, imported: Imported) -> None:
    (run / ROLE).mkdir()
    (run / "load").mkdir()
    for table in imported.tables:
        _write_table(run / ROLE / f"{table.name}.parquet", table, imported)
    _write_ticks(run / ROLE / "ticks.parquet", imported)
    facts: dict[str, Any] = {**dict.fromkeys(FACTS), **imported.facts}
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


def _described(name: str, imported: Imported, **more: Any) -> bytes:
    times = imported.realtime_ns
    described = {
        "format_version": FORMAT_VERSION,
        "probe": name,
        "role": ROLE,
        "interval_ns": int(median(later - earlier for earlier, later in pairwise(times))),
        "boot_id": None,
        "writer": f"{WRITER} {imported.kind}",
        **more,
    }
    return json.dumps(described, ensure_ascii=False).encode()


def _write_table(path: Path, table: ImportedTable, imported: Imported) -> None:
    layout = LAYOUTS.get(table.name)
    entity = table.entity or (layout.entity if layout else ("metric",))
    meanings = {name: dict(meaning) for name, meaning in table.meanings.items()}
    values = [name for name in table.columns if name not in entity]
    if layout:
        values = [*layout.columns, *(name for name in values if name not in layout.columns)]
        for name, (unit, kind) in layout.columns.items():
            meanings.setdefault(name, {"unit": unit, "kind": kind})
    arrays: dict[str, Array] = {"tick": pa.array(table.ticks, pa.uint32())}
    arrays |= {name: pa.array(table.columns[name], pa.string()) for name in entity}
    for name in values:
        given = table.columns.get(name)
        arrays[name] = _array(given, len(table.ticks), text=meanings.get(name, {}).get("kind") == "info")
    if table.shape == "metrics":
        arrays["tick"] = arrays.pop("tick")
        order = [*entity, "tick", *values]
        arrays = {name: arrays[name] for name in order}
    rows = pa.table(arrays).sort_by([(name, "ascending") for name in (*entity, "tick")])
    key = "metrics" if table.shape == "metrics" else "columns"
    more: dict[str, Any] = {"shape": table.shape, "entity": list(entity)}
    if table.source:
        more["source"] = table.source
    if key == "metrics":
        seen = set(pc.unique(rows["metric"]).to_pylist())
        meanings = {name: meaning for name, meaning in meanings.items() if name in seen}
    described = _described(table.name, imported, **more, **{key: meanings})
    pq.write_table(rows.replace_schema_metadata({"loadprint": described}), path, compression="zstd")


def _array(given: Sequence[Any] | Array | None, length: int, *, text: bool) -> Array:
    if given is None:
        return pa.nulls(length, pa.string() if text else pa.uint64())
    if isinstance(given, pa.Array):
        return given
    try:
        made: Array = pa.array(given)
    except (pa.ArrowInvalid, OverflowError):  # integers beyond 2^53 mixed with reals
        made = pa.array([None if value is None else float(value) for value in given], pa.float64())
    if pa.types.is_null(made.type):
        made = made.cast(pa.string() if text else pa.uint64())
    return made


def _write_ticks(path: Path, imported: Imported) -> None:
    """Write each probe at each tick: `ok` if its table has rows, else `skipped`."""
    times = imported.realtime_ns
    columns: dict[str, list[Any]] = {
        name: [] for name in ("tick", "probe", "at", "status", "missed", "reason")
    }
    for table in imported.tables:
        read = set(table.ticks)
        for tick, at in enumerate(times):
            ok = tick in read
            columns["tick"].append(tick)
            columns["probe"].append(table.name)
            columns["at"].append(at)
            columns["status"].append("ok" if ok else "skipped")
            columns["missed"].append(0)
            columns["reason"].append(None if ok else "the imported files have no data of it at this time")
    rows = pa.table(
        {
            "tick": pa.array(columns["tick"], pa.uint32()),
            "probe": pa.array(columns["probe"], pa.string()),
            **{
                name: pa.array(columns["at"], pa.int64())
                for name in ("intended_ns", "start_ns", "end_ns", "realtime_ns")
            },
            "status": pa.array(columns["status"], pa.string()),
            "missed": pa.array(columns["missed"], pa.uint32()),
            "reason": pa.array(columns["reason"], pa.string()),
        }
    ).sort_by([("probe", "ascending"), ("tick", "ascending")])
    described = _described(
        "ticks",
        imported,
        shape="table",
        entity=["probe"],
        probes=[{"name": table.name, "status": "running", "reason": None} for table in imported.tables],
        ticks=len(times),
        missed=0,
        torn_bytes=0,
        ended="imported",
    )
    pq.write_table(rows.replace_schema_metadata({"loadprint": described}), path, compression="zstd")
