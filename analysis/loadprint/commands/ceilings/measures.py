"""Lists the measurements of `ansible/ceilings.yml` by name."""

from __future__ import annotations

from dataclasses import dataclass

BYTES, COUNT = "B/s", "1/s"


@dataclass(frozen=True)
class Measure:
    """One ceiling. `quantity` is a name of metrics/quantities.py, except where `row` is False.

    `{nic}` in it stands for the measured interface. `unit` is that of the value.
    """

    id: str
    label: str
    quantity: str
    unit: str
    row: bool = True


MEASURES = {
    each.id: each
    for each in (
        Measure("read_bandwidth", "sequential read, 1 MiB", "disk.data.read_sectors", BYTES),
        Measure("write_bandwidth", "sequential write, 1 MiB", "disk.data.write_sectors", BYTES),
        Measure("read_iops", "random reads, 16 KiB", "disk.data.reads", COUNT),
        Measure("write_iops", "random writes, 16 KiB", "disk.data.writes", COUNT),
        Measure("flushes", "write + fdatasync, one thread", "disk.data.serial_syncs", COUNT, row=False),
        Measure("flushes_all", "write + fdatasync, 8 threads", "mysql.fsyncs", COUNT),
        Measure("receive_bandwidth", "network, load to server", "nic.{nic}.rx_bytes", BYTES),
        Measure("send_bandwidth", "network, server to load", "nic.{nic}.tx_bytes", BYTES),
        Measure("round_trips", "TCP round trips, one by one", "network.round_trips", COUNT, row=False),
        Measure("memory_read", "memory read, one thread", "memory.thread.read_bytes", BYTES, row=False),
        Measure("memory_write", "memory written, one thread", "memory.thread.write_bytes", BYTES, row=False),
        Measure("memory_read_all", "memory read, all threads", "memory.read_bytes", BYTES, row=False),
        Measure("memory_write_all", "memory written, all threads", "memory.write_bytes", BYTES, row=False),
        Measure("switches", "context switches, all CPUs", "host.ctxt", COUNT),
        Measure("cpu_events", "prime searches, one thread", "cpu.thread.events", COUNT, row=False),
        Measure("cpu_events_all", "prime searches, all threads", "cpu.events", COUNT, row=False),
    )
}
