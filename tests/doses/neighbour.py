"""Uses most of a CPU before any ordinary process: `neighbour.py CPU BUSY_MS PERIOD_MS GROUP`.

GROUP is a control group that permits real-time processes.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

cpu, busy_ms, period_ms = map(int, sys.argv[1:4])
Path(sys.argv[4], "cgroup.procs").write_text(str(os.getpid()))
os.sched_setaffinity(0, {cpu})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
begin = time.monotonic()
while True:
    while time.monotonic() < begin + busy_ms / 1000:
        pass
    begin += period_ms / 1000
    time.sleep(max(0.0, begin - time.monotonic()))
