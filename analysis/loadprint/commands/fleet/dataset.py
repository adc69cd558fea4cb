"""Where a fleet's files lie: a hive-partitioned Parquet data set, on a disk or in an object store.

`DATASET/<table>/campaign=<name>/execution=<id>/part.parquet`; the table `runs` has one row a run, every other
one is a probe's, as it was recorded, with the columns `run` and `host_role` before its own. Any engine that
reads Parquet reads it; docs/fleet.md describes the columns.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq

from loadprint.errors import InputError

FORMAT_VERSION = 1
RUNS, SETS = "runs", "cpusets"
PART = "part.parquet"


@dataclass(frozen=True)
class Dataset:
    """A place: a path, or a URL that fsspec knows (`s3://bucket/fleet`)."""

    url: str
    filesystem: Any
    root: str

    def path(self, table: str, campaign: str, execution: str) -> str:
        """Path of one part within its file system."""
        return f"{self.root}/{table}/campaign={_safe(campaign)}/execution={_safe(execution)}/{PART}"

    def tables(self) -> list[str]:
        """Names of the tables that are there."""
        if not self.filesystem.isdir(self.root):
            return []
        found = self.filesystem.ls(self.root, detail=True)
        return sorted(each["name"].rpartition("/")[2] for each in found if each["type"] == "directory")

    def glob(self, table: str) -> str:
        """Pattern of a table's parts, as DuckDB and ClickHouse read it."""
        local = "file" in _protocols(self.filesystem)
        root = self.root if local else f"{_protocols(self.filesystem)[0]}://{self.root.lstrip('/')}"
        return f"{root}/{table}/*/*/{PART}"


def open_dataset(url: str) -> Dataset:
    """Find the file system of a path or URL. Raises InputError where fsspec does not know it."""
    try:
        filesystem, root = fsspec.core.url_to_fs(url)
    except (ValueError, ImportError, OSError) as error:
        raise InputError(url, str(error).strip().split("\n", 1)[0], "name a directory or a URL") from error
    return Dataset(url, filesystem, str(root).rstrip("/"))


def require_version(dataset: Dataset) -> None:
    """Raise InputError where the place holds no data set, or a newer one."""
    marker = f"{dataset.root}/loadprint-fleet-version"
    try:
        version = int(dataset.filesystem.cat_file(marker))
    except (OSError, ValueError) as error:
        raise InputError(dataset.url, "is no fleet data set", "make one with `loadprint export`") from error
    if version > FORMAT_VERSION:
        what = f"format version {version}, this loadprint reads {FORMAT_VERSION}"
        raise InputError(dataset.url, what, "update it")


def mark_version(dataset: Dataset) -> None:
    """Write the format version beside the tables."""
    dataset.filesystem.makedirs(dataset.root, exist_ok=True)
    dataset.filesystem.pipe_file(f"{dataset.root}/loadprint-fleet-version", f"{FORMAT_VERSION}\n".encode())


def write_part(dataset: Dataset, path: str, table: pa.Table) -> int:
    """Write one part whole, and move it into place: who reads meanwhile sees the old one or the new one."""
    filesystem = dataset.filesystem
    filesystem.makedirs(path.rpartition("/")[0], exist_ok=True)
    written = f"{path}.new"
    with filesystem.open(written, "wb") as file:
        pq.write_table(table, file, compression="zstd")
    size = int(filesystem.size(written))
    filesystem.mv(written, path)
    return size


def _safe(name: str) -> str:
    """A partition's value without what paths and hive names give a meaning to."""
    return re.sub(r"[^A-Za-z0-9._+-]", "_", name) or "_"


def _protocols(filesystem: Any) -> tuple[str, ...]:
    named = filesystem.protocol
    return (named,) if isinstance(named, str) else tuple(named)
