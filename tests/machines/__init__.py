"""Virtual machines: the recorder on kernels and hardware that this machine does not have."""

from __future__ import annotations

from programs import ROOT

CACHE = ROOT / "var/machines"
