"""Virtual machines as hosts of a campaign: booted from a disk, with systemd, and reached over SSH alone."""

from __future__ import annotations

import shlex
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ports import free_port

from .debian import USER, Root
from .machine import PATIENCE_S, X86_64, running, threads_while_patching

# Two sockets with two CPUs each, and a memory node for each socket.
SOCKETS = (
    *("-smp", "4,sockets=2,cores=2,threads=1", "-m", "3G"),
    *("-object", "memory-backend-ram,id=memory0,size=1536M", "-numa", "node,memdev=memory0,cpus=0-1"),
    *("-object", "memory-backend-ram,id=memory1,size=1536M", "-numa", "node,memdev=memory1,cpus=2-3"),
)
# For a machine next to another one.
SMALL = ("-smp", "2", "-m", "2G")
# Without mitigations: TCG is slow to switch page tables, which they do in every system call.
# Without multipath, which QEMU offers from 10 on: the disk is nvme0n1 with every QEMU.
CMDLINE = "root=/dev/vda rw console=ttyS0 net.ifnames=0 mitigations=off nvme_core.multipath=N"


@dataclass(frozen=True)
class Host:
    """A machine with its disks and the way to it; it may be booted several times, one after the other."""

    root: Root
    folder: Path
    port: int
    devices: tuple[str | Path, ...]
    board: tuple[str, ...] = SOCKETS

    @contextmanager
    def booted(self) -> Iterator[None]:
        """Boot it and wait until it answers; at the end it loses its power."""
        command = [
            *("-kernel", self.root.kernel, "-initrd", self.root.initrd, "-append", CMDLINE),
            *("-drive", f"file={self.folder / 'root.qcow2'},if=virtio,cache=unsafe"),
            # restrict: the machine reaches no network, only SSH reaches the machine
            *("-netdev", f"user,id=control,restrict=on,hostfwd=tcp:127.0.0.1:{self.port}-:22"),
            *("-device", "virtio-net-pci,netdev=control"),
            *self.devices,
        ]
        threads = threads_while_patching()
        with running(self.folder / "console", *X86_64, *self.board, *command, threads=threads) as machine:
            machine.wait_for("login:")
            # after the last unit: a unit that starts in a run would disturb it
            deadline = time.monotonic() + PATIENCE_S
            while self._ssh("systemctl is-system-running --wait").returncode == 255:
                assert time.monotonic() < deadline, f"{self.folder / 'console'}: SSH does not answer"
                time.sleep(1)
            yield

    def ssh_options(self) -> list[str]:
        """List the options of ssh: it accepts only the host key of the machine's image."""
        options = {
            "UserKnownHostsFile": self.folder / "known_hosts",
            "StrictHostKeyChecking": "yes",
            "IdentityFile": self.root.key,
            "IdentitiesOnly": "yes",
            "ConnectTimeout": 60,
        }
        return [word for name, value in options.items() for word in ("-o", f"{name}={value}")]

    def inventory(self) -> dict[str, object]:
        """Give the variables of the machine in an inventory."""
        return {
            "ansible_host": "127.0.0.1",
            "ansible_port": self.port,
            "ansible_user": USER,
            "ansible_become": True,
            "ansible_timeout": 60,  # ssh takes seconds to answer while this machine is busy
            "ansible_ssh_common_args": shlex.join(self.ssh_options()),
        }

    def run(self, script: str) -> str:
        """Run a shell script as root and return its output; raises AssertionError if it fails."""
        done = self._ssh(script)
        assert done.returncode == 0, f"{script}: status {done.returncode}: {done.stderr}"
        return done.stdout

    def reset(self) -> None:
        """Reset it at once, as a watchdog does: nothing is written back, and QEMU ends."""
        self._ssh("echo b >/proc/sysrq-trigger")

    def _ssh(self, script: str) -> subprocess.CompletedProcess[str]:
        command = ["ssh", *self.ssh_options(), "-p", str(self.port), f"{USER}@127.0.0.1", "sudo sh -e"]
        return subprocess.run(
            command, input=script, capture_output=True, text=True, check=False, timeout=PATIENCE_S
        )


def install(root: Root, folder: Path, *devices: str | Path, board: tuple[str, ...] = SOCKETS) -> Host:
    """Make a machine in a directory: its system is a copy of `root`, and it has further devices."""
    port = free_port()
    (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {root.host_key}\n")
    overlay = f"qemu-img create -q -f qcow2 -F raw -b {root.image} {folder / 'root.qcow2'}"
    subprocess.run(overlay.split(), check=True)
    return Host(root, folder, port, devices, board)


def nvme(disk: Path, size: str) -> tuple[str, ...]:
    """Make a disk with an empty file system `data`, and give the options of an NVMe controller with it."""
    subprocess.run(["mke2fs", "-q", "-t", "ext4", "-L", "data", disk, size], check=True)
    return (
        *("-drive", f"file={disk},if=none,id=data,format=raw,cache=unsafe"),
        *("-device", "nvme,drive=data,serial=loadprint-data"),
    )


def link(number: int, end: str) -> tuple[str, ...]:
    """Give the options of eth1, on QEMU's network between two machines; `end` is listen=… or connect=…."""
    return (
        *("-netdev", f"socket,id=link,{end}"),
        *("-device", f"virtio-net-pci,netdev=link,mac=52:54:00:00:00:{number:02x}"),
    )
