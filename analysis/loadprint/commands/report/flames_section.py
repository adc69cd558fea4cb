"""Packs flame graphs for the page's script, and names their views."""

from __future__ import annotations

from typing import Any

import numpy as np

from loadprint.commands.report.pack import rounded
from loadprint.metrics.costs import unit_name
from loadprint.rendering.report_data import Flames, PathRatio

DIGITS = 4


def views(flames: Flames) -> list[tuple[int, bool, str]]:
    """Views as side, whether it is compared with the reference, and title."""
    alone = [(side, False, name) for side, name in enumerate(flames.sides)]
    base = flames.sides[flames.base]
    compared = [
        (side, True, f"{name} against {base}")
        for side, name in enumerate(flames.sides)
        if side != flames.base
    ]
    return [*compared, *alone]


def context(flames: Flames | None) -> dict[str, Any]:
    """Values of the template."""
    return {"flame_views": views(flames), "flame_work": unit_name(flames.work)} if flames else {}


def packed(flames: Flames | None) -> dict[str, Any] | None:
    """Columns of the nodes; times in µs, per unit of work."""
    if flames is None:
        return None
    names = list(dict.fromkeys(node.name for node in flames.nodes))
    places = {name: place for place, name in enumerate(names)}
    return {
        "work": unit_name(flames.work),
        "names": names,
        "name": [places[node.name] for node in flames.nodes],
        "parent": [node.parent for node in flames.nodes],
        "kernel": [int(node.kernel) for node in flames.nodes],
        "times": [
            rounded(np.array([node.times[side] * 1e6 for node in flames.nodes]))
            for side in range(len(flames.sides))
        ],
        "ratios": [[_ratio(node.ratios[side]) for node in flames.nodes] for side in range(len(flames.sides))],
        "base": flames.base,
    }


def _ratio(ratio: PathRatio | None) -> list[float | int | None] | None:
    if ratio is None:
        return None
    bounds = (ratio.centre, ratio.low, ratio.high)
    return [*(None if each is None else float(f"{each:.{DIGITS}g}") for each in bounds), int(ratio.differs)]
