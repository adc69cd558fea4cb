"""Runs of one block, which ran close together: what makes runs of two sides pairs."""

from __future__ import annotations

from collections.abc import Sequence

from loadprint.metrics.gather import Measured


def ordered(runs: Sequence[Measured]) -> tuple[Measured, ...]:
    """Runs in the order of their blocks, or as they are where these do not tell."""
    own = _by_block(runs)
    return tuple(own[block] for block in sorted(own)) if own else tuple(runs)


def paired(runs: Sequence[Measured], others: Sequence[Measured]) -> bool:
    """Whether the runs of two sides, `ordered`, are of the same blocks position by position."""
    own = _by_block(runs)
    return bool(own) and own.keys() == _by_block(others).keys() and _together([*others, *runs])


def _by_block(runs: Sequence[Measured]) -> dict[int, Measured]:
    """Runs by block; empty where a run names no block or two share one, so that nothing can be paired."""
    blocks = [run.run.meta.get("block") for run in runs]
    if len(set(blocks)) < len(blocks) or not all(isinstance(block, int) for block in blocks):
        return {}
    return {int(str(block)): run for block, run in zip(blocks, runs, strict=True)}


def _together(runs: Sequence[Measured]) -> bool:
    """Whether all runs are of one execution on one host: only then do their blocks belong together."""
    hosts = {run.run.fingerprint("server").get("host") for run in runs}
    return len(hosts) == 1 and len({run.run.path.resolve().parent for run in runs}) == 1
