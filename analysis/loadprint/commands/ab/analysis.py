"""Analyses the windows of an experiment: gates, effects and verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from loadprint.commands.ab import verdict
from loadprint.commands.ab.effects import effects as effects_of
from loadprint.commands.ab.experiment import Gates
from loadprint.commands.ab.gates import apply_gates
from loadprint.commands.ab.result import HEADLINE, AbWindow, Result
from loadprint.reading.names import BASELINE, TREATMENT


def analyse(windows: Sequence[AbWindow], limits: Gates, experiment: Result) -> Result:
    """Apply the gates, compute the effects over the remaining blocks, and give the verdict.

    `experiment` has all other facts: name, schedule, status, checks of the guards, warnings.
    """
    complete = _complete_blocks(windows)
    excluded, gates = apply_gates(windows, limits)
    countable = complete - {window.block for window in windows if window.note}
    whole = [window for window in windows if window.block in countable]
    used = [window for window in whole if window.number not in excluded]
    for window in windows:
        if window.block not in complete:
            excluded.setdefault(window.number, "its block is incomplete")
    effects = effects_of(used)
    blocks, counted = len({window.block for window in windows}), len({window.block for window in used})
    kind, regime = verdict.regime(effects)
    word, sentence = verdict.judge(experiment.status, blocks, counted, effects)
    headline = verdict.by_key(effects, HEADLINE)
    return replace(
        experiment,
        effects=effects,
        windows=tuple(windows),
        blocks=blocks,
        blocks_used=counted,
        excluded=excluded,
        checks=(*experiment.checks, *gates, *verdict.diagnostics(used)),
        regime=kind,
        verdict=word,
        sentence=sentence,
        warnings=(
            *experiment.warnings,
            *(f"{gate.name}: {gate.text}" for gate in gates if gate.state == "failed"),
            *verdict.warnings(experiment.schedule, counted, headline),
        ),
        facts=(*experiment.facts, ("regime", regime)),
        with_excluded=effects_of(whole) if len(whole) > len(used) else (),
    )


def _complete_blocks(windows: Sequence[AbWindow]) -> set[int]:
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
