"""What a campaign may not leave behind: processes, mounts, network devices, files outside its directory.

Only what the tests themselves cause counts, regardless of other activity on the machine:

- Processes: this process adopts every orphan below it (PR_SET_CHILD_SUBREAPER), so that each process which a
  campaign leaves is one of its descendants, under any name.
- Mounts, /tmp, /dev/shm and /run/netns: `isolated` gives the tests their own.
- Network devices and the other folders are shared with the machine: what counts there has a name of ours.
"""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from programs import ROOT

# A server may shut down slowly; far longer than any wait of a passing test.
PATIENCE_S = 300.0
PRIVATE = ("/tmp", "/dev/shm", "/run/netns")
SHARED = ("/run", "/run/lock", "/var/lib", "/var/tmp", "/etc", "/sys/class/net")
OURS = re.compile(r"loadprint|^lp(\d+)n\d+$")  # lpPIDnN: a veth of the supervisor PID
CLONE_NEWNS = 0x20000  # include/uapi/linux/sched.h
PR_SET_CHILD_SUBREAPER = 36  # include/uapi/linux/prctl.h


Machine = frozenset[str]  # what is there, a line each


@contextmanager
def isolated() -> Iterator[Path]:
    """Adopt orphans, and move this thread to a mount namespace with its own directories `PRIVATE`.

    A checkout below one of them stays visible. Gives the directory that is /tmp inside, by its path on the
    machine. There is no way back: the mounts are gone at the end, the namespace stays. Raises OSError without
    the rights (root).
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) or libc.unshare(CLONE_NEWNS):
        raise OSError(ctypes.get_errno(), "the end-to-end tests need root")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    outside = Path(tempfile.mkdtemp(prefix="loadprint-e2e-"))
    outside.chmod(0o1777)
    checkout = os.open(ROOT, os.O_PATH)
    subprocess.run(["mount", "--bind", outside, "/tmp"], check=True)
    for place in PRIVATE[1:]:
        Path(place).mkdir(exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", place], check=True)
    if any(ROOT.is_relative_to(place) for place in PRIVATE):
        ROOT.mkdir(parents=True)
        here = f"/proc/self/fd/{checkout}"
        mount = ["mount", "--no-canonicalize", "--bind", here, str(ROOT)]
        subprocess.run(mount, check=True, pass_fds=(checkout,))
        os.chdir(ROOT)
    os.close(checkout)
    os.environ.pop("TMPDIR", None)
    tempfile.tempdir = None
    yield outside
    for place in reversed(PRIVATE):
        subprocess.run(["umount", "--lazy", place], check=True)


def look() -> Machine:
    """Look at the machine now."""
    _bury()
    files = (
        f"{folder}/{name}"
        for folder in PRIVATE + SHARED
        if Path(folder).is_dir()
        for name in os.listdir(folder)
        if folder in PRIVATE or _is_ours(name)
    )
    return frozenset(
        (
            *(f"process {pid} {name}" for pid, name in descendants()),
            *(f"mount {line}" for line in Path("/proc/thread-self/mounts").read_text().splitlines()),
            *(f"file {name}" for name in files),
        )
    )


def descendants() -> list[tuple[int, str]]:
    """List the living processes below this one, as (pid, name)."""
    children: dict[int, list[tuple[int, str]]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            pid, _, rest = stat.read_text(errors="replace").partition(" (")
        except (FileNotFoundError, ProcessLookupError):
            continue
        name, _, fields = rest.rpartition(") ")
        state, parent = fields.split()[:2]
        if state not in "ZX":
            children.setdefault(int(parent), []).append((int(pid), name))
    result, open_ = [], [os.getpid()]
    while open_:
        below = children.get(open_.pop(), [])
        result += below
        open_ += [pid for pid, _ in below]
    return result


def settled(before: Machine) -> list[str]:
    """Wait until nothing is left since `before`; list what still is after a long time."""
    deadline = time.monotonic() + PATIENCE_S
    while (left := added(before, look())) and time.monotonic() < deadline:
        time.sleep(0.2)
    return left


def added(before: Machine, now: Machine) -> list[str]:
    """List what is there now and was not before, or is mounted otherwise."""
    return sorted(line for line in now ^ before if line in now or line.startswith("mount "))


def _is_ours(name: str) -> bool:
    """Whether a name in a shared folder is of our programs, and not of a campaign that others run now."""
    result = OURS.search(name)
    return result is not None and not (result[1] and Path("/proc", result[1]).exists())


def _bury() -> None:
    """Collect the exit status of adopted processes that have ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
