"""Renders a `Result` as text of 100 columns, JSON, CSV or Markdown."""

from __future__ import annotations

import io
import json
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import asdict, astuple, fields

from loadprint import numbers
from loadprint.commands.ab.result import AbWindow, Effect, Result
from loadprint.rendering import escape
from loadprint.rendering.grid import grid

WIDTH = 100
HEADS = ("", "", "treatment", "baseline", "ratio", "95 % interval", "p")
WINDOW_HEADS = (
    "window",
    "block",
    "variant",
    "from",
    "to",
    "queries/s",
    "CPU %",
    "q/CPU-s",
    "host %",
    "counts",
)


def text(result: Result) -> str:
    """Render for a terminal."""
    lines = [f"{result.name}: {result.title}" if result.title else result.name]
    lines += [_hanging(f"{label:<10}", fact) for label, fact in result.facts]
    lines += [_hanging("warning   ", warning) for warning in result.warnings]
    lines += ["", *grid([HEADS, *(effect_row(effect) for effect in result.effects)], left=2), ""]
    if result.with_excluded:
        lines += ["With the excluded blocks:", ""]
        lines += [*grid([HEADS, *(effect_row(effect) for effect in result.with_excluded)], left=2), ""]
    if result.windows:
        lines += [*grid([WINDOW_HEADS, *(window_row(result, w) for w in result.windows)], left=3), ""]
        lines += [
            _hanging(f"  {w.name:<4}", result.excluded[w.number])
            for w in result.windows
            if w.number in result.excluded
        ]
        lines += [""] if result.excluded else []
    width = max((len(check.name) for check in result.checks), default=0)
    lines += [_hanging(f"{c.state:<9} {c.name:<{width}}  ", c.text) for c in result.checks]
    lines += [""] if result.checks else []
    if result.flips:
        lines += ["Switched:", *(_hanging("  ", flip) for flip in result.flips), ""]
    if result.status != "complete":
        lines.append(_hanging("", f"{result.status}: {result.reason}"))
    lines.append(_hanging("", result.sentence))
    return "\n".join(line.rstrip() for line in lines) + "\n"


def as_json(result: Result) -> str:
    """Render everything as one JSON object."""
    return json.dumps(asdict(result), indent=1, ensure_ascii=False) + "\n"


def as_csv(result: Result) -> str:
    """Render the effects, one a line, unrounded."""
    out = io.StringIO()
    writer = escape.CsvWriter(out)
    writer.writerow(field.name for field in fields(Effect))
    for effect in result.effects:
        writer.writerow(astuple(effect))
    return out.getvalue()


def markdown(result: Result) -> str:
    """Render the table of effects, the checks and the sentence."""
    table = _markdown_table(result.effects)
    if result.with_excluded:
        table += ["", "With the excluded blocks:", "", *_markdown_table(result.with_excluded)]
    checks = [f"- {check.state}: {escape.markdown(f'{check.name}: {check.text}')}" for check in result.checks]
    warnings = [f"- warning: {escape.markdown(warning)}" for warning in result.warnings]
    sentence = escape.markdown(result.sentence)
    return (
        "\n".join([f"## {escape.markdown(result.name)}", "", *table, "", *warnings, *checks, "", sentence])
        + "\n"
    )


def _markdown_table(effects: Sequence[Effect]) -> list[str]:
    rows = [HEADS, *(effect_row(effect) for effect in effects)]
    table = ["| " + " | ".join(map(escape.markdown, row)) + " |" for row in rows]
    table.insert(1, "|---|---|" + "--:|" * (len(HEADS) - 2))
    return table


RENDERERS: dict[str, Callable[[Result], str]] = {
    "text": text,
    "json": as_json,
    "csv": as_csv,
    "markdown": markdown,
}


def effect_row(effect: Effect) -> tuple[str, ...]:
    """Return the texts of an effect, in the order of HEADS."""
    if effect.ratio is None or effect.treatment is None or effect.baseline is None:
        return (effect.label, effect.unit, "n/a", "n/a", "", effect.note, "")
    places = numbers.decimals((effect.treatment, effect.baseline), 4)
    interval = ""
    if effect.low is not None and effect.high is not None:
        interval = f"[{_ratio(effect.low)}, {_ratio(effect.high)}]"
    return (
        effect.label,
        effect.unit,
        numbers.number(effect.treatment, places),
        numbers.number(effect.baseline, places),
        numbers.brief(effect.ratio, 6) if not interval else _ratio(effect.ratio),
        interval,
        numbers.brief(effect.p_sign, 3) if effect.p_sign is not None and interval else "",
    )


def _ratio(value: float) -> str:
    """Format a ratio with four decimals, because 0.1 % matters near 1; large ratios with three digits."""
    return f"{value:.4f}" if value < 10 else numbers.ratio(value)


def window_row(result: Result, window: AbWindow) -> tuple[str, ...]:
    """Return the texts of a window, in the order of WINDOW_HEADS."""

    def text_of(value: float | None, factor: float = 1.0) -> str:
        return "n/a" if value is None else numbers.number(factor * value, 0 if factor * value >= 100 else 1)

    return (
        window.name,
        str(window.block),
        window.variant,
        f"{window.begin_s:.1f}",
        f"{window.end_s:.1f}",
        text_of(window.queries),
        text_of(window.cpu, 100),
        text_of(window.efficiency),
        text_of(window.host_busy, 100),
        "no" if window.number in result.excluded else "yes",
    )


def _hanging(label: str, text: str) -> str:
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=label,
        subsequent_indent=" " * len(label),
        break_long_words=False,
        break_on_hyphens=False,
    )
