"""Renders a report as one HTML file without references to the network.

The template escapes all text of a recording; the JSON block has no character that could end it. The content
security policy allows only the page's own scripts and style, by their hashes.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from loadprint.commands.report import chart_text, flames_section, pack, scaling_section, table_section
from loadprint.commands.report.charts import SECTIONS
from loadprint.rendering import render_pivot
from loadprint.rendering.report_data import Course, Distribution, Percentiles, Report
from loadprint.tables.table import Table

EARLY = ("theme.js",)
LATE = ("vendor/uPlot.iife.min.js", "data.js", "charts.js", "histogram.js", "scaling.js", "table.js")
FLAMES = ("vendor/d3-selection.min.js", "vendor/d3-flamegraph.min.js", "flames.js")
STYLES = ("vendor/uPlot.min.css", "page.css", "figures.css")
EBPF_TITLES = {
    "ebpf_sched": "Scheduler: server's threads",
    "ebpf_block": "Block I/O, from driver to completion",
    "ebpf_block_size": "Block I/O, sizes",
    "ebpf_syscall_latency": "System calls of the server",
    "ebpf_statements": "Statements, inside the server",
}
UNITS = "kB is 1,024 B, as sar prints it, in charts and table; MiB is 1,024 kB."
SOUND = {"comparable": "yes", "client-bound": "no", "pinned": "yes", "observer": "small", "disturbed": "no"}
# characters that could end a script element, or a line in old JavaScript parsers
ESCAPES = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


@dataclass(frozen=True)
class Figure:
    """A chart on the page: its key in the data, heading, unit, and a text summary for each side."""

    key: str
    title: str
    shown: str
    summaries: tuple[tuple[int, str], ...]
    note: str = ""


@dataclass(frozen=True)
class Block:
    """Charts under one heading."""

    key: str
    title: str
    figures: tuple[Figure, ...]


def page(report: Report) -> str:
    """The whole page as HTML."""
    grid = pack.grid_of(report.courses)
    early, style = _asset(EARLY), _asset((*STYLES, *(("vendor/d3-flamegraph.css",) if report.flames else ())))
    late = _scoped((*LATE, *(FLAMES if report.flames else ())))
    environment = Environment(
        loader=PackageLoader("loadprint.commands.report", ""),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    return environment.get_template("page.html.j2").render(
        report=report,
        table=table_section.tabled(report.table) if report.table else None,
        times=_times(report),
        latencies=_latencies(report),
        kernels=_kernels(report),
        scaling=_scaling(report),
        **flames_section.context(report.flames),
        pivots=[
            (render_pivot.heading(pivot), pivot, *render_pivot.written(pivot))
            for pivot in report.pivots.pivots
        ]
        if report.pivots
        else [],
        findings=_findings(report),
        head=report.table or report.pivots,
        units=UNITS,
        trust="Comparability" if len(report.sides) > 1 else "Validity",
        verdicts=report.table.verdicts if report.table else (),
        doubted=_doubted(report),
        spikes=_spikes(report),
        **_experiment(report),
        thinned=grid.keep if grid and grid.thinned else 0,
        step=grid.step if grid else 0,
        differing=sum(setting.kind != "same" for setting in report.settings),
        data=Markup(_json(_data(report, grid))),
        early=Markup(early),
        late=Markup(late),
        style=Markup(style),
        policy=_policy((early, late), (style,)),
    )


def table_page(table: Table) -> str:
    """A page with the table alone."""
    from loadprint.commands.report.standalone_table import report_of  # noqa: PLC0415  of compare --format html

    return page(report_of(table))


def _asset(names: Sequence[str]) -> str:
    folder = resources.files("loadprint.commands.report")
    return "\n".join(folder.joinpath(name).read_text(encoding="utf-8").strip() for name in names)


def _scoped(names: Sequence[str]) -> str:
    return f'(() => {{"use strict";\n{_asset(names)}\n}})();'


def _policy(scripts: Sequence[str], styles: Sequence[str]) -> str:
    """Content Security Policy: nothing is loaded, and only these scripts and styles run."""
    allowed = " ".join(_hash(text) for text in scripts)
    return (
        f"default-src 'none'; script-src {allowed}; style-src {' '.join(_hash(text) for text in styles)}; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    """Hash of an element's text as browsers compute it; the template adds no white space around it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).translate(ESCAPES)


def _data(report: Report, grid: pack.Grid | None) -> dict[str, Any]:
    return {
        "sides": [side.name for side in report.sides],
        "runs": [
            {
                "id": run.id,
                "side": run.side,
                "repeat": run.repeat,
                "phases": [[span.name, round(span.begin_s, 2), round(span.end_s, 2)] for span in run.phases],
                "spikes": [[span.name, round(span.begin_s, 2), round(span.end_s, 2)] for span in run.spikes],
            }
            for run in report.runs
            if run.status == "complete"
        ],
        "grid": grid.as_object() if grid else None,
        "courses": [pack.packed(course, grid) for course in report.courses] if grid else [],
        "scaled": [scaling_section.packed(each, place) for place, each in enumerate(report.scaled)],
        "flames": flames_section.packed(report.flames),
        "percentiles": [_percentiles(chart) for chart in report.percentiles],
        "distributions": [_distribution(chart) for chart in report.distributions],
    }


