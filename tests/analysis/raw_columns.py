"""Reads the columns that formulas name from a recording's files, without the analysis.

Everything is of the measure phase: a reading counts if its read was entirely inside. A counter's increase is
its last reading minus its first; a recording whose counters restart is not read by these functions.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from declarations import declared
from numpy.typing import NDArray

Rows = list[dict[str, Any]]
STORED_PER_TICK = frozenset({"idle", "iowait"})  # may decrease: their increase is at least 0


@dataclass(frozen=True)
class Amount:
    """Numbers, one for each entity or reading, or the counts of a histogram.

    An increase has its `seconds`, and `power` 1: the product of two has 2, the quotient of two 0.
    """

    values: NDArray[np.float64]
    seconds: float | None = None
    bounds: NDArray[np.float64] | None = None
    power: int = 0


class Columns:
    """The recorded columns of one run, whose server and load share a host."""

    def __init__(self, run: Path) -> None:
        self.path = run
        self.result, self.server = self._json("load/result.json"), self._json("load/server.json")
        self.fingerprint = self._json("server/fingerprint.json")
        stamps = [json.loads(line) for line in (run / "load/phases.jsonl").read_text().splitlines()]
        phase = {each["event"]: each["monotonic_ns"] for each in stamps if each["phase"] == "measure"}
        self.phase = phase
        self.middle: dict[str, dict[int, float]] = defaultdict(dict)
        for row in pq.read_table(run / "server/ticks.parquet").to_pylist():
            inside = row["start_ns"] >= phase["begin"] and row["end_ns"] <= phase["end"]
            if inside and row["status"] == "ok":
                self.middle[row["probe"]][row["tick"]] = (row["start_ns"] + row["end_ns"]) / 2
        self.table, self.by_entity = cache(self._table), cache(self._by_entity)

    def _json(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.path / name).read_text())
        return found

    def _table(self, name: str) -> tuple[Rows, tuple[str, ...], dict[str, Any]]:
        """Rows in the measure phase ordered by tick, entity columns and metadata."""
        table = pq.read_table(self.path / "server" / f"{name}.parquet")
        described = json.loads(table.schema.metadata[b"loadprint"])
        shape = ("metric",) if described.get("shape") == "metrics" else ENTITIES.get(name, ())
        entity = tuple(described.get("entity") or shape)
        rows = [row for row in table.to_pylist() if row["tick"] in self.middle[name]]
        return sorted(rows, key=lambda row: int(row["tick"])), entity, described

    def _by_entity(self, table: str) -> dict[tuple[Any, ...], Rows]:
        """Rows by entity; a process with the number of another one has another start time."""
        rows, entity, _ = self.table(table)
        keys = (*entity, "starttime") if table == "process" else entity
        found: dict[tuple[Any, ...], Rows] = defaultdict(list)
        for row in rows:
            found[tuple(row.get(key) for key in keys)].append(row)
        return found

    def seconds(self, table: str, rows: Iterable[Mapping[str, Any]]) -> float:
        """Seconds between the reads of the first and the last row."""
        stamps = [self.middle[table][row["tick"]] for row in rows]
        return (max(stamps) - min(stamps)) / 1e9

    def number(self, name: str) -> float | None:
        """A number of result.json, a server variable, of the fingerprint, or of the CPUs of a set."""
        table, _, rest = name.partition(".")
        if rest.endswith(".CPUs"):
            listed = {row["cpu"] for row in self.table("cpu")[0]} - {"all"}
            side = rest.removesuffix(".CPUs")
            return float(len(listed if side == "host" else listed & self.cpus(side))) or None
        if name in ("HZ", "page_size"):
            return float(self.fingerprint.get({"HZ": "user_hz"}.get(name, name)) or {"page_size": 4096}[name])
        found: Any = self.result if table == "load" else self.server["variables"]
        while rest:
            key = next((key for key in found if rest == key or rest.startswith(f"{key}.")), None)
            if key is None:
                return None
            found, rest = found[key], rest.removeprefix(key).removeprefix(".")
        return None if found is None else float(found)

    def rate(self, name: str) -> Any:  # noqa: PLR0911
        """A quantity in base units, that of a counter per second; None if it was not recorded."""
        table, _, rest = name.partition(".")
        seconds = self.result["seconds"]
        if name == "load.seconds" or (table == "load" and rest.startswith(("transactions.", "threads"))):
            number = self.number(name)
            return number and number * (1e-3 if "_ms" in name else 1)
        if table == "load":
            place: str | None = re.sub(r"errors\.(.+)\.count", r"errors_by_code.\1", rest)
            if place == "time_wait":
                place = "details.sockets.after.tcp_time_wait"
            number = self.number(f"load.{place}")
            if number is None and rest == "retries":
                number = self.number("load.errors")
            as_it_is = rest in ("rate", "achieved_rate", "backlog_max", "backlog_end", "time_wait")
            return number if number is None or as_it_is else number / seconds
        if table in ("latency", "type", "details"):
            kind, _, figure = rest.rpartition(".")
            place = {"latency": f"latency_ms.{rest}", "details": f"details.{rest}"}.get(table)
            number = self.number(f"load.{place or f'transactions.{kind}.latency_ms.{figure}'}")
            return number and number * (1 if table == "details" else 1e-3)
        if table == "variables" or name.endswith(".cores"):
            return self.number(name.replace(".cores", ".CPUs"))
        if table == "perf":
            value, enabled, running = (
                self.increase(f"{name}.{column}") for column in ("value", "enabled_ns", "running_ns")
            )
            if value is None or enabled is None or running is None or value.seconds is None:
                return None
            return value.values * enabled.values / running.values / value.seconds
        if table == "process" and rest.endswith(".cpu"):
            times = [self.rate(name.replace(".cpu", f".{part}")) for part in ("utime", "stime")]
            return None if None in times else sum(times)
        recorded = {"host": f"cpu.all.{rest}", "interrupts": f"{name}.count", "softirqs": f"{name}.count"}
        risen = self.increase(recorded.get(table, name))
        if risen is None or risen.seconds is None:
            return None
        own = 1.0 if rest in ("Questions", "Queries") and table == "status" else 0.0
        return (risen.values - own) * self.unit(recorded.get(table, name)) / risen.seconds

    def unit(self, name: str) -> float:
        """The declared unit of a column in base units."""
        table, *parts = name.split(".")
        places = ((SOURCES.get(table, table), column) for column in (parts[-1], ".".join(parts)))
        unit = next((DECLARED[place] for place in places if place in DECLARED), "1")
        if unit == "tick":
            return 1 / float(self.fingerprint["user_hz"])
        if unit == "page" and table != "mysql":
            return float(self.fingerprint.get("page_size") or 4096)
        return UNITS.get(unit, 1.0)

    def increase(self, name: str) -> Amount | None:
        """Increase of a counter: of each entity where the name has a `*`, of a CPU set or role their sum."""
        table, _, rest = name.partition(".")
        if table == "status" or (table == "mysql" and not (self.path / "server/mysql.parquet").is_file()):
            ends = [self.server.get(f"status_{end}", {}).get(rest) for end in ("begin", "end")]
            if None in ends:
                return None
            return Amount(np.array([float(ends[1]) - float(ends[0])]), self.result["seconds"], power=1)
        if table == "threads":
            return self._of_threads(*rest.split("."))
        entities = self._entities(name)
        rises = {key: _risen(rows, column) for key, (rows, column) in entities.items()}
        known = {key: rise for key, rise in rises.items() if rise is not None}
        if not known:
            return None
        whole = [row for rows, _ in entities.values() for row in rows]
        seconds = self.seconds(SOURCES.get(table, table), whole)
        if name.endswith(".buckets"):
            bounds = self.table(table)[2]["columns"]["buckets"]["bounds"]
            edges = np.array([np.inf if bound is None else bound for bound in bounds], dtype=float)
            return Amount(np.sum(list(known.values()), axis=0), seconds, edges, power=1)
        listed = np.array(list(known.values()), dtype=float)
        apart = table in LISTED or "*" in name
        return Amount(listed if apart else listed.sum(keepdims=True), seconds, power=1)

    def readings(self, name: str) -> Amount | None:
        """Readings of a gauge in the order of the ticks."""
        if not self._has(name.partition(".")[0]):
            return None
        listed = [
            row[column] for rows, column in self._entities(name).values() for row in rows if column in row
        ]
        known = np.array([each for each in listed if each is not None], dtype=float)
        return Amount(known) if len(known) else None

    def rates(self, name: str) -> Amount | None:
        """Increase of a counter per second, in each interval or second."""
        table, _, column = name.partition(".")
        if table != "throughput":
            read = self.readings(name)
            times = np.array(sorted(self.middle[table].values())) / 1e9
            return None if read is None else Amount(np.diff(read.values) / np.diff(times))
        rows = pq.read_table(self.path / "load/throughput.parquet").to_pylist()
        counts: dict[int, float] = defaultdict(float)
        ends = {}
        for row in rows:
            counts[row["second"]] += row[column]
            ends[row["second"]] = min(row.get("monotonic_ns", np.nan), self.phase["end"])
        if np.isnan(list(ends.values())).any():  # the last second may be partial
            return Amount(np.array([counts[second] for second in sorted(counts)[:-1]]))
        lengths = np.diff([ends[second] for second in sorted(ends)], prepend=self.phase["begin"]) / 1e9
        rates = np.array([counts[second] for second in sorted(counts)]) / lengths
        return Amount(np.repeat(rates, np.round(lengths).astype(int)))

    def _of_threads(self, role: str, column: str) -> Amount:
        """A thread that appears after the first tick counts from zero."""
        rows, _, _ = self.table("threads")
        first, threads = min(row["tick"] for row in rows), defaultdict(list)
        for row in rows:
            if row["role"] == role:
                threads[row["pid"], row["tid"]].append(row)
        born = (0.0 if each[0]["tick"] > first else each[0][column] for each in threads.values())
        total = sum(each[-1][column] for each in threads.values()) - sum(born)
        return Amount(np.array([total], dtype=float), self.seconds("threads", rows), power=1)

    def _entities(self, name: str) -> dict[Any, tuple[Rows, str]]:
        """The rows of each entity that a name means, and their column."""
        table, *parts = name.split(".")
        middle, column = parts[:-1], parts[-1]
        source = SOURCES.get(table, table)
        if not self._has(source):
            return {}
        if self.table(source)[1] == ("metric",):
            middle, column = parts, "value"
        pattern = re.compile(r"\.".join(".+" if part == "*" else re.escape(part) for part in middle))
        found = {}
        for key, rows in self.by_entity(source).items():
            is_meant = (
                CHOSEN[table](self, middle, rows[0])
                if table in CHOSEN
                else not middle or pattern.fullmatch(".".join(map(str, key)))
            )
            if is_meant:
                found[key] = rows, column
        return found

    def _has(self, table: str) -> bool:
        return (self.path / "server" / f"{table}.parquet").is_file()

    def counted(self, side: str) -> set[str]:
        """The recorder's sum over a set in `interrupts` and `softirqs`, else its CPUs."""
        rows = self.table("interrupts")[0]
        return {side} if any((row["line"], row["cpus"]) == ("all", side) for row in rows) else self.cpus(side)

    def disks(self, role: str) -> list[str]:
        """The disks with the server's data, redo log or binary log."""
        found: list[str] = next(each["disks"] for each in self.fingerprint["storage"] if each["role"] == role)
        return found

    def cpus(self, side: str) -> set[str]:
        """The CPUs of a set."""
        sets: dict[str, list[int]] = self.fingerprint["cpusets"]
        if side in ("all", "host"):
            return {"all"}
        if side == "siblings":
            listed = self.fingerprint["cpus"]["list"]
            cores = {each["cpu"]: each["siblings"] for each in listed}
            mine = {cores[cpu]: cpu for cpu in sets["server"]}
            return {str(cpu) for cpu, core in cores.items() if core in mine and mine[core] != cpu}
        return {str(cpu) for cpu in sets[side]}


