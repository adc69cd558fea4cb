"""Sides from a matrix, scales, variables, and the rates of equal load."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from loadprint.__main__ import main
from loadprint.commands.campaign.campaign_file import load
from loadprint.commands.campaign.equal_load import resolve
from loadprint.commands.campaign.execution import Plan, open_execution, order, plan
from loadprint.configuration.document import DocumentError
from reads import known
from test_campaign import line_of

CAMPAIGNS = Path(__file__).parents[2] / "ansible" / "campaigns"
BASE = """\
name: mine
title: a campaign of the tests
reference: REFERENCE
repeats: 2
MORE
phases: {warmup: 1s, measure: 2s}
warm: {promise: none}
server:
  buffer_pool_size: 64M
  redo_capacity: 64M
  performance_schema: false
  options: {innodb_io_capacity: 100}
data:
  sbtest: {workload: oltp_point_select, size: 100M}
sides:
SIDES
"""
MATRIX = """\
  point:
    workload: oltp_point_select
    data: sbtest
    options: {tables: 2}
    matrix:
      threads: [1, 4]
      protocol: [text, ps]
"""


def written(tmp_path: Path, sides: str, reference: str, more: str = "") -> Path:
    path = tmp_path / "mine.yml"
    text = BASE.replace("SIDES\n", sides).replace("REFERENCE", reference).replace("MORE\n", more)
    path.write_text(text, encoding="utf-8")
    return path


def test_a_matrix_is_one_side_per_combination(tmp_path: Path) -> None:
    document = plan(load(written(tmp_path, MATRIX, "point-text-t1")), "a" * 64).document
    assert list(document["sides"]) == ["point-text-t1", "point-ps-t1", "point-text-t4", "point-ps-t4"]
    side = document["sides"]["point-ps-t4"]
    assert (side["threads"], side["options"]) == (4, {"tables": 2, "protocol": "ps"})
    assert (side["of"], side["cell"]) == ("point", {"threads": 4, "protocol": "ps"})
    assert Counter(run["side"] for run in document["runs"]) == dict.fromkeys(document["sides"], 2)


def test_columns_are_named_by_a_pattern_and_never_twice(tmp_path: Path) -> None:
    named = MATRIX.replace("  point:\n", '  point:\n    name: "{protocol}-t{threads}"\n')
    assert list(load(written(tmp_path, named, "ps-t4")).columns)[-1] == "ps-t4"
    path = written(tmp_path, named.replace("-t{threads}", ""), "ps")
    with pytest.raises(DocumentError, match='two columns have the name "text"') as error:
        load(path)
    assert str(error.value).startswith(f"{path}:{line_of(path, '    name: ')}: ")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("threads: [1, 4]", "threads: [1, many]", "sides.point.matrix.threads: "),
        ("threads: [1, 4]", "threads: []", "sides.point.matrix.threads: "),
        ("      threads: [1, 4]\n", "", 'sides.point: key "threads" is missing'),
        ("options: {tables: 2}", "generator: command", "generator and workload `command` need each other"),
        ("options: {tables: 2}", "generator: sysbnech", "sides.point.generator: Input should be 'native'"),
        ("options: {tables: 2}", "server: {option: {}}", 'unknown key "option" in sides.point.server'),
    ],
)
def test_a_mistake_in_a_side_is_placed(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert old in MATRIX
    path = written(tmp_path, MATRIX.replace(old, new), "point-text-t1")
    with pytest.raises(DocumentError) as error:
        load(path)
    assert says in str(error.value)
    assert str(error.value).startswith(f"{path}:")


def test_a_side_changes_the_server_and_keeps_the_rest(tmp_path: Path) -> None:
    sides = MATRIX.replace("protocol: [text, ps]", "server.innodb_max_dirty_pages_pct: [90, 20]").replace(
        "options: {tables: 2}", "server: {profile: blog, options: {innodb_io_capacity: 200}}"
    )
    document = plan(load(written(tmp_path, sides, "point-90-t1")), "a" * 64).document
    server = document["sides"]["point-20-t1"]["server"]
    assert server["profile"] == "blog"
    assert server["options"] == {"innodb_io_capacity": 200, "innodb_max_dirty_pages_pct": 20}
    assert (server["buffer_pool_size"], server["redo_capacity"]) == (64 << 20, 64 << 20)
    assert document["campaign"]["server"]["profile"] == "durable"


SCALED = """\
variables:
  warehouses: 10
  users: "{{ (0.256 * warehouses) | round(0, 'ceil') | int }}"
scales:
  large:
    variables: {warehouses: 1000}
    phases: {measure: 1m}
