"""Boots a kernel with the recorder, and reads what the guest recorded and what its kernel counted."""

from __future__ import annotations

import json
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
from programs import COLLECT, ROOT, read

from .initramfs import Initramfs
from .machine import AARCH64, X86_64, running
from .packages import Suite

WRITES, PINGS, CONNECTIONS = 23, 20, 5
DISK_BYTES = 64 << 20
MULTIPATH = "nvme_core.multipath=N"  # QEMU offers it from 10 on; each disk would have two names
RECORDER = "/bin/loadprint-collect"
# Emulator and console.
QEMU = {"amd64": (X86_64, "ttyS0"), "arm64": (AARCH64, "ttyAMA0")}
# Two sockets, each with its memory.
NUMA = (
    *("-smp", "4,sockets=2,cores=2", "-m", "1G"),
    *("-object", "memory-backend-ram,id=memory0,size=512M", "-numa", "node,memdev=memory0,cpus=0-1"),
    *("-object", "memory-backend-ram,id=memory1,size=512M", "-numa", "node,memdev=memory1,cpus=2-3"),
)


@dataclass(frozen=True)
class Kernel:
    """A kernel by its Debian suite and architecture."""

    title: str
    suite: str
    architecture: str = "amd64"

    def __str__(self) -> str:
        return f"{self.suite}-{self.architecture}"


@dataclass(frozen=True)
class Witness:
    """The kernel's own counters of the spinner, and the user and system time of its CPU."""

    cpu_ticks: int
    waited_ns: int
    voluntary: int
    involuntary: int
    cpu3_ticks: int


@dataclass(frozen=True)
class Recording:
    """What a guest left in `directory`."""

    kernel: Kernel
    directory: Path

    def text(self, name: str) -> str:
        return (self.directory / name).read_text()

    def probes(self, name: str) -> dict[str, tuple[str, str]]:
        """Return status and reason of each probe, from the output of `loadprint-collect probes`."""
        listed = json.loads(self.text(name))
        return {probe["name"]: (probe["status"], probe["reason"] or "") for probe in listed}

    def ends(self, table: str, value: str, where: str = "true") -> tuple[int, int]:
        """Return the value at the first and at the last tick; 0 before the first row."""
        tables = self.directory / "run" / "server"
        query = f"""SELECT sum(value) FILTER (tick = (SELECT min(tick) FROM '{tables}/cpu.parquet')),
                           sum(value) FILTER (tick = (SELECT max(tick) FROM '{tables}/cpu.parquet'))
                    FROM (SELECT tick, {value} AS value FROM '{tables}/{table}.parquet' WHERE {where})"""
        row = duckdb.execute(query).fetchone()
        assert row is not None, query
        assert row[1] is not None, f"{self.kernel}: {table} has no row with {where} at the last tick"
        return int(row[0] or 0), int(row[1])

    def growth(self, table: str, value: str, where: str = "true") -> int:
        """Return the growth of a counter from the first to the last tick."""
        first, last = self.ends(table, value, where)
        return last - first

    def stacks(self) -> dict[str, Any]:
        """Read the call tree of `profile`."""
        return read(self.directory / "run/server/stacks.json")

    def witness(self, moment: str) -> Witness:
        """Read what the guest copied from /proc at a moment, `before` or `after`."""
        stat = self.text(f"{moment}.stat").rsplit(")", maxsplit=1)[1].split()
        status = dict(line.split(":", 1) for line in self.text(f"{moment}.status").splitlines())
        cpus = (line.split() for line in self.text(f"{moment}.cpu").splitlines())
        cpu3 = next(words for words in cpus if words[0] == "cpu3")
        return Witness(
            cpu_ticks=int(stat[11]) + int(stat[12]),
            waited_ns=int(self.text(f"{moment}.schedstat").split()[1]),
            voluntary=int(status["voluntary_ctxt_switches"]),
            involuntary=int(status["nonvoluntary_ctxt_switches"]),
            cpu3_ticks=int(cpu3[1]) + int(cpu3[3]),
        )


def record(kernel: Kernel, directory: Path) -> Recording:
    """Boot the kernel, let it record, and unpack what it left into `directory`.

    Raises AssertionError with the end of the console if the guest does not finish.
    """
    suite = Suite(kernel.suite, kernel.architecture)
    (image,) = suite.unpacked(f"linux-image-cloud-{kernel.architecture}").rglob("vmlinuz*")
    qemu, console = QEMU[kernel.architecture]
    disks = []
    for name in ("data", "results"):
        with (directory / name).open("wb") as disk:
            disk.truncate(DISK_BYTES)
        disks += ["-drive", f"file={directory / name},format=raw,if=none,id={name}"]
        disks += ["-device", f"nvme,drive={name},serial={name}"]
    # A parameter that the kernel does not know becomes a variable of the first process.
    work = f"writes={WRITES} pings={PINGS} connections={CONNECTIONS}"
    with running(
        directory / "console",
        *qemu,
        *("-kernel", image, "-initrd", _initramfs(suite, directory / "initramfs")),
        *("-append", f"console={console} panic=-1 quiet loglevel=3 {MULTIPATH} {work}", "-net", "none"),
        *NUMA,
        *disks,
    ) as machine:
        machine.wait_for("guest: finished")
    with tarfile.open(directory / "results") as archive:
        archive.extractall(directory / "files")
    for name in ("initramfs", "data", "results"):
        (directory / name).unlink()
    return Recording(kernel, directory / "files")


def _initramfs(suite: Suite, path: Path) -> Path:
    archive = Initramfs()
    archive.add("/init", Path(__file__).with_name("guest.sh").read_bytes())
    (busybox,) = suite.unpacked("busybox-static").glob("**/bin/busybox")
    archive.add("/bin/busybox", busybox.read_bytes())
    if suite.architecture == "amd64":
        archive.add_program(RECORDER, COLLECT)
    else:
        archive.add_program_of(
            suite.unpacked("libc6"), RECORDER, ROOT / "target" / "hosts" / "aarch64" / "loadprint-collect"
        )
    return archive.write(path)
