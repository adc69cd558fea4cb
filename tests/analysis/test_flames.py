"""Flame graphs of a report: one tree for all runs, CPU time per statement, ratios with their significance."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from damage import ask
from loadprint.commands.report.flames import ratios_of
from loadprint.commands.report.page import page
from loadprint.rendering.report_data import Flames
from profiles import OLTP, make_profiled_run, profiled_execution
from reads import known, report_of
from recordings import Host, make_execution, write_manifest


def flames_of(path: Path | str) -> Flames:
    return known(report_of(path).flames)


def test_paths_have_the_time_of_the_ledger(tmp_path: Path) -> None:
    flames = flames_of(profiled_execution(tmp_path / "execution", scale=100))
    root = flames.times[0]
    assert (flames.names[0], flames.parents[0]) == ("server CPU", -1)
    # 100 samples a second at 99 Hz, and 140 with 0, 1 and 2 % more; 2,000 statements
    assert root == pytest.approx((100 / 99 / 2000, 1.01 * 140 / 99 / 2000), rel=1e-3)
    parents = np.array(flames.parents)
    for place, parent in enumerate(flames.parents):
        assert parent < place
        assert (flames.times[parents == place].sum(axis=0) <= flames.times[place] * (1 + 1e-9)).all()
    send = flames.names.index("tcp_sendmsg_locked")
    assert flames.kernel[send]
    # 20 of 100 samples
    assert flames.times[send][0] == pytest.approx(0.2 * root[0], rel=1e-3)
    assert flames.ratios[0][send] is None
    ratio = known(flames.ratios[1][send])
    assert ratio[3]
    assert ratio[0] == pytest.approx(flames.times[send][1] / flames.times[send][0], rel=1e-3)


def test_few_samples_are_not_distinguishable(tmp_path: Path) -> None:
    few, many = (flames_of(profiled_execution(tmp_path / f"{scale}", scale=scale)) for scale in (1, 1000))
    ratios = [flames.ratios[1][flames.names.index("row_search_mvcc")] for flames in (few, many)]
    assert [ratio and ratio[3] for ratio in ratios] == [False, True]


def test_a_path_of_one_side_only_differs_if_it_has_enough_samples() -> None:
    for samples, differs in ((2.0, False), (20.0, True)):
        counts = np.array([[100.0, 100.0], [0.0, samples]])
        ratios = ratios_of(counts, np.array([1e-3, 1e-3]), ([1], [0]), paired=False)
        assert ratios[1] == (None, None, None, differs)


def test_a_page_contains_the_graph_only_with_samples(tmp_path: Path) -> None:
    with_samples = profiled_execution(tmp_path / "with")
    without = make_execution(tmp_path / "without", {"a": [Host()], "b": [Host()]}, "a")
    texts = [page(report_of(path)) for path in (with_samples, without)]
    assert "flamegraph" in texts[0]
    assert "insert against oltp" in texts[0]
    assert "flamegraph" not in texts[1]
    assert "Flame graphs</b>: a run has no samples of probe profile" in texts[1]
    data = data_of(texts[0])["flames"]
    assert data["work"] == "client statement"
    assert len({len(data[key]) for key in ("name", "parent", "kernel")}) == 1
    assert data_of(texts[1])["flames"] is None


def test_a_report_needs_no_table_but_that_of_ticks(tmp_path: Path) -> None:
    """As `record --probes cpu,profile` writes it: samples without the CPU time that they are shares of."""
    whole = make_profiled_run(tmp_path / "whole", server=OLTP)
    for table in ("cpu", "process", "nic", "profile"):
        run = tmp_path / table
        shutil.copytree(whole, run)
        shutil.rmtree(run / "load")
        for other in (run / "server").glob("*.parquet"):
            if other.stem not in ("ticks", "profile", table):
                other.unlink()
        write_manifest(run)
        assert ask("report", run, "-o", run / "report.html").status == 0
        page_text = (run / "report.html").read_text(encoding="utf-8")
        assert "Flame graphs</b>: a run has no samples of probe profile" in page_text
        assert "no CPU time of probe process" in page_text


def test_one_side_has_a_graph_without_ratios(tmp_path: Path) -> None:
    flames = flames_of(f"{profiled_execution(tmp_path / 'execution')}:insert")
    assert set(flames.ratios[0]) == {None}


def data_of(text: str) -> dict[str, Any]:
    found = known(re.search(r'id="report-data">(.*?)</script>', text, re.DOTALL))
    value = json.loads(found[1])
    assert isinstance(value, dict)
    return value
