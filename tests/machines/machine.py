"""Starts a virtual machine with QEMU, waits for lines of its console, and ends it.

Only under TCG, which interprets the guest: its speed is not that of hardware, and it runs where there is no
KVM or where a nested KVM guest hangs.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

# A machine may have two CPUs that run other tests too; far longer than any wait of a passing test.
PATIENCE_S = 900.0
X86_64 = ("qemu-system-x86_64", "-machine", "q35", "-cpu", "max,cx16=off")  # QEMU 7.2's CMPXCHG16B is wrong
AARCH64 = ("qemu-system-aarch64", "-machine", "virt", "-cpu", "cortex-a72")


@dataclass(frozen=True)
class Machine:
    """A running QEMU; `console` is the file with all that the guest printed."""

    qemu: subprocess.Popen[bytes]
    console: Path

    def wait_for(self, text: str, patience_s: float = PATIENCE_S) -> str:
        """Return the first line of the console with `text`: a complete line, or a prompt that ends with it.

        Raises AssertionError with the end of the console if the machine ends first, or after `patience_s`.
        """
        deadline = time.monotonic() + patience_s
        while True:
            ended = self.qemu.poll() is not None
            *lines, last = self.console.read_text(errors="replace").split("\n")
            lines += [last] if last.rstrip().endswith(text) else []
            found = next((line for line in lines if text in line), None)
            if found is not None:
                return found.strip()
            assert not ended, self._report(f"QEMU ended ({self.qemu.returncode}) before it printed {text!r}")
            assert time.monotonic() < deadline, self._report(f"no {text!r} within {patience_s:.0f} s")
            time.sleep(0.2)

    def _report(self, reason: str) -> str:
        tail = self.console.read_text(errors="replace").splitlines()[-40:]
        return "\n".join([f"{self.console}: {reason}; its last lines:", *tail])


@contextmanager
def running(console: Path, *arguments: str | Path) -> Iterator[Machine]:
    """Run QEMU with `arguments` (one of `X86_64`, `AARCH64` first); its serial port writes to `console`.

    The machine is killed at the end. TCG has one thread: with more, Linux 5.10 hangs, and QEMU before 8.1 can
    execute a breakpoint that the kernel removed while it modified itself for the recorder's eBPF programs.
    """
    console.write_text("")
    command: list[str | Path] = [*arguments, "-accel", "tcg,thread=single", "-display", "none"]
    command += ["-no-reboot", "-serial", f"file:{console}"]
    errors = console.with_suffix(".qemu")
    with errors.open("wb") as output:
        qemu = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        yield Machine(qemu, console)
    finally:
        qemu.kill()
        qemu.wait()
