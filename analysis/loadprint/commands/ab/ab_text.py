"""Renders a `Result` as text of 100 columns, JSON, CSV or Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import astuple, fields

from loadprint import numbers
from loadprint.commands.ab.result import AbWindow, Effect, Result
from loadprint.rendering.printout import Block, Printout, as_json, renderers

HEADS = ("", "", "treatment", "baseline", "ratio", "95 % interval", "p")
WINDOW_HEADS = (
    *("window", "block", "variant", "from", "to"),
    *("queries/s", "CPU %", "q/CPU-s", "host %", "counts"),
)


def _printout(result: Result) -> Printout:
    checks = tuple((f"{check.state:<9} {check.name}", check.text) for check in result.checks)
    blocks = (*effect_blocks(result), *window_block(result), Block(rows=checks))
    flips = [Block("Switched", notes=result.flips)] if result.flips else []
    ended = [] if result.status == "complete" else [f"{result.status}: {result.reason}"]
    title = f"{result.name}: {result.title}" if result.title else result.name
    return Printout(title, result.facts, result.warnings, (*blocks, *flips), (*ended, result.sentence))


def _lines(result: Result) -> Iterator[Iterable[object]]:
    """The effects, one a line, unrounded."""
    yield (field.name for field in fields(Effect))
    yield from map(astuple, result.effects)


RENDERERS = renderers(_printout, _lines, as_json)


def effect_blocks(result: Result) -> list[Block]:
    """The effects, and those with the excluded blocks if there are some."""
    tables = (("", result.effects), ("With the excluded blocks:", result.with_excluded))
    return [
        Block(title, HEADS, tuple(map(_effect_row, effects)), left=2) for title, effects in tables if effects
    ]


def window_block(result: Result) -> list[Block]:
    """The windows, and why some are excluded, if they are known."""
    rows = tuple(_window_row(result, window) for window in result.windows)
    left_out = [window for window in result.windows if window.number in result.excluded]
    excluded = tuple(f"{window.name:<4}{result.excluded[window.number]}" for window in left_out)
    return [Block("", WINDOW_HEADS, rows, excluded, left=3)] if rows else []


def _effect_row(effect: Effect) -> tuple[str, ...]:
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


def _window_row(result: Result, window: AbWindow) -> tuple[str, ...]:
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
