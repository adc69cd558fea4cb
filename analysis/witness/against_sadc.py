"""Compares a recording with sadc over the same time: totals of counters, not means of rates.

    /usr/lib/sysstat/sadc -S XALL 1 60 FILE &  loadprint-collect record --duration 60s --out RUN
    .venv/bin/python analysis/witness/against_sadc.py RUN FILE

The raw counters of the sa file come from `sadf -r -O debug` (sadf(1)) with the uptime at which sadc read
them; the recording's counters are interpolated linearly to these times. sadc's times have a resolution of
10 ms, so a counter that changes in bursts may differ by one burst. If the run has a load, only its phase
`measure` counts. Exit status 1 if a row differs by more than the tolerance.
"""

from __future__ import annotations

import argparse
import json
import math
import shlex
import subprocess
import sys
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np

Series = list[tuple[float, float]]
"""(seconds since boot, counter)"""

ENTITY = {"cpu": "cpu", "disk": "device", "nic": "interface"}
CPU = {
    "user": "%usr",
    "system": "%sys",
    "iowait": "%iowait",
    "idle": "%idle",
    "softirq": "%soft",
    "steal": "%steal",
}
DISK = {"read_sectors": "rkB/s", "write_sectors": "wkB/s"}
NIC = {"rx_bytes": "rxkB/s", "tx_bytes": "txkB/s", "rx_packets": "rxpck/s", "tx_packets": "txpck/s"}


def sadc_counters(path: Path) -> dict[tuple[str, str], Series]:
    """Read {(entity, sadf's name): series}; the entity is `cpu`, `all`, a device or an interface."""
    command = shlex.split(f"sadf -r -O debug -t {shlex.quote(str(path))} -- -u ALL -w -I SUM -d -n DEV")
    text = subprocess.run(command, capture_output=True, text=True, check=True, env={"LC_ALL": "C"}).stdout
    series: dict[tuple[str, str], Series] = defaultdict(list)
    uptime = 0.0
    for line in text.splitlines():
        words = [word.strip() for word in line.rstrip(";").split(";")]
        if line.startswith("# uptime_cs"):
            uptime = int(words[1]) / 100
        elif not line.startswith("#"):
            entity, counters = parse_line(words[1:])
            for name, value in counters:
                series[entity, name].append((uptime, value))
    return series


def parse_line(words: list[str]) -> tuple[str, list[tuple[str, float]]]:
    """Split `IFACE; lo; rxpck/s; previous; current; …` into the entity and the current counters."""
    entity = "all"
    if words[0] in {"CPU", "INTR"}:
        entity = words[0].lower()
    elif words[0] in {"IFACE", "major"}:
        entity = words[1] if words[0] == "IFACE" else words[words.index("DEV") + 1]
    counters = []
    for position, word in enumerate(words[:-2]):
        numbers = words[position + 1 : position + 3]
        if not is_number(word) and all(is_number(number) for number in numbers):
            name = "intr" if entity == "intr" else word
            counters.append((name, float(numbers[1])))
    return entity, counters


def is_number(word: str) -> bool:
    """Return whether sadf printed a number."""
    return word.lstrip("-").replace(".", "", 1).isdigit()


