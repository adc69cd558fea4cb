"""Renders a report as one HTML file without references to the network.

The template escapes all text of a recording; the JSON block has no character that could end it. The content
security policy allows only the page's own script and style, by their hashes.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from loadprint.commands.ab import ab_text
from loadprint.commands.report import flames, pack, page_charts, table_section
from loadprint.rendering import pivot
from loadprint.rendering.report_data import MarkedSpan, ReportPage, RunOf, SideOf
from loadprint.tables.table import Table

SCRIPTS = ("vendor/uPlot.iife.min.js", "charts.js", "table.js")
FLAME_SCRIPTS = ("vendor/d3-selection.min.js", "vendor/d3-flamegraph.min.js", "flames.js")
STYLES = ("vendor/uPlot.min.css", "page.css")
FLAME_STYLES = ("vendor/d3-flamegraph.css",)
UNITS = "kB is 1,024 B, as sar prints it, in charts and table; MiB is 1,024 kB."
# characters that could end a script element, or a line in old JavaScript parsers
ESCAPES = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


def page(report: ReportPage) -> str:
    """The whole page as HTML."""
    grid = pack.grid_of(report.courses)
    times = page_charts.over_time(report, grid)
    latencies, kernels = page_charts.latencies(report), page_charts.kernels(report)
    scaled = [page_charts.scaling(place, panel) for place, panel in enumerate(report.scaled)]
    windows = [page_charts.windows(report.ab)] if report.ab else []
    blocks = (*times, *latencies, *kernels, ("", "", scaled), ("", "", windows))
    data = {
        "times": pack.encoded(grid.times if grid else ()),
        "runs": [_run(run) for run in report.runs],
        "charts": [chart["data"] for _, _, charts in blocks for chart in charts],
        "flames": flames.packed(report),
    }
    script = (
        f'(() => {{"use strict";\n{_asset((*SCRIPTS, *(FLAME_SCRIPTS if report.flames else ())))}\n}})();'
    )
    style = _asset((*STYLES, *(FLAME_STYLES if report.flames else ())))
    verdicts = report.table.verdicts if report.table else ()
    environment = Environment(
        loader=PackageLoader("loadprint.commands.report", ""),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    text = environment.get_template("page.html.j2").render(
        report=report,
        table=table_section.tabled(report.table) if report.table else None,
        times=times,
        latencies=latencies,
        kernels=kernels,
        scaled=scaled,
        **flames.context(report),
        pivots=map(pivot.written, report.pivots.pivots if report.pivots else ()),
        findings=_findings(report),
        head=report.table or report.pivots,
        units=UNITS,
        verdicts=verdicts,
        # answers that make the comparison doubtful
        doubted={verdict.key for verdict in verdicts if not verdict.is_sound},
        spikes=[_spike(run, span) for run in report.runs for span in run.spikes],
        effects=ab_text.effect_blocks(report.ab) if report.ab else [],
        window_blocks=ab_text.window_block(report.ab) if report.ab else [],
        windows=windows,
        thinned=grid.keep if grid and grid.keep > 1 else 0,
        step=grid.step if grid else 0,
        data=Markup(
            json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).translate(ESCAPES)
        ),
        script=Markup(script),
        style=Markup(style),
        policy=f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; "
        "base-uri 'none'; form-action 'none'",
    )
    return text.lstrip()


def table_page(table: Table) -> str:
    """A page with the table alone, for `compare --format html`."""
    return page(
        ReportPage(
            title=" and ".join(side.label for side in table.sides),
            sides=tuple(SideOf(side.name, side.label, side.operation) for side in table.sides),
            runs=tuple(
                RunOf(run, position, number)
                for position, side in enumerate(table.sides)
                for number, run in enumerate(side.repeats, start=1)
            ),
            table=table,
            made=(("method", " ".join(table.method)),),
        )
    )


def _asset(names: Sequence[str]) -> str:
    folder = resources.files("loadprint.commands.report")
    return "\n".join(folder.joinpath(name).read_text(encoding="utf-8").strip() for name in names)


def _hash(text: str) -> str:
    """Hash of an element's text as browsers compute it; the template adds no white space around it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _run(run: RunOf) -> dict[str, Any]:
    return {
        "side": run.side,
        "phases": [(span.name, round(span.begin_s, 2), round(span.end_s, 2)) for span in run.phases],
        "spikes": [(round(span.begin_s, 2), round(span.end_s, 2)) for span in run.spikes],
    }


def _spike(run: RunOf, span: MarkedSpan) -> tuple[str, ...]:
    drop = "–" if span.drop is None else f"{100 * span.drop:.0f} %"
    return run.id, f"{span.begin_s:,.1f} s", f"{span.end_s:,.1f} s", drop, span.name


def _findings(report: ReportPage) -> list[dict[str, Any]]:
    """Sentences of the table with links to its rows, or those of pivot tables."""
    if report.table:
        return table_section.findings(report.table)
    sentences = report.pivots.sentences if report.pivots else ()
    return [{"text": text, "cites": (), "shown": True} for text in sentences]
