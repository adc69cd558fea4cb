"""A report with the table alone, for `compare --format html`."""

from __future__ import annotations

from loadprint.rendering.report_data import Report, RunOf, SideOf
from loadprint.tables.table import Table


def report_of(table: Table) -> Report:
    """The table's own sides, sentences and facts; no charts."""
    return Report(
        title=" and ".join(side.label for side in table.sides),
        compared=" and ".join(side.name for side in table.sides),
        sides=tuple(SideOf(side.name, side.label, side.operation) for side in table.sides),
        runs=tuple(
            RunOf(run, position, number, "complete")
            for position, side in enumerate(table.sides)
            for number, run in enumerate(side.repeats, start=1)
        ),
        table=table,
        pivots=None,
        courses=(),
        percentiles=(),
        distributions=(),
        scaled=(),
        settings=(),
        made=(("method", " ".join(table.method)),),
        absent=(),
    )
