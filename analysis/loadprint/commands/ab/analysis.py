"""Windows and what is known of an experiment → `Result`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loadprint.commands.ab import verdict
from loadprint.commands.ab.effects import effects as effects_of
from loadprint.commands.ab.gates import Limits, match
from loadprint.commands.ab.result import BASELINE, HEADLINE, TREATMENT, Check, Result, Window


@dataclass(frozen=True)
class About:
    """What is known of an experiment besides its windows; the fields are those of `Result`."""

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
    """Judge the windows, take the effects over the blocks that count, and say what may be said."""
    whole = _whole_blocks(windows)
    matched = match(windows, limits)
    used = [window for window in windows if window.block in whole and window.number not in matched.excluded]
    excluded = dict(matched.excluded)
    for window in windows:
        if window.block not in whole:
            excluded.setdefault(window.number, "its block was not finished")
    found = effects_of(used)
    blocks, counted = len({window.block for window in windows}), len({window.block for window in used})
    kind, regime = verdict.regime(found)
    word, sentence = verdict.judge(about.status, blocks, counted, found)
    headline = verdict.by_key(found, HEADLINE)
    return Result(
        name=about.name,
        title=about.title,
        schedule=about.schedule,
        status=about.status,
        reason=about.reason,
        effects=found,
        windows=tuple(windows),
        blocks=blocks,
        blocks_used=counted,
        excluded=excluded,
        checks=(*about.guards, *matched.checks, *verdict.diagnostics(used)),
        regime=kind,
        verdict=word,
        sentence=sentence,
        flips=about.flips,
        warnings=(*about.warnings, *verdict.warnings(about.schedule, counted, headline)),
        facts=(*about.facts, ("regime", regime)),
    )


def _whole_blocks(windows: Sequence[Window]) -> set[int]:
    """Blocks that have both variants, and as many windows as the fullest block."""
    sizes = {block: [w.variant for w in windows if w.block == block] for block in {w.block for w in windows}}
    most = max((len(variants) for variants in sizes.values()), default=0)
    return {
        block
        for block, variants in sizes.items()
        if len(variants) == most and TREATMENT in variants and BASELINE in variants
    }
