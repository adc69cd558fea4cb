"""Pivot tables of a matrix and of equal load, the rows that only such runs have, and crossovers.

A change of order between connection counts is claimed where both orders are significant.
"""

from __future__ import annotations

import csv
import io
import json
import random
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import scipy.stats
from conftest import Golden, oltp
from damage import ask
from loadprint.commands.operands import resolve
from loadprint.commands.sweep import cells
from loadprint.commands.sweep.crossover import Crossover, crossovers
from loadprint.commands.sweep.sweep_pivots import sweep
from loadprint.errors import InputError
from loadprint.rendering import render_json
from loadprint.rendering.pivot import RENDERERS, Pivot, PivotReport
from loadprint.statistics import stats
from loadprint.statistics.several import rank_correlation
from loadprint.tables import views
from published import arm_cells, inserts
from reads import compared, known, table_of
from recordings import Host, change_json, make_execution, make_matrix

SECONDS = 4


def pivot(report: PivotReport, key: str) -> Pivot:
    return next(pivot for pivot in report.pivots if pivot.key == key)


def value(report: PivotReport, key: str, row: str, column: str) -> float | None:
    actual = pivot(report, key)
    return actual.cells[actual.rows.index(row)][actual.columns.index(column)]


@pytest.fixture(scope="module")
def as_published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The published table itself, a tenth of its rates, up to four connections."""
    rates = {place: rate / 10 for place, rate in arm_cells().items() if place[0] <= 4}
    return inserts(tmp_path_factory.mktemp("published") / "x", rates)


def test_a_matrix_becomes_pivot_tables(as_published: Path, golden: Golden) -> None:
    report = sweep(as_published)
    assert value(report, "throughput", "4", "ctx5") == 556
    assert value(report, "relative", "1", "ctx1") == pytest.approx(401 / 510)
    assert value(report, "speed_up", "4", "simple") == pytest.approx(1276 / 510)
    assert value(report, "speed_up", "1", "ctx20") == 1
    # 12 ticks of 10 ms a second over 510 operations
    assert value(report, "server_cpu", "1", "simple") == pytest.approx(120_000 / 510)
    assert value(report, "switches", "1", "simple") == pytest.approx(1500 / 510)
    assert value(report, "best", "ctx20", "best connections") == 4
    golden("sweep.txt", RENDERERS["text"](report))
    golden("sweep.md", RENDERERS["markdown"](report))


def test_the_profile_is_named_where_the_campaign_has_one(as_published: Path, tmp_path: Path) -> None:
    [plain] = [fact for label, fact in sweep(as_published).facts if label == "server"]
    assert "profile" not in plain
    shutil.copytree(as_published, tmp_path / "x")
    execution = json.loads((tmp_path / "x" / "execution.json").read_text())
    execution["campaign"]["server"] = {"profile": "durable"}
    (tmp_path / "x" / "execution.json").write_text(json.dumps(execution))
    [named] = [fact for label, fact in sweep(tmp_path / "x").facts if label == "server"]
    assert named == plain.replace(", on 1 CPU", ", profile durable, on 1 CPU")


def test_formats_hold_the_same_numbers(as_published: Path) -> None:
    report = sweep(as_published, "ctx20-t1")
    rows = {
        (row["pivot"], row["row"], row["column"]): row["value"]
        for row in csv.DictReader(io.StringIO(RENDERERS["csv"](report)))
    }
    actual = json.loads(RENDERERS["json"](report))["pivots"]
    assert actual[1]["cells"][0][0] == float(rows["relative", "1", "simple"]) == pytest.approx(510 / 163)


def test_ranks_share_ties() -> None:
    a, b = [10.0, 30, 20, 20, 5], [1.0, 2, 2, 4, 3]
    assert rank_correlation(a, b) == pytest.approx(scipy.stats.spearmanr(a, b).statistic)
    assert rank_correlation([1, 2, 3, 4], [10, 20, 30, 25]) == pytest.approx(0.8)
    assert rank_correlation([1, 1, 1], [1, 2, 3]) is None


def driven(name: str, cpu: int, fraction: float | None, k: int) -> Host:
    """Repeat k of a side of `prepared`: twice the CPU, and a type whose p99 is ten times the other's."""
    events = 1000 + k if fraction is None else 500
    kinds = {
        kind: {
            "count": events * (SECONDS + 1) // 2,
            "latency_ms": {"p50": 1.0, "p95": 2.0, "p99": p99 + k / 100, "max": 30.0},
        }
        for kind, p99 in (("neword", 20.0 * cpu / 10), ("payment", 2.0))
    }
    result: dict[str, Any] = {"transactions": kinds}
    drive: dict[str, Any] = {}
    if fraction is not None:
        result |= {
            "mode": "open",
            "rate": 500,
            "achieved_rate": 500.0,
            "backlog_max": 3 + k,
            "backlog_end": 0,
        }
        result |= {"rate_held": not (name == "uncached" and k == 2)}
        drive = {"rate": 500, "fraction": fraction, "maximum": 1000.0, "slowest": "uncached"}
    prepares = events * (SECONDS + 1) if name == "uncached" else 0
    grown = {
        "Questions": events * (SECONDS + 1) + 1,
        "Com_stmt_prepare": prepares,
        "Com_stmt_execute": prepares,
        "Com_stmt_close": prepares,
        "Com_prepare_sql": 0,
        "Bytes_received": 40 * events * (SECONDS + 1),
        "Bytes_sent": 200 * events * (SECONDS + 1),
    }
    ticks = {"utime": cpu + k, "stime": 3}
    return Host(seconds=SECONDS, events=events, server_ticks=ticks, result=result, grown=grown, drive=drive)