"""
SIZED = MATRIX.replace("threads: [1, 4]", 'threads: [1, "{{ users }}"]')


def test_variables_size_a_campaign_and_a_scale_changes_them(tmp_path: Path) -> None:
    path = written(tmp_path, SIZED, "point-text-t1", SCALED)
    small, large = load(path), load(path, scales=["large"])
    assert [side.threads for side in small.columns.values()] == [1, 1, 3, 3]
    assert [side.threads for side in large.columns.values()] == [1, 1, 256, 256]
    assert (small.phases.measure, large.phases.measure, large.phases.warmup) == (2.0, 60.0, 1.0)
    assert load(path, ["variables.warehouses=100"]).columns["point-ps-t26"].threads == 26
    assert large.scale == ["large"]
    # an override may be about what only the chosen set brings
    more = SCALED + "  more:\n    sides: {other: {workload: w, data: sbtest, threads: 1}}\n"
    path = written(tmp_path, SIZED, "point-text-t1", more)
    assert load(path, ["sides.other.threads=7"], scales=["more"]).columns["other"].threads == 7


def test_mistakes_in_scales_and_variables_are_placed(tmp_path: Path) -> None:
    path = written(tmp_path, SIZED, "point-text-t1", SCALED)
    with pytest.raises(DocumentError, match='no scale "huge"; available: large'):
        load(path, scales=["huge"])
    path = written(tmp_path, SIZED, "point-text-t1", SCALED.replace("measure: 1m", "mesure: 1m"))
    with pytest.raises(DocumentError, match='unknown key "mesure" in phases') as error:
        load(path)  # although it is not chosen
    assert str(error.value).startswith(f"{path}:{line_of(path, 'mesure')}: ")
    path = written(tmp_path, SIZED.replace("users", "user"), "point-text-t1", SCALED)
    with pytest.raises(
        DocumentError, match=r"'user' is undefined .*variables are warehouses, users"
    ) as error:
        load(path)
    assert str(error.value).startswith(f"{path}:{line_of(path, 'threads:')}: ")


EQUAL = "mode: equal-load\nequal_load: {fractions: [0.5, 0.9]}\n"
ONE = MATRIX.replace("      threads: [1, 4]\n", "").replace("data: sbtest", "data: sbtest\n    threads: 4")


def test_equal_load_runs_follow_the_saturation_runs(tmp_path: Path) -> None:
    campaign = load(written(tmp_path, ONE, "point-text", EQUAL))
    runs = order(campaign, 3)
    assert [("@" in run["side"]) for run in runs] == [False] * 4 + [True] * 8
    assert Counter((run["block"], run["side"]) for run in runs) == {
        (block, f"point-{side}{load}"): 1
        for block in (1, 2)
        for side in ("text", "ps")
        for load in ("", "@50", "@90")
    }
    assert len({run["rand_seed"] for run in runs if run["block"] == 1}) == 2


def finish(opened: Plan, run: str, rate: float, status: str = "complete") -> None:
    assert opened.directory is not None
    load = opened.directory / run / "load"
    load.mkdir(parents=True)
    (load.parent / "run.json").write_text(json.dumps({"status": status}), encoding="utf-8")
    # two types, of which only the first is an operation, as in TPROC-C: --rate counts operations
    result = {
        "events": rate * 10,
        "seconds": 10.0,
        "transactions": {"a": {"count": rate * 10}, "b": {"count": rate * 13}},
    }
    (load / "result.json").write_text(json.dumps(result), encoding="utf-8")


def test_the_rate_is_a_share_of_the_slower_sides_mean_maximum_and_stays(tmp_path: Path) -> None:
    campaign = load(written(tmp_path, ONE, "point-text", EQUAL))
    opened = open_execution(campaign, "a" * 64, tmp_path)
    directory = known(opened.directory)
    finish(opened, "b1-point-text-r1", 900)
    with pytest.raises(DocumentError, match="no saturation run of point-ps is complete"):
        resolve(directory, "b1-point-text@50-r1")
    finish(opened, "b2-point-text-r2", 5, "failed")
    finish(opened, "b1-point-ps-r1", 400)
    finish(opened, "b2-point-ps-r2", 600)
    actual = resolve(directory, "b1-point-text@90-r1")
    assert (actual["rate"], actual["maximum"], actual["slowest"]) == (450.0, 500.0, "point-ps")
    assert actual["arguments"] == ["--rate=450"]
    assert actual["saturated"] == {"point-text": 900.0, "point-ps": 500.0}
    assert resolve(directory, "b1-point-text-r1")["arguments"] == []
    # what was measured later changes nothing: the repeats belong together
    (directory / "b2-point-ps-r2" / "run.json").write_text("{}", encoding="utf-8")
    again = open_execution(campaign, "a" * 64, tmp_path)
    assert again.directory == directory
    assert resolve(directory, "b2-point-text@90-r2")["rate"] == 450.0


@pytest.mark.parametrize("path", sorted(CAMPAIGNS.glob("*.yml")), ids=lambda path: path.stem)
def test_shipped_campaigns_are_valid_at_every_scale_and_end_in_time(path: Path) -> None:
    campaign = load(path)
    assert campaign.name == path.stem
    assert f"campaign={path.stem}" in path.read_text(encoding="utf-8") or path.stem == "quick"
    phases = campaign.phases
    minutes = len(order(campaign, 1)) * (phases.warmup + phases.measure + 9) / 60
    # a whole table of cells, three times; windows in which spikes can be found
    limit = {"insert-scaling": 50, "checkpoint-spikes": 30}.get(path.stem, 25)
    assert minutes < limit, "no room is left for preparing the data in half an hour"


def test_sides_whose_programs_are_missing_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(CAMPAIGNS / "lookup-scaling.yml")
    assert main(["campaign", path, "--needs"]) == 0
    assert json.loads(capsys.readouterr().out) == ["loadprint-go-lookup", "sysbench"]
    assert main(["campaign", path, "--missing", "sysbench", "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {side["of"] for side in document["sides"].values()} == {"text", "cached", "go", "go-default"}
    assert document["notes"] == [
        "side sysbench is left out: the load's host has no sysbench; apt-get install sysbench"
    ]
    needed = ["--set", "reference=sysbench-t1", "--missing", "sysbench"]
    assert main(["campaign", path, *needed]) == 2
    assert "the reference sysbench-t1 needs it" in capsys.readouterr().err
