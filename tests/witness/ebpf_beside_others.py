"""What eBPF counted beside what /proc and the server's own counters say of the same thing, over one run.

    .venv/bin/python tests/witness/ebpf_beside_others.py RUN

Rates over the phase `measure`, and the difference of each source from eBPF's figure. They are read within
a tick of each other, not at one moment, and count at slightly different places: a thread that ends takes its
/proc counters with it; InnoDB's fsync counter does not know the binary log's. Compare with `sadc` by
tests/witness/against_sadc.py.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from loadprint.metrics import devices
from loadprint.metrics.gather import gather
from loadprint.metrics.quantities import Quantities
from loadprint.reading.queries import Store
from loadprint.reading.recording import open_run

Line = tuple[str, str, list[str], list[tuple[str, list[str]]]]


def lines(disk: str) -> Iterator[Line]:
    """Rows: label, unit, eBPF's quantities (added up), and the other sources' with their names."""
    server = "threads.server"
    yield (
        "voluntary switches, server",
        "/s",
        ["switches.server.voluntary"],
        [("/proc/PID/task/*/status", [f"{server}.voluntary_ctxt_switches"])],
    )
    yield (
        "involuntary switches, server",
        "/s",
        ["switches.server.involuntary"],
        [("/proc/PID/task/*/status", [f"{server}.nonvoluntary_ctxt_switches"])],
    )
    yield (
        "waiting for a CPU, server",
        "threads",
        ["sched.server.run queue.sum"],
        [("/proc/PID/task/*/schedstat", [f"{server}.run_delay_ns"])],
    )
    yield (
        "switches, whole host",
        "/s",
        ["switches.all.voluntary", "switches.all.involuntary"],
        [("/proc/stat ctxt (idle's too)", ["host.ctxt"])],
    )
    yield ("disk reads", "/s", [f"block.{disk}.read.device.count"], [("diskstats", [f"disk.{disk}.reads"])])
    writes = [f"block.{disk}.write.device.count", f"block.{disk}.write_fua.device.count"]
    yield ("disk writes", "/s", writes, [("diskstats", [f"disk.{disk}.writes"])])
    flushes = f"block.{disk}.flush.device"
    yield ("disk flushes", "/s", [f"{flushes}.count"], [("diskstats", [f"disk.{disk}.flushes"])])
    yield ("time in flushes", "s/s", [f"{flushes}.sum"], [("diskstats", [f"disk.{disk}.flush_ms"])])
    yield (
        "fsync and fdatasync, server",
        "/s",
        ["syscalls.server.sync"],
        [("Innodb_data_fsyncs (no binlog)", ["mysql.fsyncs"])],
    )
    yield (
        "statements (uprobe, if it was on)",
        "/s",
        ["statements.server.COM_QUERY.count", "statements.server.COM_STMT_EXECUTE.count"],
        [("Questions, less the probe's own", ["status.Questions"]), ("the client's", ["load.queries"])],
    )


def total(quantities: Quantities, names: list[str]) -> float | None:
    """Sum of the quantities that were measured; None when none was."""
    found = [quantity.rate for name in names if (quantity := quantities.get(name))]
    return sum(found) if found else None


def main() -> int:
    """Print a line per source."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path)
    measured = gather(open_run(parser.parse_args().run), Store())
    disk = next((device.name for device in devices.disks([[measured]])), "none")
    told = 0
    for label, unit, ours, others in lines(disk):
        seen = total(measured.quantities, ours)
        if seen is None:
            print(f"{label:40} eBPF: {measured.quantities.why(ours[0])}")
            continue
        print(f"{label:40} {seen:14,.3f} {unit:8} eBPF")
        for source, names in others:
            other = total(measured.quantities, names)
            if other is None:
                print(f"{'':40} {'n/a':>14} {'':8} {source}: {measured.quantities.why(names[0])}")
                continue
            told += 1
            change = f"{100 * (other / seen - 1):+.2f} %" if seen else "–"
            print(f"{'':40} {other:14,.3f} {unit:8} {source}  {change}")
    return 0 if told else 1


if __name__ == "__main__":
    sys.exit(main())
