"""Which rows of a table may carry a verdict: eight at most, declared before any number is seen.

Every verdict is a test at 5 %; eight of them raise a false alarm in a third of all comparisons of equals,
forty in seven of eight. All other rows share one false discovery rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from loadprint.tables.table import Group, Row

MOST = 8
ONE_OF = ("disk", "nic", "cost")  # of several groups of a kind only the first declares: its device, its unit


def declared(groups: Sequence[Group]) -> tuple[Group, ...]:
    """Groups whose rows keep `headline` where they may carry a verdict, in the table's order.

    A row without a direction cannot; a device beside the first, work other than the operation, and single
    transaction types leave it to the first device, the operation, and all types together. Where no two
    sides count the same operation, costs are those of a client statement: there are no ratios of the others.
    """
    apart = any(group.key == "cost_statement" for group in groups) and not any(
        versus is not None and versus.kind != "none"
        for group in groups
        if group.key == "cost_operation"
        for row in group.rows
        for versus in row.versus
    )
    left, seen = MOST, set[str]()
    found = []
    for group in groups:
        kind = group.key.partition("_")[0]
        may = (
            kind not in seen
            and group.key != "latency_types"
            and not (apart and group.key == "cost_operation")
        )
        seen |= {kind} & set(ONE_OF) if may else set()
        rows: list[Row] = []
        for row in group.rows:
            keeps = may and row.headline and row.better != "neither" and left > 0
            left -= keeps
            rows.append(replace(row, headline=keeps))
        found.append(replace(group, rows=tuple(rows)))
    return tuple(found)
