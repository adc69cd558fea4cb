"""Draws the order of sides in rounds: of runs in blocks, of turns in a start, of windows in an experiment."""

from __future__ import annotations

import random
from collections.abc import Sequence


def orders(names: Sequence[str], rounds: int, draw: random.Random) -> list[list[str]]:
    """Draw the order of each round; in as many rounds as names, each name has each position once.

    An unrestricted draw may give one order only, confounded with drift.
    """
    drawn: list[list[str]] = []
    while len(drawn) < rounds:
        first = draw.sample(names, len(names))
        group = [first[place:] + first[:place] for place in range(len(names))]
        drawn += draw.sample(group, len(group))
    return drawn[:rounds]
