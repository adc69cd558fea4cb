"""Finds out whether the kernel accounts the time that the hypervisor and interrupts take from threads."""

from __future__ import annotations

import numpy as np

from loadprint.metrics.sources import Source

NOT_ACCOUNTED = (
    "this kernel accounts neither interrupts (CONFIG_IRQ_TIME_ACCOUNTING) nor stolen time (no steal clock): "
    "they are in the rows on CPU"
)


def accounts_stolen(source: Source) -> bool:
    """Whether no stolen time means that there was none.

    The clock of the run queue excludes interrupts if the kernel is built for it, and stolen time if there is
    a steal clock, which has counted since the boot.
    """
    accounting = source.run.fingerprint(source.window.role).get("cpu_accounting") or {}
    if accounting.get("irq_time") == "y":
        return True
    rows = source.rows("cpu", "SELECT tick, steal::DOUBLE AS steal FROM t WHERE cpu = 'all'")
    return rows is not None and bool(np.nanmax(rows["steal"], initial=0.0) > 0)
