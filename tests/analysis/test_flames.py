"""Flame graphs of a report: one tree for all runs, CPU time per statement, ratios with their significance."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from loadprint.commands.operands import resolve
from loadprint.commands.report.collect import collect
from loadprint.commands.report.flames import Compared
from loadprint.commands.report.flames import Path as CallPath
from loadprint.commands.report.page import page
from loadprint.rendering.report_data import FlameNode, Flames, PathRatio
from profiles import profiled_execution
from recordings import Host, make_execution


def flames_of(path: Path) -> Flames:
    sides, reference = resolve([str(path)])
    flames = collect(sides, reference).flames
    assert flames is not None
    return flames


def node(flames: Flames, name: str) -> FlameNode:
    (found,) = [each for each in flames.nodes if each.name == name]
    return found


def test_paths_have_the_time_of_the_ledger(tmp_path: Path) -> None:
    flames = flames_of(profiled_execution(tmp_path / "execution", scale=100))
    root = flames.nodes[0]
    assert (root.name, root.parent) == ("server CPU", -1)
    # 100 samples a second at 99 Hz, and 140 with 0, 1 and 2 % more; 2,000 statements
    assert root.times == pytest.approx((100 / 99 / 2000, 1.01 * 140 / 99 / 2000), rel=1e-3)
    for place, each in enumerate(flames.nodes):
        below = [child for child in flames.nodes if child.parent == place]
        assert each.parent < place
        for side in range(2):
            assert sum(child.times[side] for child in below) <= each.times[side] * (1 + 1e-9)
    send = node(flames, "tcp_sendmsg_locked")
    assert send.kernel
    # 20 of 100 samples
    assert send.times[0] == pytest.approx(0.2 * root.times[0], rel=1e-3)
    assert send.ratios[0] is None
    ratio = send.ratios[1]
    assert ratio is not None
    assert ratio.differs
    assert ratio.centre == pytest.approx(send.times[1] / send.times[0], rel=1e-3)


def test_few_samples_are_not_distinguishable(tmp_path: Path) -> None:
    few, many = (flames_of(profiled_execution(tmp_path / f"{scale}", scale=scale)) for scale in (1, 1000))
    flags = [ratio.differs for flames in (few, many) if (ratio := node(flames, "row_search_mvcc").ratios[1])]
    assert flags == [False, True]


def test_a_path_of_one_side_only_differs_if_it_has_enough_samples() -> None:
    compared = Compared(np.array([1e-3, 1e-3]), np.array([100.0, 100.0]), [[0], [1]], 0, [False, False])
    for samples, differs in ((2, False), (20, True)):
        root = CallPath("server CPU", kernel=False, parent=-1, samples={0: 100, 1: 100})
        call = CallPath("sp_head::execute", kernel=False, parent=0, samples={1: samples})
        assert compared.nodes([root, call])[1].ratios[1] == PathRatio(None, None, None, differs)


def test_a_page_contains_the_graph_only_with_samples(tmp_path: Path) -> None:
    with_samples = profiled_execution(tmp_path / "with")
    without = make_execution(tmp_path / "without", {"a": [Host()], "b": [Host()]}, "a")
    texts = []
    for path in (with_samples, without):
        sides, reference = resolve([str(path)])
        texts.append(page(collect(sides, reference)))
    assert "flamegraph" in texts[0]
    assert "insert against oltp" in texts[0]
    assert "flamegraph" not in texts[1]
    assert "Flame graphs</b>: a run has no samples of probe profile" in texts[1]
    data = data_of(texts[0])["flames"]
    assert data["work"] == "client statement"
    assert len({len(data[key]) for key in ("name", "parent", "kernel")}) == 1
    assert data_of(texts[1])["flames"] is None


def test_one_side_has_a_graph_without_ratios(tmp_path: Path) -> None:
    sides, reference = resolve([f"{profiled_execution(tmp_path / 'execution')}:insert"], minimum=1)
    flames = collect(sides, reference).flames
    assert flames is not None
    assert {each.ratios for each in flames.nodes} == {(None,)}


def data_of(text: str) -> dict[str, Any]:
    found = re.search(r'id="report-data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    value = json.loads(found[1])
    assert isinstance(value, dict)
    return value
