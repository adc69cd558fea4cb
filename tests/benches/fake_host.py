"""A fake host: /proc and /sys of any number of CPUs, disks and interrupt lines, with rising counters.

Every number keeps its width, so
that a file is rewritten in one write of the same length, and a reader never sees half of one.
"""

from __future__ import annotations

import random
from pathlib import Path

START = 1_000_000_000
VMSTAT = 180
MEMINFO = (
    "MemTotal",
    "MemFree",
    "MemAvailable",
    "Buffers",
    "Cached",
    "Dirty",
    "Writeback",
    "AnonPages",
    "Mapped",
)


class FakeHost:
    """Files under DIR/proc and DIR/sys; `advance` adds to all counters."""

    def __init__(self, directory: Path, *, cpus: int, disks: int, lines: int) -> None:
        self.proc, self.sys = directory / "proc", directory / "sys"
        self.cpus, self.disks, self.lines = cpus, disks, lines
        self.seconds = 0
        self.random = random.Random(1)
        for part in ("net", "pressure", "sys/kernel/random", "1", "self"):
            (self.proc / part).mkdir(parents=True)
        for disk in range(disks):
            (self.sys / f"block/nvme{disk}n1/queue").mkdir(parents=True)
        (self.proc / "sys/kernel/random/boot_id").write_text("00000000-0000-4000-8000-000000000000\n")
        self.advance()

    def advance(self) -> None:
        """Write every file as it is a second later."""
        for name, text in self.files().items():
            path = self.proc / name
            data = text.encode()
            if path.exists():
                with path.open("r+b", buffering=0) as file:
                    file.write(data)
            else:
                path.write_bytes(data)
        self.seconds += 1

    def counts(self, count: int, per_second: int) -> list[int]:
        """Counters, most of which have moved since the second before."""
        moved = self.seconds * per_second
        return [START + moved + self.random.randrange(per_second) for _ in range(count)]

    def files(self) -> dict[str, str]:
        """Every file and its text."""
        spaced = " ".join
        cpus = range(self.cpus)
        stat = [f"cpu{name} " + spaced(map(str, self.counts(10, 100))) for name in ["", *cpus]]
        stat[0] = stat[0].replace("cpu ", "cpu  ", 1)
        total, context, forks, running, blocked = (*self.counts(3, 50_000), 12, 3)
        stat += [f"intr {total}", f"ctxt {context}", "btime 1700000000", f"processes {forks}"]
        stat += [f"procs_running {running}", f"procs_blocked {blocked}", f"softirq {total}"]
        head = " " * 12 + "".join(f"CPU{cpu:<8}" for cpu in cpus) + "\n"
        line = "{:>5}:{} PCI-MSIX-0000:00:04.0  {}-edge      nvme{}q{}\n"
        # On a real host most lines belong to one CPU: all its other columns stay as they are.
        interrupts = head + "".join(
            line.format(n, self.line(n % self.cpus), n, n % max(self.disks, 1), n) for n in range(self.lines)
        )
        kinds = ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"]
        softirqs = head + "".join(
            f"{kind:>12}: {spaced(map(str, self.counts(self.cpus, 100)))}\n" for kind in kinds
        )
        disks = "".join(
            f" 259 {disk:7} nvme{disk}n1 {spaced(map(str, self.counts(17, 5000)))}\n"
            for disk in range(self.disks)
        )
        return {
            "stat": "\n".join(stat) + "\n",
            "interrupts": interrupts,
            "softirqs": softirqs,
            "diskstats": disks,
            **self.small_files(),
        }

    def line(self, cpu: int) -> str:
        """Give the columns of one interrupt line, counted on one CPU, as `show_interrupts` pads them."""
        zero = f"{0:11}"
        return zero * cpu + f"{self.counts(1, 5000)[0]:11}" + zero * (self.cpus - cpu - 1)

    def small_files(self) -> dict[str, str]:
        """Files whose length does not grow with the host."""
        spaced = " ".join
        network = "Inter-|   Receive  |  Transmit\n face |bytes packets\n" + "".join(
            f"  eth{n}: {spaced(map(str, self.counts(16, 100_000)))}\n" for n in range(4)
        )
        names = ("ActiveOpens", "PassiveOpens", "InSegs", "OutSegs", "RetransSegs")
        snmp = f"Tcp: {spaced(names)}\nTcp: {spaced(map(str, self.counts(len(names), 1000)))}\n"
        netstat = f"TcpExt: TCPTimeouts\nTcpExt: {self.counts(1, 10)[0]}\n"
        counts = zip(range(VMSTAT), self.counts(VMSTAT, 100), strict=True)
        pressure = "some avg10=0.00 avg60=0.00 avg300=0.00 total={}\n"
        return {
            "vmstat": "".join(f"counter_{n} {value}\n" for n, value in counts),
            "meminfo": "".join(f"{name}: {START} kB\n" for name in MEMINFO),
            "net/dev": network,
            "net/snmp": snmp,
            "net/netstat": netstat,
            "net/sockstat": "sockets: used 100\nTCP: inuse 10 orphan 0 tw 5 alloc 12 mem 3\n",
            **{
                f"pressure/{name}": pressure.format(self.counts(1, 1000)[0])
                for name in ("cpu", "io", "memory")
            },
        }
