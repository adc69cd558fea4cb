"""Pairs the runs of two sides by block: runs of one block ran close together."""

from __future__ import annotations

from collections.abc import Sequence

from loadprint.metrics.gather import Measured


def ordered(runs: Sequence[Measured]) -> tuple[Measured, ...]:
    """Runs ordered by block; unchanged if they cannot be paired."""
    by_block = _by_block(runs)
    return tuple(by_block[block] for block in sorted(by_block)) if by_block else tuple(runs)


def paired(runs: Sequence[Measured], others: Sequence[Measured]) -> bool:
    """Whether the runs of two sides are of the same blocks, of one execution on one host."""
    by_block = _by_block(runs)
    return bool(by_block) and by_block.keys() == _by_block(others).keys() and _together([*others, *runs])


def _by_block(runs: Sequence[Measured]) -> dict[int, Measured]:
    """Runs by block; empty if a run has no block or two have the same."""
    blocks = {run.run.meta.block: run for run in runs}
    by_block = {block: run for block, run in blocks.items() if block is not None}
    return by_block if len(by_block) == len(runs) else {}


def _together(runs: Sequence[Measured]) -> bool:
    """Whether all runs are of one execution on one host: block numbers of others are unrelated."""
    hosts = {run.run.fingerprint("server").host for run in runs}
    return len(hosts) == 1 and len({run.run.path.resolve().parent for run in runs}) == 1
