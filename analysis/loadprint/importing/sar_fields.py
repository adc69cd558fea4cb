"""Maps the recorder's columns to keys of `sadf -j`, with the factor from sadf's unit to the recorder's.

sadf prints counters as rates per second with two decimals, and gauges as read (sar(1), sadf(1)).
"""

from __future__ import annotations

from collections.abc import Mapping

Fields = Mapping[str, tuple[str, float]]

KIB, SECTORS = 1024.0, 2.0  # bytes and sectors in sadf's kB
SECOND_MS, SECOND_US = 1000.0, 1e6

# percentages of a CPU's time; user time includes guest time in /proc/stat (proc(5)), but not in sar
CPU: Mapping[str, tuple[str, ...]] = {
    "user": ("usr", "guest"),
    "nice": ("nice", "gnice"),
    "system": ("sys",),
    "idle": ("idle",),
    "iowait": ("iowait",),
    "irq": ("irq",),
    "softirq": ("soft",),
    "steal": ("steal",),
    "guest": ("guest",),
    "guest_nice": ("gnice",),
}
# `sar -u` without ALL: guest time is in user, interrupts are in system
CPU_BRIEF: Mapping[str, tuple[str, ...]] = {
    "user": ("user",),
    "nice": ("nice",),
    "system": ("system",),
    "idle": ("idle",),
    "iowait": ("iowait",),
    "steal": ("steal",),
}
DISK: Fields = {
    "read_sectors": ("rkB", SECTORS),
    "write_sectors": ("wkB", SECTORS),
    "discard_sectors": ("dkB", SECTORS),
    "io_ms": ("util-percent", SECOND_MS / 100),
    "weighted_ms": ("aqu-sz", SECOND_MS),
    "transfers": ("tps", 1.0),
}
NIC: Fields = {
    "rx_bytes": ("rxkB", KIB),
    "rx_packets": ("rxpck", 1.0),
    "rx_compressed": ("rxcmp", 1.0),
    "rx_multicast": ("rxmcst", 1.0),
    "tx_bytes": ("txkB", KIB),
    "tx_packets": ("txpck", 1.0),
    "tx_compressed": ("txcmp", 1.0),
}
NIC_ERRORS: Fields = {
    "rx_errors": ("rxerr", 1.0),
    "rx_drops": ("rxdrop", 1.0),
    "rx_fifo": ("rxfifo", 1.0),
    "rx_frame": ("rxfram", 1.0),
    "tx_errors": ("txerr", 1.0),
    "tx_drops": ("txdrop", 1.0),
    "tx_fifo": ("txfifo", 1.0),
    "tx_collisions": ("coll", 1.0),
    "tx_carrier": ("txcarr", 1.0),
}
PAGING: Fields = {
    "pgpgin": ("pgpgin", 1.0),
    "pgpgout": ("pgpgout", 1.0),
    "pgfault": ("fault", 1.0),
    "pgmajfault": ("majflt", 1.0),
    "pgfree": ("pgfree", 1.0),
    "pgscan_kswapd": ("pgscank", 1.0),
    "pgscan_direct": ("pgscand", 1.0),
}
SWAPPING: Fields = {"pswpin": ("pswpin", 1.0), "pswpout": ("pswpout", 1.0)}
TCP: Fields = {
    "Tcp.ActiveOpens": ("active", 1.0),
    "Tcp.PassiveOpens": ("passive", 1.0),
    "Tcp.InSegs": ("iseg", 1.0),
    "Tcp.OutSegs": ("oseg", 1.0),
}
TCP_ERRORS: Fields = {
    "Tcp.AttemptFails": ("atmptf", 1.0),
    "Tcp.EstabResets": ("estres", 1.0),
    "Tcp.RetransSegs": ("retrans", 1.0),
    "Tcp.InErrs": ("isegerr", 1.0),
    "Tcp.OutRsts": ("orsts", 1.0),
}
MEMORY: Mapping[str, str] = {
    "MemFree": "memfree",
    "MemAvailable": "avail",
    "Buffers": "buffers",
    "Cached": "cached",
    "Committed_AS": "commit",
    "Active": "active",
    "Inactive": "inactive",
    "Dirty": "dirty",
    "AnonPages": "anonpg",
    "Slab": "slab",
    "KernelStack": "kstack",
    "PageTables": "pgtbl",
    "VmallocUsed": "vmused",
    "SwapFree": "swpfree",
    "SwapCached": "swpcad",
}
PRESSURE: Mapping[str, str] = {"psi-cpu": "cpu", "psi-io": "io", "psi-mem": "memory", "psi-irq": "irq"}