DECLARED = {(probe.name, name): unit for probe in declared() for name, unit in probe.units.items()}
UNITS = {
    "ms": 1e-3,
    "us": 1e-6,
    "ns": 1e-9,
    "ps": 1e-12,
    "sector": 512.0,
    "kB": 1024.0,
    "uJ": 1e-6,
    "kHz": 1e3,
}
LISTED = frozenset({"cgroup", "nvme"})
SOURCES = {"storage": "disk"}
# of recordings without `entity` in their metadata
ENTITIES = {
    "cpu": ("cpu",),
    "interrupts": ("line", "cpus"),
    "softirqs": ("kind", "cpus"),
    "disk": ("device",),
    "nic": ("interface",),
    "pressure": ("resource", "severity"),
    "process": ("role", "pid"),
}
Chooser = Callable[[Columns, list[str], Mapping[str, Any]], bool]
CHOSEN: dict[str, Chooser] = {
    "cpu": lambda of, parts, row: row["cpu"] in of.cpus(parts[0]),
    "frequency": lambda of, parts, row: row["cpu"] in of.cpus(parts[0]),
    "storage": lambda of, parts, row: row["device"] in of.disks(parts[0]),
    "interrupts": lambda of, parts, row: row["line"] == "all" and row["cpus"] in of.counted(*parts),
    "softirqs": lambda of, parts, row: row["kind"] == "all" and row["cpus"] in of.counted(*parts),
    "process": lambda _, parts, row: row["role"] == parts[0],
    "sockets": lambda _, parts, row: row["role"] == parts[0],
    "cgroup": lambda _, parts, row: row["role"] == parts[0] and row["quota_us"] is not None,
    "nic": lambda _, parts, row: re.sub(r"lp\d+n\d+", "veth", row["interface"]) == ".".join(parts),
    "energy": lambda _, parts, row: (
        row["control"] == "intel-rapl"
        and row["zone"].startswith("package")
        and ("dram" in row["zone"] if parts[0] == "dram" else "/" not in row["zone"])
    ),
    "perf": lambda _, parts, row: (row["cpus"], row["event"]) == tuple(parts),
    "ebpf_tcp": lambda of, parts, row: (
        (row["side"], row["port"]) == (parts[1], of.server["variables"]["port"])
    ),
}


def _risen(rows: Rows, column: str) -> Any:
    known = [row[column] for row in rows if row.get(column) is not None]
    if len(known) < 2:
        return None
    if column == "buckets":
        return np.array(known[-1], dtype=float) - np.array(known[0], dtype=float)
    assert column in STORED_PER_TICK or known == sorted(known), f"{column} restarted"
    return max(0.0, float(known[-1]) - float(known[0]))
