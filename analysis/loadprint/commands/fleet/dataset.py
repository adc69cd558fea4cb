"""Reads and writes a fleet's files: one table as a hive-partitioned Parquet data set, local or remote.

`DATASET/campaign=<name>/execution=<id>/part.parquet` has one line for each run and row. Any engine that
reads Parquet can read it; docs/fleet.md describes the columns.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import fsspec
import pyarrow as pa
import pyarrow.parquet as pq

from loadprint.errors import InputError, as_input_error
from loadprint.safe_files import replace, require_output

if TYPE_CHECKING:
    import ibis.expr.types as ir

FORMAT_VERSION = 2
PART = "part.parquet"
PARTITIONS = f"/campaign=([^/]*)/execution=([^/]*)/{PART}$"
PLACES = {"campaign": 1, "execution": 2}


@dataclass(frozen=True)
class Dataset:
    """The location of a data set: a path, or a URL that fsspec supports (`s3://bucket/fleet`)."""

    url: str
    filesystem: Any
    root: str

    def path(self, campaign: str, execution: str) -> str:
        """Return the path of one part within its file system."""
        return f"{self.root}/campaign={_safe(campaign)}/execution={_safe(execution)}/{PART}"

    def glob(self) -> str:
        """Return the pattern of the parts, as DuckDB and ClickHouse read it."""
        root = self.root if _is_local(self) else f"{_protocols(self.filesystem)[0]}://{self.root.lstrip('/')}"
        return f"{root}/*/*/{PART}"


def open_dataset(url: str) -> Dataset:
    """Find the file system of a path or URL. Raises InputError if fsspec does not support it."""
    try:
        filesystem, root = fsspec.core.url_to_fs(url)
    except (ValueError, ImportError, OSError) as error:
        raise InputError(url, str(error).strip().split("\n", 1)[0], "name a directory or a URL") from error
    return Dataset(url, filesystem, str(root).rstrip("/"))


def require_version(dataset: Dataset, *, is_new: bool = False) -> None:
    """Raise InputError if there is a data set of another format, or none unless `is_new`."""
    marker = f"{dataset.root}/loadprint-fleet-version"
    if is_new and not dataset.filesystem.exists(marker):
        return
    try:
        version = int(dataset.filesystem.cat_file(marker))
    except (OSError, ValueError) as error:
        raise InputError(dataset.url, "not a fleet data set", "create one with `loadprint export`") from error
    if version != FORMAT_VERSION:
        what = f"format version {version}, this loadprint reads {FORMAT_VERSION}"
        fix = "update loadprint" if version > FORMAT_VERSION else "export its runs into another directory"
        raise InputError(dataset.url, what, fix)


def on_duckdb(dataset: Dataset) -> ir.Table:
    """Open a data set with an embedded DuckDB; docs/fleet.md has other engines. Raises InputError."""
    import ibis  # noqa: PLC0415 - `export` does not need its memory

    require_version(dataset)
    backend = ibis.duckdb.connect()
    if not _is_local(dataset):
        backend.con.register_filesystem(dataset.filesystem)
    try:
        # DuckDB's hive partitioning would read the names of all parent directories
        lines = backend.read_parquet(dataset.glob(), hive_partitioning=False, filename=True)
    except duckdb.Error as error:
        what = str(error).strip().split("\n", maxsplit=1)[0]
        raise InputError(dataset.url, f"cannot be read ({what})", "export its runs again") from error
    partitions = {name: lines.filename.re_extract(PARTITIONS, place) for name, place in PLACES.items()}
    return lines.mutate(**partitions).drop("filename")


def mark_version(dataset: Dataset) -> None:
    """Write the format version into the data set. Raises InputError if root cannot trust its directory."""
    if _is_local(dataset):
        with as_input_error(dataset.root, "name another directory"):
            require_output(Path(dataset.root), create=True, shared=False)
    _write(dataset, f"{dataset.root}/loadprint-fleet-version", f"{FORMAT_VERSION}\n".encode())


def write_part(dataset: Dataset, path: str, table: pa.Table) -> int:
    """Write one part and return its bytes: concurrent readers get the old part or the new one."""
    buffer = pa.BufferOutputStream()
    pq.write_table(table, buffer, compression="zstd")
    content = buffer.getvalue().to_pybytes()
    _write(dataset, path, content)
    return len(content)


def _write(dataset: Dataset, path: str, content: bytes) -> None:
    """Write a file of a data set in one step. Raises OSError."""
    dataset.filesystem.makedirs(path.rpartition("/")[0], exist_ok=True)
    if _is_local(dataset):
        replace(Path(path), content)
        return
    temporary = f"{path}.new"
    dataset.filesystem.pipe_file(temporary, content)
    dataset.filesystem.mv(temporary, path)


def _safe(name: str) -> str:
    """Replace characters that are special in paths and hive partitions."""
    return re.sub(r"[^A-Za-z0-9._+-]", "_", name) or "_"


def _is_local(dataset: Dataset) -> bool:
    return "file" in _protocols(dataset.filesystem)


def _protocols(filesystem: Any) -> tuple[str, ...]:
    protocol = filesystem.protocol
    return (protocol,) if isinstance(protocol, str) else tuple(protocol)
