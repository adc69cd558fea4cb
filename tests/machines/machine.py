"""Virtual machines by QEMU without hardware virtualisation: the same on every host that runs the tests."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ports import free_port

from .debian import USER, Root

# A boot takes a minute on two idle CPUs.
BOOT_S = 900.0
# QEMU 7.2 emulates CMPXCHG16B with several threads wrongly, and programs then lose updates.
PROCESSOR = ("-accel", "tcg,thread=multi", "-cpu", "max,cx16=off")
# Two sockets with two CPUs each, and a memory node for each socket.
SOCKETS = (
    *("-smp", "4,sockets=2,cores=2,threads=1", "-m", "3G"),
    *(
        "-object",
        "memory-backend-ram,id=memory0,size=1536M",
        "-numa",
        "node,nodeid=0,memdev=memory0,cpus=0-1",
    ),
    *(
        "-object",
        "memory-backend-ram,id=memory1,size=1536M",
        "-numa",
        "node,nodeid=1,memdev=memory1,cpus=2-3",
    ),
)
# Emulated page tables are slow to switch: without mitigations a system call takes a third of the time.
CMDLINE = "root=/dev/vda rw console=ttyS0 net.ifnames=0 mitigations=off"


@dataclass
class Machine:
    """A running machine: its QEMU process and the way to it."""

    root: Root
    folder: Path
    port: int
    qemu: subprocess.Popen[bytes]

    def ssh_options(self) -> list[str]:
        """List the options of ssh: only the machine's own host key is accepted."""
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
            "ansible_ssh_common_args": " ".join(self.ssh_options()),
        }

    def run(self, command: str, seconds: float = 300) -> str:
        """Run a shell command as root, and return its output; raises CalledProcessError, TimeoutExpired."""
        done = self._ssh(["sudo", "sh", "-ec", _quoted(command)], seconds)
        done.check_returncode()
        return done.stdout

    def wait_until_booted(self) -> None:
        """Wait until systemd has started all units."""
        deadline = time.monotonic() + BOOT_S
        while self._ssh(["systemctl", "is-system-running", "--wait"], BOOT_S).returncode == 255:
            assert self.qemu.poll() is None, f"QEMU ended: {self.folder / 'qemu.log'}"
            assert time.monotonic() < deadline, f"no login within {BOOT_S:.0f} s: {self.folder / 'console'}"
            time.sleep(1)

    def _ssh(self, words: Sequence[str], seconds: float) -> subprocess.CompletedProcess[str]:
        command = ["ssh", *self.ssh_options(), "-p", str(self.port), f"{USER}@127.0.0.1", *words]
        return subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=seconds, stdin=subprocess.DEVNULL
        )


@contextmanager
def started(root: Root, folder: Path, *hardware: str) -> Iterator[Machine]:
    """Boot a machine with a copy of a root file system and further hardware, and end it afterwards."""
    folder.mkdir(exist_ok=True)
    port = free_port()
    (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {root.host_key}\n")
    overlay = folder / "root.qcow2"
    subprocess.run(
        ["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", root.image, overlay], check=True
    )
    command = [
        *("qemu-system-x86_64", "-machine", "q35", *PROCESSOR, *SOCKETS),
        *("-kernel", root.kernel, "-initrd", root.initrd, "-append", CMDLINE),
        *("-drive", f"file={overlay},if=virtio,cache=unsafe"),
        # restrict: the machine reaches no network, only SSH reaches the machine
        *("-netdev", f"user,id=control,restrict=on,hostfwd=tcp:127.0.0.1:{port}-:22"),
        *("-device", "virtio-net-pci,netdev=control,mac=52:54:00:00:00:01"),
        *("-display", "none", "-serial", f"file:{folder / 'console'}", "-monitor", "none"),
        *hardware,
    ]
    with (folder / "qemu.log").open("wb") as log:
        qemu = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        machine = Machine(root, folder, port, qemu)
        machine.wait_until_booted()
        yield machine
    finally:
        qemu.kill()
        qemu.wait()


def nvme(disk: Path, size: str) -> list[str]:
    """Make an empty file system with the label `data`, and give the options of an NVMe disk with it."""
    subprocess.run(["mke2fs", "-q", "-t", "ext4", "-L", "data", disk, size], check=True)
    return [
        *("-drive", f"file={disk},if=none,id=data,format=raw,cache=unsafe"),
        *("-device", "nvme,drive=data,serial=loadprint-data"),
    ]


def _quoted(text: str) -> str:
    """Quote a word for the remote shell."""
    return "'" + text.replace("'", "'\\''") + "'"
