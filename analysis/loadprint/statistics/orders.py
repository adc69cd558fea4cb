"""Draws orders of sides (runs in blocks, turns in a start, windows in an experiment), and a share of them."""

from __future__ import annotations

import random
from collections.abc import Hashable, Sequence
from itertools import cycle


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


def one_in(number: int, kinds: Sequence[Hashable], draw: random.Random) -> list[bool]:
    """Draw one in `number` of the places, and of those of each kind."""
    places = draw.sample(range(len(kinds)), len(kinds))
    order = {kind: number for number, kind in enumerate(dict.fromkeys(kinds))}
    places.sort(key=lambda place: order[kinds[place]])
    chosen = [False] * len(kinds)
    for place, is_chosen in zip(
        places, cycle(draw.sample((True, *[False] * (number - 1)), number)), strict=False
    ):
        chosen[place] = is_chosen
    return chosen
