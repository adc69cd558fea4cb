"""Virtual machines: the recorder and campaigns on kernels and hardware that this machine does not have."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
CACHE = ROOT / "var" / "machines"
