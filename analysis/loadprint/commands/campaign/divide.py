"""Checks that the load of every side can be divided between several load hosts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from loadprint.configuration.document import DocumentError

if TYPE_CHECKING:
    from loadprint.commands.campaign.campaign_model import Campaign


def require_divisible(campaign: Campaign, workloads: Sequence[dict[str, Any]], loads: Sequence[str]) -> None:
    """Raise DocumentError for a side that runs on one load host only, if there are several.

    `workloads` is the output of `loadprint-load list --format json`, `loads` the names of the load hosts.
    """
    if len(loads) < 2:
        return
    whole = {entry["name"] for entry in workloads if not entry.get("divides", True)}
    for name, side in campaign.columns.items():
        if side.generator != "native":
            reason = f"generator {side.generator} does not divide its load"
        elif side.workload in whole:
            reason = f"workload {side.workload} cannot be divided"
        elif (side.threads or 1) < len(loads):
            reason = f"{side.threads} threads are fewer than the hosts"
        else:
            continue
        raise DocumentError(
            f"side {name} cannot run on {len(loads)} load hosts ({', '.join(loads)}): {reason}; name one "
            "host in the inventory's group load, or leave the side out"
        )
