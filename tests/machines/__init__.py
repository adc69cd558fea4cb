"""Tests on virtual machines: kernels, sockets, memory nodes and disks that the machine of the tests does not have."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / "var/machines"