def uptime_at_zero() -> float:
    """Return the uptime at which CLOCK_MONOTONIC was 0: it stops while the machine is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) - time.clock_gettime(time.CLOCK_MONOTONIC)


@dataclass
class Recording:
    """The tables of one role of a run, read by DuckDB with no code of the project."""

    folder: Path

    def series(self, probe: str, column: str, entity: str) -> Series:
        """Return one counter of one entity, with the middle of each read as its time."""
        query = f"""
            SELECT (start_ns + end_ns) / 2e9 + {uptime_at_zero()}, {column}::DOUBLE
            FROM '{self.folder}/{probe}.parquet' JOIN '{self.folder}/ticks.parquet' USING (tick)
            WHERE probe = ? AND {ENTITY[probe]} = ? AND {column} IS NOT NULL ORDER BY tick"""
        return duckdb.execute(query, [probe, entity]).fetchall()

    def measured(self) -> tuple[float, float]:
        """Return the first and last tick of the phase `measure`, or all time if the run has no phases.

        Ticks, because the load pauses between the last tick before the phase and the first one in it.
        """
        phases = self.folder.parent / "load" / "phases.jsonl"
        if not phases.exists():
            return -math.inf, math.inf
        stamps = [json.loads(line) for line in phases.read_text().splitlines()]
        begin, end = [stamp["monotonic_ns"] for stamp in stamps if stamp["phase"] == "measure"]
        query = f"""SELECT min(end_ns) / 1e9, max(start_ns) / 1e9 FROM '{self.folder}/ticks.parquet'
            WHERE start_ns >= ? AND end_ns <= ?"""
        first, last = duckdb.execute(query, [begin, end]).fetchall()[0]
        return first + uptime_at_zero(), last + uptime_at_zero()

    def entities(self, probe: str) -> list[str]:
        """List the entities of a table probe."""
        query = f"SELECT DISTINCT {ENTITY[probe]} FROM '{self.folder}/{probe}.parquet' ORDER BY 1"
        return [row[0] for row in duckdb.execute(query).fetchall()]


def deltas(ours: Series, theirs: Series) -> tuple[float, float]:
    """Give (our, their) difference between the first and last stamp of theirs that ours covers."""
    inside = [point for point in theirs if ours[0][0] <= point[0] <= ours[-1][0]]
    if len(inside) < 2:
        sys.exit("against_sadc: the sa file and the recording do not overlap; record both over the same time")
    (begin, first), (end, last) = inside[0], inside[-1]
    at = np.interp([begin, end], [stamp for stamp, _ in ours], [value for _, value in ours])
    return float(at[1] - at[0]), last - first


def rows(run: Recording, sadc: dict[tuple[str, str], Series]) -> list[tuple[str, float, float]]:
    """List (name, ours, theirs) of every counter that both have."""
    wanted = [(f"cpu {mine}", run.series("cpu", mine, "all"), ("cpu", name)) for mine, name in CPU.items()]
    wanted.append(("context switches", run.series("cpu", "ctxt", "all"), ("all", "cswch/s")))
    wanted.append(("interrupts", run.series("cpu", "intr", "all"), ("intr", "intr")))
    for probe, names in (("disk", DISK), ("nic", NIC)):
        for entity in run.entities(probe):
            wanted += [
                (f"{entity} {mine}", run.series(probe, mine, entity), (entity, name))
                for mine, name in names.items()
                if (entity, name) in sadc
            ]
    counters = [(name, *deltas(ours, sadc[key])) for name, ours, key in wanted]
    devices = [device for device in run.entities("disk") if (device, "tps") in sadc]
    return counters + [(f"{device} await ms", *await_ms(run, sadc, device)) for device in devices]


def await_ms(run: Recording, sadc: dict[tuple[str, str], Series], device: str) -> tuple[float, float]:
    """Give (our, their) mean wait of reads, writes and discards together, in ms (iostat(1), await)."""

    def total(columns: str, names: str) -> tuple[float, float]:
        series = [run.series("disk", column, device) for column in columns.split()]
        ours = sum(deltas(one, sadc[device, "tps"])[0] for one in series)
        return ours, sum(deltas(series[0], sadc[device, name])[1] for name in names.split())

    ios, their_ios = total("reads writes discards", "tps")
    ms, their_ms = total("read_ms write_ms discard_ms", "rd_ticks wr_ticks dc_ticks")
    return (ms / ios if ios else 0.0, their_ms / their_ios if their_ios else 0.0)


def main() -> int:
    """Print the rows; 1 when one is outside the tolerance."""
    parser = argparse.ArgumentParser(description="compare a recording with an sa file of the same time")
    parser.add_argument("run", type=Path, help="run directory")
    parser.add_argument("sa", type=Path, help="file written by sadc -S XALL over the same time")
    parser.add_argument("--role", default="server")
    parser.add_argument("--tolerance", type=float, default=0.02, help="allowed relative difference (0.02)")
    parser.add_argument(
        "--floor", type=float, default=50, help="a counter that moved less is not judged (50)"
    )
    arguments = parser.parse_args()
    bad = 0
    print(f"{'counter':28} {'loadprint':>16} {'sadc':>16} {'difference':>11}")
    run = Recording(arguments.run / arguments.role)
    begin, end = run.measured()
    sadc = {
        key: [point for point in series if begin <= point[0] <= end]
        for key, series in sadc_counters(arguments.sa).items()
    }
    for name, ours, theirs in rows(run, sadc):
        if ours == 0 and theirs == 0:
            continue
        difference = ours / theirs - 1 if theirs else float("inf")
        judged = "await" in name or theirs >= arguments.floor
        wrong = judged and abs(difference) > arguments.tolerance
        bad += wrong
        note = "  OUTSIDE" if wrong else "" if judged else "  (too few to judge)"
        print(f"{name:28} {ours:16,.2f} {theirs:16,.2f} {difference:+10.2%}{note}")
    print(f"tolerance {arguments.tolerance:.0%}; {bad} outside")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