def _percentiles(chart: Percentiles) -> dict[str, Any]:
    curves = [
        {
            "run": curve.run,
            "x": pack.rounded(-np.log10(1 - curve.shares)),
            "y": pack.rounded(curve.values * 1e3, 5),
        }
        for curve in chart.curves
    ]
    return {"key": f"percentiles-{chart.kind}", "shown": "ms", "curves": curves}


def _distribution(chart: Distribution) -> dict[str, Any]:
    width = np.diff(np.log10(chart.edges))
    return {
        "key": chart.key,
        "shown": chart.shown,
        "edges": pack.rounded(chart.edges * chart.factor),
        "shares": [None if own is None else pack.rounded(own, 4) for own in chart.shares],
        "heights": [None if own is None else pack.rounded(own / width, 4) for own in chart.shares],
    }


def _doubted(report: Report) -> frozenset[str]:
    """Verdicts whose answer makes the comparison doubtful."""
    verdicts = report.table.verdicts if report.table else ()
    return frozenset(verdict.key for verdict in verdicts if verdict.answer != SOUND.get(verdict.key))


def _findings(report: Report) -> tuple[table_section.Finding, ...]:
    """Sentences of the table with links to its rows, or those of pivot tables."""
    if report.table:
        return table_section.findings(report.table)
    return (
        tuple(table_section.Finding(text, (), True) for text in report.pivots.sentences)
        if report.pivots
        else ()
    )


def _spikes(report: Report) -> tuple[dict[str, Any], ...]:
    """Checkpoint spikes of all runs as texts."""
    return tuple(
        {
            "side": run.side,
            "run": run.id,
            "begin": f"{span.begin_s:,.1f} s",
            "end": f"{span.end_s:,.1f} s",
            "drop": "–" if span.drop is None else f"{100 * span.drop:.0f} %",
            "what": span.name,
        }
        for run in report.runs
        for span in run.spikes
    )


def _times(report: Report) -> tuple[Block, ...]:
    blocks = []
    for section, title in SECTIONS.items():
        chosen = [course for course in report.courses if course.section == section]
        if chosen:
            figures = tuple(figure for course in chosen for figure in _figures(course, report))
            blocks.append(Block(section, title, figures))
    return tuple(blocks)


def _figures(course: Course, report: Report) -> tuple[Figure, ...]:
    """A figure per chart; of a stack one per side, because stacks of several runs cannot overlap."""
    summaries = chart_text.of_course(course, report)
    if not course.parts:
        return (Figure(course.key, course.title, course.shown, summaries, course.note),)
    return tuple(
        Figure(f"{course.key}@{side}", course.title, course.shown, ((side, text),))
        for side, text in summaries
    )


def _latencies(report: Report) -> tuple[Block, ...]:
    curves = tuple(
        Figure(
            f"percentiles-{chart.kind}",
            chart.kind,
            "ms",
            chart_text.of_percentiles(chart, report),
            f"from {chart.source}",
        )
        for chart in report.percentiles
    )
    blocks = [
        Block("percentiles", "Percentiles, a curve per run", curves),
        _histograms(report, "latency", "Histograms, all repeats of a side together"),
    ]
    return tuple(block for block in blocks if block.figures)


def _kernels(report: Report) -> tuple[Block, ...]:
    blocks = [_histograms(report, section, title) for section, title in EBPF_TITLES.items()]
    return tuple(block for block in blocks if block.figures)


def _scaling(report: Report) -> tuple[dict[str, Any], ...]:
    """Curves over threads: the figure, its conclusions, the tables of its fit."""
    sections = []
    for place, each in enumerate(report.scaled):
        rates_text = ", ".join(
            f"{threads}: {chart_text.figure(sum(rates) / len(rates))}"
            for threads, rates in zip(each.threads, each.rates, strict=True)
        )
        figure = Figure(scaling_section.key(place), each.name, each.unit, ((place, rates_text),))
        sections.append(
            {"figure": figure, "conclusions": each.conclusions, "blocks": scaling_section.blocks(each)}
        )
    return tuple(sections)


def _experiment(report: Report) -> dict[str, Any]:
    """Content of the A/B section: rows of texts, and windows as bars."""
    if report.ab is None:
        return {"ab": None}
    from loadprint.commands.ab import ab_text  # noqa: PLC0415  few reports are of an experiment
    from loadprint.commands.report.ab_report import boxes, highest  # noqa: PLC0415

    return {
        "ab": report.ab,
        "effect_heads": ab_text.HEADS,
        "effect_tables": [
            (title, [ab_text.effect_row(effect) for effect in effects])
            for title, effects in (
                ("", report.ab.effects),
                ("With the excluded blocks", report.ab.with_excluded),
            )
            if effects
        ],
        "window_heads": ab_text.WINDOW_HEADS,
        "windows": [ab_text.window_row(report.ab, window) for window in report.ab.windows],
        "boxes": boxes(report.ab),
        "highest": highest(report.ab),
    }


def _histograms(report: Report, section: str, title: str) -> Block:
    figures = tuple(
        # the axis has the unit at every number
        Figure(chart.key, chart.title, "", chart_text.of_distribution(chart))
        for chart in report.distributions
        if chart.section == section
    )
    return Block(section, title, figures)
