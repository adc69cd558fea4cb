"""The check of what is left: it sees all that the tests cause."""

from __future__ import annotations

import os
import signal
import subprocess

from .machine import added, look, settled


def test_what_the_tests_cause_counts() -> None:
    before = look()

    def left(command: str) -> list[str]:
        subprocess.run(["sh", "-c", command], check=True)
        return added(before, look())

    assert left("touch /tmp/odd") == ["file /tmp/odd"]
    assert left("rm /tmp/odd; touch /dev/shm/odd") == ["file /dev/shm/odd"]
    assert left("rm /dev/shm/odd") == []
    # in a separate session, its parent gone, under a name that no program of ours has
    (process,) = left("setsid sleep 1000 </dev/null >/dev/null 2>&1 &")
    os.kill(int(process.split()[1]), signal.SIGKILL)
    assert settled(before) == []
    folder, mounted = left("mkdir /tmp/odd && mount -t tmpfs odd /tmp/odd")
    assert mounted.startswith("mount odd /tmp/odd tmpfs ")
    assert folder == "file /tmp/odd"
    assert left("umount /tmp/odd && rmdir /tmp/odd") == []
    # 4194304 is the kernel's bound of process numbers (PID_MAX_LIMIT): there is no such supervisor
    interface = "lp4194305n0"
    assert left(f"ip link add {interface} type veth") == [f"file /sys/class/net/{interface}"]
    assert left(f"ip link delete {interface}") == []
