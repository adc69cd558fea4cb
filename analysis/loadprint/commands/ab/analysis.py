"""Analyses the windows of an experiment: gates, effects and verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loadprint.commands.ab import verdict
from loadprint.commands.ab.effects import effects as effects_of
from loadprint.commands.ab.gates import Limits, apply_gates
from loadprint.commands.ab.result import BASELINE, HEADLINE, TREATMENT, Check, Result, Window


@dataclass(frozen=True)
class About:
    """The facts of an experiment except its windows; the fields are those of `Result`."""

    name: str
    schedule: str
    title: str = ""
    status: str = "complete"
    reason: str = ""
    guards: tuple[Check, ...] = ()
    flips: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    warnings: tuple[str, ...] = ()


def analyse(windows: Sequence[Window], limits: Limits, about: About) -> Result:
    """Apply the gates, compute the effects over the remaining blocks, and give the verdict."""
    complete = _complete_blocks(windows)
    gated = apply_gates(windows, limits)
    countable = complete - {window.block for window in windows if window.note}
    whole = [window for window in windows if window.block in countable]
    used = [window for window in whole if window.number not in gated.excluded]
    excluded = dict(gated.excluded)
    for window in windows:
        if window.block not in complete:
            excluded.setdefault(window.number, "its block is incomplete")
    effects = effects_of(used)
    blocks, counted = len({window.block for window in windows}), len({window.block for window in used})
    kind, regime = verdict.regime(effects)
    word, sentence = verdict.judge(about.status, blocks, counted, effects)
    headline = verdict.by_key(effects, HEADLINE)
    different = tuple(f"{each.name}: {each.text}" for each in gated.checks if each.state == "failed")
    return Result(
        name=about.name,
        title=about.title,
        schedule=about.schedule,
        status=about.status,
        reason=about.reason,
        effects=effects,
        windows=tuple(windows),
        blocks=blocks,
        blocks_used=counted,
        excluded=excluded,
        checks=(*about.guards, *gated.checks, *verdict.diagnostics(used)),
        regime=kind,
        verdict=word,
        sentence=sentence,
        flips=about.flips,
        warnings=(*about.warnings, *different, *verdict.warnings(about.schedule, counted, headline)),
        facts=(*about.facts, ("regime", regime)),
        with_excluded=effects_of(whole) if len(whole) > len(used) else (),
    )


def _complete_blocks(windows: Sequence[Window]) -> set[int]:
    """Return blocks with both variants and as many windows as the largest block."""
    by_block = {
        block: [w.variant for w in windows if w.block == block] for block in {w.block for w in windows}
    }
    size = max((len(variants) for variants in by_block.values()), default=0)
    return {
        block
        for block, variants in by_block.items()
        if len(variants) == size and TREATMENT in variants and BASELINE in variants
    }
