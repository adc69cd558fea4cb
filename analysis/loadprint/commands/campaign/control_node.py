"""Identifies the playbook that runs an execution, so that a second one does not end its processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def identity_of(pid: int | None) -> dict[str, Any] | None:
    """Return pid, start time (clock ticks since the boot) and boot of a process; None if it has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    except OSError:
        return None
    return {"pid": pid, "start": int(stat.rpartition(") ")[2].split()[19]), "boot_id": boot}


def is_alive(identity: Any) -> bool:
    """Whether the process that `identity_of` described still runs."""
    return isinstance(identity, dict) and identity_of(identity.get("pid")) == identity
