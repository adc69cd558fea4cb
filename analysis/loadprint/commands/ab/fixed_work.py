"""Times fixed work in the gap before a window, which shows whether the machine's speed changed.

Standard library only: `ab run --planned` imports it on the server's host.
"""

from __future__ import annotations

import hashlib
import time

SLICES = 25
BYTES = 1 << 20


def cpu_ns() -> int:
    """Return the CPU time of hashing 1 MiB, in ns: the lower quartile of 25 slices, 15 to 100 ms in all.

    CPU time does not contain waits for a CPU that the load keeps busy, which follow from the treatment.
    """
    block = bytes(BYTES)
    slices = []
    for _ in range(SLICES):
        begin = time.thread_time_ns()
        hashlib.sha256(block).digest()
        slices.append(time.thread_time_ns() - begin)
    return sorted(slices)[SLICES // 4]
