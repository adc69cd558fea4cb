"""Builds the rows of costs: the catalogue's, divided by a unit of work."""

from __future__ import annotations

from dataclasses import dataclass, replace

from loadprint.catalogue.files import Cost, Work, catalogue
from loadprint.catalogue.metric import Metric, Screens, View

HOST_SWITCHES = "switches_of_host"
YIELDS = {"statements": "statement", "commits": "commit"}  # work per CPU-second, and its unit


@dataclass(frozen=True)
class CostScope:
    """Sources of a side's costs: its disk and interface, switches of the host or of server threads.

    `available` are the quantities that any side has, for rows of optional probes. `plain`: all usual rows are
    in every view, else only a few. `counted` has the way in which each unit of work is counted.
    """

    disk: str | None
    nic: str | None
    host_switches: bool
    available: frozenset[str] | None = None
    plain: bool = True
    counted: tuple[Work, ...] = ()


def cost_metrics(work: Work, scope: CostScope) -> tuple[Metric, ...]:
    """Rows of one unit of work; without a disk or interface its rows are empty."""
    rows = [cost for cost in catalogue().costs if _has(cost, work, scope)]
    return tuple(_metric(cost, work, scope) for cost in rows)


def _has(cost: Cost, work: Work, scope: CostScope) -> bool:
    if work.per == cost.row.not_per or cost.row.only_per not in ("", work.per):
        return False
    if cost.metric.key in ("switches", HOST_SWITCHES):
        return scope.host_switches == (cost.metric.key == HOST_SWITCHES)
    if not cost.row.optional or scope.available is None:
        return True
    present = scope.available
    return present.issuperset(cost.metric.formula.recorded(present.__contains__).names)


def _metric(cost: Cost, work: Work, scope: CostScope) -> Metric:
    row, key = cost.metric, cost.metric.key
    is_of_disk = any(name.startswith("disk.") for name in row.formula.names)
    formula = row.formula.of((scope.disk if is_of_disk else scope.nic) or "none")
    if key in YIELDS:
        formula = next((way.formula for way in scope.counted if way.per == YIELDS[key]), formula)
    shown = "kB" if row.shown == "B" and work.per == "CPU-second" else row.shown
    view = _view(cost, work, scope)
    return replace(
        row,
        key=f"{key.removesuffix('_of_host')}_per_{work.per}",
        shown=shown,
        formula=formula.per(work.formula),
        computed=row.computed and f"{row.computed} / {work.formula.text}",
        per_operation=work.per == "operation",
        view=view,
        screens=Screens() if view == "all" else row.screens,
        optional=False,
        named="",
    )


def _view(cost: Cost, work: Work, scope: CostScope) -> View:
    is_detail = work.per == "CPU-second" and not cost.row.only_per
    if cost.metric.view == "all" or work.per.startswith("row_") or is_detail:
        return "all"
    return "always" if scope.plain or cost.row.few else "all"
