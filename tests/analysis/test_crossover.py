"""Crossovers: a change of order between connection counts is claimed where both orders are significant."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from loadprint.commands.sweep import cells
from loadprint.commands.sweep.crossover import Crossover, crossovers
from loadprint.commands.sweep.sweep_pivots import sweep
from loadprint.errors import InputError
from loadprint.rendering.render_pivot import RENDERERS
from loadprint.statistics import stats
from recordings import Host, make_execution, write_json, write_manifest

Rates = dict[tuple[str, int], tuple[int, ...]]


def made(path: Path, rates: Rates, **changed: Host) -> Path:
    """Two servers by connection counts; each repeat's operations a second."""
    sides, plans = {}, {}
    for (server, threads), own in rates.items():
        name = f"{server}-t{threads}"
        host = changed.get(name, Host())
        sides[name] = [replace(host, seconds=4, events=rate) for rate in own]
        cell = {"source": server, "threads": threads}
        plans[name] = {"of": "oltp", "threads": threads, "workload": "oltp_read_write", "cell": cell}
    return make_execution(path, sides, next(iter(sides)), plans, {"name": "versions"})


def crossover(path: Path) -> tuple[Crossover, str]:
    report = sweep(path)
    (result,) = report.crossovers
    return result, report.sentences[-1]


def test_an_order_that_turns_is_a_crossover_between_its_neighbours(tmp_path: Path) -> None:
    rates: Rates = {("old", 2): (500, 503, 498), ("old", 8): (900, 905, 897), ("old", 32): (900, 904, 899)}
    rates |= {("new", 2): (450, 453, 449), ("new", 8): (899, 906, 898), ("new", 32): (990, 996, 988)}
    path = made(tmp_path / "x", rates)
    result, text = crossover(path)
    assert (result.column, result.against, result.verdict) == ("new", "old", "crossover")
    assert [at.sign for at in result.at] == [-1, 0, 1]
    # significant counts on both sides of an inconclusive one
    assert result.between == (("2", "32"),)
    assert result.at[0].ratio == pytest.approx(450 / 500, rel=2e-3)
    assert text.startswith("Crossover between 2 and 32 connections: new / old is 0.90")
    told = json.loads(RENDERERS["json"](sweep(path)))
    assert told["crossovers"][0]["verdict"] == "crossover"
    beside = next(pivot for pivot in told["pivots"] if pivot["key"] == "beside")
    assert beside["cells"][2][0] == pytest.approx(1.1, rel=2e-3)


@pytest.mark.parametrize(
    ("repeats", "why"),
    [((900, 1100, 960), "not significant at 2"), ((900, 940), "fewer than 3 repeats at 2, 32")],
)
def test_a_change_of_sign_that_may_be_chance_is_inconclusive(
    tmp_path: Path, repeats: tuple[int, ...], why: str
) -> None:
    even = (1000, 1001, 999)[: len(repeats)]
    ahead = (1100, 1102, 1099)[: len(repeats)]
    rates: Rates = {("old", 2): even, ("old", 32): even, ("new", 2): repeats, ("new", 32): ahead}
    result, text = crossover(made(tmp_path / "x", rates))
    assert (result.verdict, result.between) == ("inconclusive", ())
    assert text.startswith(f"Crossover inconclusive, {why}")


def test_a_column_that_stays_ahead_is_not_a_crossover(tmp_path: Path) -> None:
    old, new = (1000, 1001, 999), (1100, 1102, 1099)
    result, text = crossover(
        made(tmp_path / "x", {("old", 2): old, ("old", 8): old, ("new", 2): new, ("new", 8): new})
    )
    assert result.verdict == "none"
    assert text.startswith(
        "No crossover: new has the higher throughput at every connection count: new / old is 1.1 ["
    )


def test_another_operation_is_not_put_beside(tmp_path: Path) -> None:
    even = (1000, 1001, 999)
    other = Host(operation="something else")
    path = made(
        tmp_path / "x",
        {("old", 2): even, ("old", 8): even, ("new", 2): even, ("new", 8): even},
        **{"new-t2": other, "new-t8": other},
    )
    assert sweep(path).crossovers == ()


def test_equals_are_rarely_called_a_crossover(tmp_path: Path) -> None:
    """The two columns are one: in a hundred sweeps of four counts hardly any is claimed."""
    path = made(tmp_path / "x", {(s, t): (1000,) * 3 for s in ("old", "new") for t in (1, 2, 4, 8)})
    swept = cells.read(path)
    drawn = random.Random(7)
    claimed = 0
    for _ in range(100):
        for cell in swept.cells:
            for run in cell.runs:
                run.quantities.put("load.events", drawn.gauss(1000, 30))
        grid = {(str(cell.plan["threads"]), str(cell.plan["cell"]["source"])): cell for cell in swept.cells}
        (one,) = crossovers(grid, ["1", "2", "4", "8"], ["old", "new"], "old")
        claimed += one.verdict == "crossover"
    assert claimed <= 5


def versions(path: Path, server: str, rates: dict[int, tuple[int, ...]], **campaign: object) -> Path:
    """An execution of one server at some connection counts."""
    plans = {
        f"oltp-t{t}": {"of": "oltp", "threads": t, "workload": "oltp_read_write", "cell": {"threads": t}}
        for t in rates
    }
    sides = {
        f"oltp-t{t}": [replace(Host(), seconds=4, events=rate) for rate in own] for t, own in rates.items()
    }
    made = make_execution(path, sides, "oltp-t2", plans, {"name": "versions", **campaign})
    for file in made.glob("*/run.json"):
        meta = json.loads(file.read_text(encoding="utf-8"))
        write_json(file, meta | {"execution": path.name, "versions": {"server": server}})
        write_manifest(file.parent)
    return made


def test_two_executions_are_two_servers(tmp_path: Path) -> None:
    old = versions(tmp_path / "1", "mariadb 10.11.14", {2: (500, 503, 498), 16: (900, 905, 897)})
    new = versions(tmp_path / "2", "mysql 9.7.4", {2: (450, 453, 449), 16: (990, 996, 988)})
    report = sweep(old, None, new)
    throughput = report.pivots[0]
    assert (throughput.rows, throughput.columns) == (("2", "16"), ("mariadb 10.11.14", "mysql 9.7.4"))
    (result,) = report.crossovers
    assert (result.verdict, result.between) == ("crossover", (("2", "16"),))
    # blocks of the same number belong to two executions: Welch's t, not a paired one
    alone = stats.ratio((450, 453, 449), (500, 503, 498), paired=False)
    assert result.at[0].p == pytest.approx(alone.p, rel=1e-6)
    assert [warning for warning in report.warnings if "one after the other" in warning]
    assert not [warning for warning in report.warnings if "differs from" in warning]


def test_what_else_differs_between_two_executions_is_said(tmp_path: Path) -> None:
    rates: dict[int, tuple[int, ...]] = {2: (500, 503, 498), 16: (900, 905, 897)}
    old = versions(tmp_path / "1", "mysql 9.7.4", rates, phases={"warmup": 1, "measure": 4})
    new = versions(tmp_path / "2", "mysql 9.7.4", rates, phases={"warmup": 9, "measure": 4})
    report = sweep(old, None, new)
    assert report.pivots[0].columns == ("1", "2")  # one version: labelled by their executions
    assert f"{new} also differs from {old} in phases" in report.warnings
    with pytest.raises(InputError, match="is given twice"):
        sweep(old, None, old)
