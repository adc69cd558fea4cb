"""What carries over from one turn to the next: a known effect is found, and none where there is none."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from every_table import every_table
from loadprint.judging.carried import carried, effect_of
from loadprint.metrics.gather import Measured, gather
from loadprint.metrics.quantities import Quantities
from loadprint.metrics.turns import CONTRASTS, PROBED
from loadprint.reading.queries import Store
from loadprint.reading.sides import single
from recordings import SECOND, Host, Tables, change_column, make_run, of_mysql, read_at, write_lines

TURN = 4  # seconds
ORDERS = ("ab", "ba", "ab", "ba", "ba", "ab", "ba", "ab")


def turns() -> list[tuple[int, int, str]]:
    """The round, the position and the side of each turn."""
    return [
        (number, place, side) for number, order in enumerate(ORDERS, 1) for place, side in enumerate(order, 1)
    ]


def start(
    path: Path, faster: Callable[[int], bool], first_second: int = 100, gated: str = "ebpf_states"
) -> Path:
    """A start of side a, which has a tenth more statements in some of all turns, by their number."""

    def statements(tick: int) -> int:
        return sum(1100 if faster((second - 1) // TURN) else 1000 for second in range(1, tick + 1))

    def tables(ticks: range) -> Tables:
        return of_mysql({"Questions": statements})(ticks) | {gated: every_table(ticks)[gated]}

    host = Host(seconds=TURN * len(turns()) + 2, more=tables)
    run = make_run(path, host, side="a")
    lines = []
    for turn, (number, position, side) in enumerate(turns()):
        begin, end = read_at(1 + turn * TURN), read_at(1 + (turn + 1) * TURN)
        times = {"begin_ns": begin, "measured_from_ns": begin, "end_ns": end - SECOND // 2}
        lines.append({"round": number, "position": position, "side": side, "probed": turn % 4 < 2, **times})
    write_lines(run / "slices.jsonl", lines)
    begins = [turn * TURN for turn, (_, _, side) in enumerate(turns()) if side == "a"]
    change_column(
        run / "load/throughput.parquet",
        "queries",
        lambda row: first_second if row["second"] - 1 in begins or row["second"] in begins else 100,
    )
    return run


def contrasts(run: Path) -> dict[str, float]:
    found = gather(single(run).runs[0], Store()).quantities.values
    return {name: found[f"turns.{name}"].rate for name in CONTRASTS}


def test_each_contrast_is_that_of_its_turns(tmp_path: Path) -> None:
    every = turns()
    first = contrasts(start(tmp_path / "first", lambda turn: turn < len(every) and every[turn][1] == 1))
    assert first["position"] == pytest.approx(math.log(1.1))
    after = contrasts(
        start(tmp_path / "after", lambda turn: 0 < turn < len(every) and every[turn - 1][2] == "a")
    )
    assert after["predecessor"] == pytest.approx(math.log(1.1))
    probed = start(tmp_path / "probed", lambda turn: turn % 4 < 2)
    effect = effect_of([gather(single(probed).runs[0], Store())], PROBED)
    assert effect == pytest.approx((math.log(1.1), 0))
    without = start(tmp_path / "without", lambda turn: turn % 4 < 2, gated="vmstat")
    assert effect_of([gather(single(without).runs[0], Store())], PROBED) is None, "no program had a gate"
    none = contrasts(start(tmp_path / "none", lambda turn: False))
    assert list(none.values()) == pytest.approx([0.0, 0.0, 0.0])


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    run = start(tmp_path_factory.mktemp("carried") / "run", lambda turn: False)
    return gather(single(run).runs[0], Store())


def starts(measured: Measured, effect: float, random: np.random.Generator, spread: float) -> list[Measured]:
    """Five starts with an effect of the predecessor, and a spread of all contrasts."""
    found = []
    for _ in range(5):
        out = Quantities()
        for name in CONTRASTS:
            at = effect if name == "predecessor" else 0.0
            out.put(f"turns.{name}", random.normal(at, spread))
            out.put(f"turns.{name}.variance", spread**2)
            out.put(f"turns.{name}.freedom", 14.0)
        found.append(replace(measured, quantities=out))
    return found


def test_an_effect_is_reported_and_equal_turns_are_not(measured: Measured) -> None:
    random = np.random.default_rng(53)
    known = starts(measured, math.log(0.9), random, 0.01)
    none = starts(measured, 0.0, random, 0.01)
    found = carried(["a", "b"], [none, known])
    assert found
    text, remedy = found
    assert text.startswith("b has 10 % [")
    assert text.endswith("fewer statements/s after a turn of its own")
    assert remedy == "use slices.length: 4.5s"
    pairs = [[starts(measured, 0.0, random, 0.013) for _ in range(2)] for _ in range(400)]
    assert sum(bool(carried(["a", "b"], pair)) for pair in pairs) < 0.1 * len(pairs)
    small = starts(measured, 0.005, random, 0.0005)
    assert not carried(["a", "b"], [small, small]), "below one percent"
