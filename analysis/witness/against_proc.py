"""Compares the eBPF probes of one run with /proc and with the server's own counters.

    .venv/bin/python analysis/witness/against_proc.py RUN

Prints rates over the phase `measure`, and the difference of each source from the eBPF figure. The sources are
read within one tick, not at one moment, and count at slightly different places: /proc drops the counters of a
thread that ends, and InnoDB's fsync counter excludes the binary log. against_sadc.py compares with `sadc`.
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
    """Yield label, unit, the eBPF quantities to sum, and the other sources with their quantities."""
    server = "threads.server"
    yield (
        "voluntary switches, server",
        "/s",
        ["ebpf_switches.server.voluntary"],
        [("/proc/PID/task/*/status", [f"{server}.voluntary_ctxt_switches"])],
    )
    yield (
        "involuntary switches, server",
        "/s",
        ["ebpf_switches.server.involuntary"],
        [("/proc/PID/task/*/status", [f"{server}.nonvoluntary_ctxt_switches"])],
    )
    yield (
        "waiting for a CPU, server",
        "threads",
        ["ebpf_sched.server.run queue.sum_ns"],
        [("/proc/PID/task/*/schedstat", [f"{server}.run_delay_ns"])],
    )
    yield (
        "switches, whole host",
        "/s",
        ["ebpf_switches.all.voluntary", "ebpf_switches.all.involuntary"],
        [("/proc/stat ctxt (with idle tasks)", ["host.ctxt"])],
    )
    yield (
        "disk reads",
        "/s",
        [f"ebpf_block.{disk}.read.device.buckets"],
        [("diskstats", [f"disk.{disk}.reads"])],
    )
    writes = [f"ebpf_block.{disk}.write.device.buckets", f"ebpf_block.{disk}.write_fua.device.buckets"]
    yield ("disk writes", "/s", writes, [("diskstats", [f"disk.{disk}.writes"])])
    flushes = f"ebpf_block.{disk}.flush.device"
    yield ("disk flushes", "/s", [f"{flushes}.buckets"], [("diskstats", [f"disk.{disk}.flushes"])])
    yield ("time in flushes", "s/s", [f"{flushes}.sum_ns"], [("diskstats", [f"disk.{disk}.flush_ms"])])
    yield (
        "fsync and fdatasync, server",
        "/s",
        ["ebpf_syscalls.server.syncs"],
        [("Innodb_data_fsyncs (no binlog)", ["mysql.fsyncs"])],
    )
    yield (
        "statements (uprobe, if recorded)",
        "/s",
        ["ebpf_statements.server.COM_QUERY.buckets", "ebpf_statements.server.COM_STMT_EXECUTE.buckets"],
        [("Questions, without the probe's", ["server.questions"]), ("the client's", ["load.queries"])],
    )


def total(quantities: Quantities, names: list[str]) -> float | None:
    """Return the sum of the measured quantities, or None if none was measured."""
    rates = [quantity.rate for name in names if (quantity := quantities.get(name))]
    return sum(rates) if rates else None


def main() -> int:
    """Print a line per source."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path)
    measured = gather(open_run(parser.parse_args().run), Store())
    disk = next((device.name for device in devices.disks([[measured]])), "none")
    compared = 0
    for label, unit, ours, others in lines(disk):
        ebpf = total(measured.quantities, ours)
        if ebpf is None:
            print(f"{label:40} eBPF: {measured.quantities.why(ours[0])}")
            continue
        print(f"{label:40} {ebpf:14,.3f} {unit:8} eBPF")
        for source, names in others:
            other = total(measured.quantities, names)
            if other is None:
                print(f"{'':40} {'n/a':>14} {'':8} {source}: {measured.quantities.why(names[0])}")
                continue
            compared += 1
            change = f"{100 * (other / ebpf - 1):+.2f} %" if ebpf else "–"
            print(f"{'':40} {other:14,.3f} {unit:8} {source}  {change}")
    return 0 if compared else 1


if __name__ == "__main__":
    sys.exit(main())