@pytest.fixture(scope="module")
def equal_load(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sides, plans = {}, {}
    for name, cpu in (("text", 10), ("uncached", 20)):
        for fraction in (None, 0.5):
            full = name if fraction is None else f"{name}@50"
            sides[full] = [driven(name, cpu, fraction, k) for k in range(3)]
            plans[full] = {"of": name, "threads": 4, "cell": {}}
            if fraction:
                plans[full] |= {"fraction": fraction, "saturated": name}
    path = tmp_path_factory.mktemp("equal") / "x"
    return make_execution(path, sides, "text", plans, {"mode": "equal-load"})


def test_equal_load_is_told_by_load_and_side(equal_load: Path, golden: Golden) -> None:
    report = sweep(equal_load)
    assert value(report, "server_cpu_cores", "50 %", "uncached") == pytest.approx(0.24)
    assert value(report, "latency_neword_p99", "50 %", "text") == pytest.approx(20.01)
    assert pivot(report, "latency_neword_p99").rows == ("50 %",)  # never at saturation
    golden("equal_load.txt", RENDERERS["text"](report))


def test_compare_of_equal_load_takes_its_middle_load_and_judges_latency(equal_load: Path) -> None:
    assert resolve([str(equal_load)])[1] == "text@50"
    table = table_of(equal_load)
    assert [side.name for side in table.sides] == ["text@50", "uncached@50"]
    latency = known(table.row("latency_p95"))
    assert latency.headline
    assert latency in views.first(table).rows
    assert not latency.notes
    slower = known(known(table.row("latency_neword_p99")).versus[1])
    assert slower.mark == "*"  # the verdict is that of all types together
    assert slower.centre == pytest.approx(2, rel=1e-2)
    assert known(known(table.row("latency_payment_p99")).versus[1]).mark == "="
    wanted = {"rate_asked": 500, "rate_achieved": 500, "backlog_max": 4, "backlog_end": 0}
    assert {key: known(table.row(key)).cells[0].value for key in wanted} == wanted


def test_at_saturation_latency_is_shown_and_not_judged(equal_load: Path) -> None:
    table = table_of(f"{equal_load}:@max")
    assert [side.name for side in table.sides] == ["text", "uncached"]
    for key in ("latency_p99", "latency_neword_p99"):
        row = known(table.row(key))
        assert not row.headline
        assert "closed loop" in row.notes[0]
        slower = known(row.versus[1])
        assert (slower.mark, slower.low is not None) == ("", True)
    assert table.row("latency_p95") in views.first(table).rows
    asked = known(table.row("rate_asked"))
    assert (asked.view, asked.cells[0].value) == ("all", None)


def test_questions_hide_the_prepares_and_the_protocol_rows_show_them(equal_load: Path) -> None:
    table = table_of(f"{equal_load}:text", f"{equal_load}:uncached")
    actual = {row.key: [cell.value for cell in row.cells] for row in table.rows}
    assert actual["questions_per_operation"] == [1, 1]  # without the generator's own SHOW
    assert actual["stmt_prepare_per_operation"] == [0, 1]
    assert actual["stmt_close_per_operation"] == [0, 1]
    assert actual["round_trips_per_operation"] == [1, 2]
    assert actual["bytes_sent_per_operation"] == [200, 200]
    assert "protocol" in [group["key"] for group in json.loads(render_json.render(table))["groups"]]


def test_many_sides_are_sent_to_sweep_and_none_to_compare(as_published: Path, execution: Path) -> None:
    with pytest.raises(InputError, match=r"has 14 sides.*loadprint sweep"):
        resolve([str(as_published)])
    assert len(resolve([f"{as_published}:simple-t1", f"{as_published}:simple-t4"])[0]) == 2
    with pytest.raises(InputError, match=r"no matrix of sides.*loadprint compare"):
        sweep(execution)


def test_the_commands_end_with_2_and_one_line(as_published: Path, tmp_path: Path) -> None:
    assert ask("sweep", tmp_path).status == 2
    assert ask("sweep", as_published, "--base", "nothing").status == 2


def test_new_orders_a_minute_are_rows_where_a_workload_counts_them(tmp_path: Path) -> None:
    orders = [
        Host(
            seconds=SECONDS,
            operation="TPROC-C new order",
            result={"details": {"nopm": 6000 + k, "tpm": 13800}},
        )
        for k in range(3)
    ]
    table = compared(tmp_path / "x", oltp=[oltp(k) for k in range(3)], tproc_c=orders)
    nopm = known(table.row("nopm"))
    assert nopm.cells[1].value == 6001
    assert nopm.cells[0].value is None
    assert "whole mix" in nopm.notes[0]


def test_a_side_next_to_a_matrix_of_scenarios_is_one_more_column(tmp_path: Path) -> None:
    """`insert-scaling` has a custom scenario as a side: it does not rename the columns of the others."""
    plans = {
        "simple-t1": {"of": "insert", "threads": 1, "cell": {"scenario": "simple", "threads": 1}},
        "parent-t1": {"of": "insert", "threads": 1, "cell": {"scenario": "parent", "threads": 1}},
        "simple-t4": {"of": "insert", "threads": 4, "cell": {"scenario": "simple", "threads": 4}},
        "ctx3-t4": {"of": "ctx3", "threads": 4, "cell": {"threads": 4}},
    }
    sides = {name: [Host(seconds=SECONDS, events=100)] for name in plans}
    report = sweep(make_execution(tmp_path / "x", sides, "simple-t1", plans, {"name": "insert-scaling"}))
    assert pivot(report, "throughput").columns == ("simple", "parent", "ctx3")
    plans["ctx3-t4"]["cell"] = {"scenario": "simple", "threads": 4}
    report = sweep(make_execution(tmp_path / "y", sides, "simple-t1", plans, {"name": "insert-scaling"}))
    assert "ctx3-simple" in pivot(report, "throughput").columns, "two sides have the same scenario"


Rates = dict[tuple[str, int], tuple[int, ...]]


def made(path: Path, rates: Rates, **changed: Host) -> Path:
    """Two servers by connection counts; each repeat's operations a second."""
    return make_matrix(path, rates, "source", "versions", changed=changed)


def crossover(path: Path) -> tuple[Crossover, str]:
    report = sweep(path)
    (result,) = report.crossovers
    return result, report.sentences[-1]


def test_an_order_that_turns_is_a_crossover_between_its_neighbours(tmp_path: Path) -> None:
    rates: Rates = {("old", 2): (500, 503, 498), ("old", 8): (900, 905, 897), ("old", 32): (900, 904, 899)}
    rates |= {("new", 2): (450, 453, 449), ("new", 8): (899, 906, 898), ("new", 32): (990, 996, 988)}
    report = sweep(made(tmp_path / "x", rates))
    (result,) = report.crossovers
    assert (result.column, result.against, result.verdict) == ("new", "old", "crossover")
    assert [at.sign for at in result.at] == [-1, 0, 1]
    # significant counts on both sides of an undecided one
    assert result.between == (("2", "32"),)
    assert result.at[0].ratio == pytest.approx(450 / 500, rel=2e-3)
    assert report.sentences[-1].startswith("Crossover between 2 and 32 connections: new / old is 0.90")
    output = json.loads(RENDERERS["json"](report))
    assert output["crossovers"][0]["verdict"] == "crossover"
    beside = next(pivot for pivot in output["pivots"] if pivot["key"] == "beside")
    assert beside["cells"][2][0] == pytest.approx(1.1, rel=2e-3)


@pytest.mark.parametrize(
    ("repeats", "why"),
    [((900, 1100, 960), "not significant at 2"), ((900, 940), "fewer than 3 repeats at 2, 32")],
)
def test_a_change_of_sign_that_may_be_chance_is_undecided(
    tmp_path: Path, repeats: tuple[int, ...], why: str
) -> None:
    even = (1000, 1001, 999)[: len(repeats)]
    ahead = (1100, 1102, 1099)[: len(repeats)]
    rates: Rates = {("old", 2): even, ("old", 32): even, ("new", 2): repeats, ("new", 32): ahead}
    result, text = crossover(made(tmp_path / "x", rates))
    assert (result.verdict, result.between) == ("undecided", ())
    assert text.startswith(f"Crossover undecided, {why}")


def test_the_repeats_of_an_undecided_order_are_planned_for_its_level(tmp_path: Path) -> None:
    """With two counts a sign needs p ≤ 0.05, with four 0.025, which takes more repeats of the same runs."""
    even, near = (1000, 1001, 999), (985, 1012, 960)
    planned = []
    for counts in ((2, 32), (2, 4, 8, 32)):
        rates: Rates = {(side, count): even for side in ("old", "new") for count in counts}
        result, _ = crossover(made(tmp_path / str(len(counts)), rates | {("new", 2): near}))
        planned.append(known(result.at[0].more))
    assert planned[0] < planned[1]


def test_a_side_that_never_settled_is_on_no_side_of_a_crossover(tmp_path: Path) -> None:
    levels = {("old", 2): 1000, ("old", 32): 1000, ("new", 2): 900, ("new", 32): 1100}
    rates = {side: [level + k for k in range(3)] for side, level in levels.items()}
    rising = {"new-t2": Host(series=lambda second: 500 + 40 * second)}
    path = make_matrix(tmp_path / "x", rates, "source", "versions", changed=rising, seconds=20)
    result, text = crossover(path)
    assert (result.verdict, [at.sign for at in result.at]) == ("undecided", [0, 1])
    assert text.startswith("Crossover undecided, new-t2 never settled at 2: ")


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
        grid = {(str(cell.plan.threads), str(cell.plan.cell["source"])): cell for cell in swept.cells}
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
        change_json(file, execution=path.name, versions={"server": server})
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
