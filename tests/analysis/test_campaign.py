"""Campaign files: accepted ones, errors that name line, key and fix, matrices, scales, equal load."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from damage import ask, refused
from loadprint.commands.campaign.campaign_file import load
from loadprint.commands.campaign.equal_load import resolve
from loadprint.commands.campaign.execution import Plan, open_execution, order, plan
from loadprint.commands.campaign.load_program import BUILT, LoadProgram
from loadprint.configuration.document import DocumentError
from loadprint.configuration.field_types import seconds, size
from reads import known

QUICK = Path(__file__).parents[2] / "ansible" / "campaigns" / "quick.yml"


def changed(tmp_path: Path, old: str, new: str) -> Path:
    text = QUICK.read_text(encoding="utf-8")
    assert text.count(old) >= 1, old
    path = tmp_path / "mine.yml"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    return path


def line_of(path: Path, text: str) -> int:
    lines = path.read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, start=1) if text in line)


def test_quick_is_valid_and_resolved_to_seconds_and_bytes() -> None:
    campaign = load(QUICK)
    assert campaign.reference == "oltp"
    assert (campaign.design, campaign.starts, campaign.rounds) == ("alternate", 5, 16)
    assert campaign.server.redo_capacity == 128 << 20
    assert (campaign.phases.warmup, campaign.slices.seconds) == (8.0, 30.0)
    sequential = load(QUICK, scales=["sequential"])
    assert (sequential.repeats, sequential.phases.measure) == (3, 20.0)
    assert campaign.sides["insert"].options == {"scenario": "ctx5"}
    assert campaign.warm.redo_capacities_written == 0.1


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("within: 9min", "withni: 9min", 'unknown key "withni"; did you mean "within"?'),
        (
            "threads: 4",
            "thread: 4",
            'unknown key "thread" in sides.oltp; did you mean "threads"?',
        ),
        (
            "profile: durable",
            "profile: durabel",
            "server.profile: Input should be 'durable', 'blog' or 'stock'",
        ),
        (
            "seconds: 30s",
            "seconds: 20 parsecs",
            '"20 parsecs" is not a duration; write it as 8s, 2m or 1h',
        ),
        (
            "redo_capacity: 128M",
            "redo_capacity: lots",
            '"lots" is not a size; write it as 256M or 4G',
        ),
        (
            "reference: oltp",
            "reference: olpt",
            'no side "olpt"; the sides are oltp, insert',
        ),
        (
            "data: insert",
            "data: inserts",
            'sides.insert.data: no data set "inserts"',
        ),
        (
            "within: 9min",
            "within: 9min\nrecorder: {exporters: [node_exporter, nod_exporter]}",
            "recorder.exporters.1: Input should be 'node_exporter' or 'mysqld_exporter'",
        ),
        (
            "within: 9min",
            "within: 9min\nrecorder: {exporters: [node_exporter, node_exporter]}",
            "recorder: node_exporter is listed twice",
        ),
        (
            "within: 9min",
            "within: 9min\nrecorder: {mysql_probe: false, exporters: [mysqld_exporter]}",
            "needs the account that `mysql_probe: false` omits",
        ),
        ("within: 9min", "within: [3", "not YAML"),
        ("within: 9min", "within: 9min\nwithin: 8min", 'duplicate key "within"'),
    ],
)
def test_a_mistake_names_line_key_and_fix(tmp_path: Path, old: str, new: str, says: str) -> None:
    path = changed(tmp_path, old, new)
    with pytest.raises(DocumentError) as error:
        load(path)
    message = str(error.value)
    assert says in message
    assert "\n" not in message
    place, number, _ = message.split(":", 2)
    assert place == str(path)
    at = line_of(path, new.splitlines()[-1])
    # A bracket that is never closed is noticed on a later line.
    assert int(number) > at if says == "not YAML" else int(number) == at


def test_a_missing_key_is_named_and_a_missing_file_has_its_neighbours(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match=r'key "reference" is missing'):
        load(changed(tmp_path, "reference: oltp", ""))
    with pytest.raises(DocumentError, match=r"no such campaign file; available: .*quick"):
        load(QUICK.with_name("quik.yml"))


def test_overrides_reach_nested_keys() -> None:
    campaign = load(
        QUICK, ["starts=7", "precision=null", "slices.seconds=3s", "sides.oltp.options.table-size=10"]
    )
    assert campaign.starts == 7
    assert campaign.slices.seconds == 3.0
    assert campaign.sides["oltp"].options["table-size"] == 10
    existing = ["server.source=existing", "state={data: carried}"]
    assert load(QUICK, existing, scales=["sequential"]).state.page_cache == "kept"


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (["server.source=existing"], "state.data: an existing server cannot be restored"),
        (["server.source=existing", "state.data=carried"], "state.page_cache: that of an existing server"),
        (["state={data: carried}"], "state.data: each run has fresh data, except on an existing server"),
    ],
)
def test_a_state_that_no_run_would_have_is_refused(overrides: list[str], says: str) -> None:
    with pytest.raises(DocumentError, match=says):
        load(QUICK, overrides, scales=["sequential"])


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["placement.connection=socket", "--host", "server=a", "--host", "load=b"], "does not reach another"),
        (
            ["placement.load_cpus=1-2", "--host", "server=a", "--host", "load=a"],
            "alone on one host; give both, or none",
        ),
    ],
)
def test_a_placement_that_these_hosts_cannot_have_is_refused(words: list[str], says: str) -> None:
    assert says in refused("campaign", QUICK, "--set", *words)


def test_the_canary_is_on_and_exporters_are_off_unless_named() -> None:
    usual, both = load(QUICK), ["node_exporter", "mysqld_exporter"]
    assert (usual.canary, usual.recorder.exporters) == (True, [])
    campaign = load(QUICK, ["canary=false", f"recorder.exporters={both}"], scales=["sequential"])
    assert (campaign.canary, campaign.recorder.exporters) == (False, both)


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("phases.mesure=3s", '^--set phases.mesure: unknown key "mesure" in phases'),
        ("within.x=3", "within is a single value"),
        ("starts", "write it as key.key=value"),
        ("canary=perhaps", "^--set canary: "),
        (
            "server.source=existing",
            "an existing server is not started twice; use -e campaign_scale=sequential",
        ),
        # a tarball and its path
        ("sides.oltp.server.source=tarball", "need each other"),
        ("sides.oltp.server.tarball=/x.tar.gz", "need each other"),
    ],
)
def test_a_wrong_override_is_named(override: str, says: str) -> None:
    with pytest.raises(DocumentError, match=says):
        load(QUICK, [override])


def test_hammerdb_runs_for_whole_minutes() -> None:
    both = QUICK.with_name("hammerdb-vs-sysbench.yml")
    assert load(both, scales=["both"]).phases.measure == 60
    with pytest.raises(DocumentError, match=r"HammerDB \(side hammerdb\) supports whole minutes only"):
        load(both, ["phases.measure=45s"], scales=["both"])


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        *((seconds, *pair) for pair in (("8s", 8), ("2m", 120), ("1.5h", 5400), ("250ms", 0.25), (3, 3))),
        *((size, *pair) for pair in (("256M", 256 << 20), ("4GiB", 4 << 30), ("512", 512), (7, 7))),
    ],
)
def test_durations_and_sizes(read: Callable[[object], float], text: object, value: float) -> None:
    assert read(text) == value


def test_the_command_prints_the_plan_and_exits_2_on_a_mistake(tmp_path: Path) -> None:
    document = json.loads(ask("campaign", QUICK, "--format", "json").out)
    assert len(document["runs"]) == 2 * 9  # half as many again as are estimated to fit into the time
    assert document["directory"] is None
    assert "seed 7" in ask("campaign", QUICK, "--set", "seed=7").out
    assert ask("campaign", changed(tmp_path, "within:", "whithin:")).status == 2


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("workload: arm_insert", "workload: arm_inset", 'unknown workload "arm_inset" in data.insert; did'),
        ("rand-type: uniform", "rand-typ: uniform", "sides.oltp: unknown option `--rand-typ`: did you mean"),
        ("table-size: 100000", "table-size: -1", "data.oltp: --table-size=-1 is not a whole number"),
        ("scenario: ctx5", "scenario: ctx99", "sides.insert: --scenario=ctx99: `ctx99` is not a scenario"),
    ],
)
def test_a_load_that_would_not_begin_is_refused_with_its_line(
    tmp_path: Path, right: str, wrong: str, message: str
) -> None:
    path = changed(tmp_path, right, wrong)
    with pytest.raises(DocumentError) as error:
        load(path, program=LoadProgram(BUILT))
    assert message in str(error.value)
    assert str(error.value).startswith(f"{path}:{line_of(path, wrong)}: ")


def test_options_of_a_matrix_and_of_the_command_line_are_checked() -> None:
    program, long = LoadProgram(BUILT), "within=1h"
    load(QUICK, [long, "sides.insert.matrix={scenario: [ctx1, ctx10], reconnect: [0, 9]}"], program)
    # a flag is YAML's true or false
    load(QUICK, ["sides.oltp.options.skip-trx=off"], program)
    for value, message in (
        ("matrix={scenario: [ctx1, ctx99]}", "sides.insert: --scenario=ctx99"),
        ("rate=1e10", "sides.insert: --rate=10000000000.0 is not a number"),
    ):
        with pytest.raises(DocumentError) as error:
            load(QUICK, [long, f"sides.insert.{value}"], program)
        assert message in str(error.value)
        assert str(error.value).startswith(f"--set sides.insert.{value.partition('=')[0]}: ")


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


def test_a_scale_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match='no scale "huge"; available: large'):
        load(written(tmp_path, SIZED, "point-text-t1", SCALED), scales=["huge"])


@pytest.mark.parametrize(
    ("old", "new", "at", "says"),
    [
        ('[1, "{{ users }}"]', "[1, many]", "threads:", "sides.point.matrix.threads: "),
        ('[1, "{{ users }}"]', "[]", "threads:", "sides.point.matrix.threads: "),
        ('      threads: [1, "{{ users }}"]\n', "", "point:", 'sides.point: key "threads" is missing'),
        ("options: {tables: 2}", "generator: command", "command", "`command` need each other"),
        ("options: {tables: 2}", "generator: sysbnech", "sysbnech", "generator: Input should be 'native'"),
        ("options: {tables: 2}", "server: {option: {}}", "{option:", '"option" in sides.point.server'),
        (
            "  point:\n",
            '  point:\n    name: "{protocol}"\n',
            "{protocol}",
            'two columns have the name "text"',
        ),
        # although it is not chosen
        ("measure: 1m", "mesure: 1m", "mesure", 'unknown key "mesure" in phases'),
        ("{{ users }}", "{{ user }}", "threads:", "'user' is undefined"),
        ("{{ users }}", "{{ user }}", "threads:", "variables are warehouses, users"),
    ],
)
def test_a_mistake_in_sides_and_scales_is_placed(
    tmp_path: Path, old: str, new: str, at: str, says: str
) -> None:
    assert (SIZED + SCALED).count(old) == 1
    path = written(tmp_path, SIZED.replace(old, new), "point-text-t1", SCALED.replace(old, new))
    with pytest.raises(DocumentError) as error:
        load(path)
    assert says in str(error.value)
    assert str(error.value).startswith(f"{path}:{line_of(path, at)}: ")


EQUAL = "mode: equal-load\nequal_load: {fractions: [0.5, 0.9]}\n"
ONE = MATRIX.replace("      threads: [1, 4]\n", "").replace("data: sbtest", "data: sbtest\n    threads: 4")


def test_a_fraction_that_is_given_twice_is_refused(tmp_path: Path) -> None:
    twice = EQUAL.replace("0.5, 0.9", "0.5, 0.9, 0.5")
    with pytest.raises(DocumentError, match="a fraction is given twice"):
        load(written(tmp_path, ONE, "point-text", twice))


def test_another_program_is_not_taken_for_the_generator() -> None:
    assert "is not loadprint-load" in refused("campaign", QUICK, "--load-program", "/bin/true")


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
    load = known(opened.directory) / run / "load"
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
    campaign = load(path, program=LoadProgram(BUILT))
    assert campaign.name == path.stem
    assert f"campaign={path.stem}" in path.read_text(encoding="utf-8") or path.stem == "quick"
    phases = campaign.phases
    minutes = len(order(campaign, 1)) * (phases.warmup + campaign.seconds + 9) / 60
    # a whole table of cells, three times; windows in which spikes can be found
    limit = {"insert-scaling": 50, "checkpoint-spikes": 30}.get(path.stem, 25)
    assert minutes < limit, "no room is left for preparing the data in half an hour"


def test_sides_whose_programs_are_missing_are_left_out() -> None:
    path = CAMPAIGNS / "lookup-scaling.yml"
    assert json.loads(ask("campaign", path, "--needs").out) == ["loadprint-go-lookup", "sysbench"]
    document = json.loads(ask("campaign", path, "--missing", "sysbench", "--format", "json").out)
    assert {side["of"] for side in document["sides"].values()} == {
        "text",
        "cached",
        "go",
        "go-default",
        "go-gomaxprocs1",
    }
    assert document["notes"] == [
        "side sysbench is left out: the load's host has no sysbench; apt-get install sysbench"
    ]
    needed = refused("campaign", path, "--set", "reference=sysbench-t1", "--missing", "sysbench")
    assert "the reference sysbench-t1 needs it" in needed
    alone = ("--set", "sides.insert.needs={nothing: install it}", "--missing", "nothing")
    assert "has no nothing; install it; one side cannot alternate" in refused("campaign", QUICK, *alone)


def test_a_command_has_no_number_of_events() -> None:
    command = (
        "{workload: command, generator: command, data: insert, threads: 1, events: 5, options: {command: x}}"
    )
    with pytest.raises(DocumentError, match="--events: a command ends by itself, or after --time"):
        load(QUICK, [f"sides.insert={command}"], LoadProgram(BUILT), scales=["sequential"])
