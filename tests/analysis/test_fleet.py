"""A fleet's data set: what is exported, the same figures as for one run, and the same on two engines."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import chdb
import clickhouse_connect
import fsspec
import ibis
import ibis.expr.types as ir
import pytest
from damage import ask
from loadprint.commands.fleet import dataset, export, fleet_table
from loadprint.commands.fleet.fleet_pivots import report
from loadprint.commands.fleet.fleet_table import DEFAULT_METRICS, Fleet, Query, fleet
from loadprint.errors import InputError
from loadprint.tables.run_metrics import metrics
from reads import known
from recordings import Host, change_column, change_json, make_run

EVERYTHING = Query(metrics=tuple(metrics()), everything=True)


def on(path: Path, instance: str, kind: str, **host: Any) -> Path:
    """Make a run of one machine of a type."""
    make_run(path, Host(host=instance, **host), execution=path.parent.name, campaign="fleet", side="oltp")
    return change_json(path / "server/fingerprint.json", virtualisation={"instance_type": kind})


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two types, three machines each, two runs a machine; the second type does 20 % more."""
    parent = tmp_path_factory.mktemp("fleet")
    result = []
    for kind, base in (("small", 100), ("large", 120)):
        for machine in range(3):
            for repeat in range(2):
                events = base + machine + repeat
                place = parent / f"{kind}{machine}" / f"r{repeat}"
                place.parent.mkdir(exist_ok=True)
                result.append(on(place, f"{kind}{machine}", kind, events=events, commits=events))
    return result


@pytest.fixture(scope="module")
def exported(runs: list[Path], tmp_path_factory: pytest.TempPathFactory) -> str:
    target = str(tmp_path_factory.mktemp("dataset") / "fleet")
    done = export.export(runs, target)
    assert (done.runs, done.left_out) == (12, ())
    return target


def opened(url: str) -> ir.Table:
    return dataset.on_duckdb(dataset.open_dataset(url))


def of_runs(tmp_path: Path, *runs: Path) -> str:
    """A data set of some runs."""
    export.export(runs, str(tmp_path / "fleet"))
    return str(tmp_path / "fleet")


def by_group(result: Fleet, key: str) -> dict[str, fleet_table.FleetLevel]:
    place = [metric.key for metric in result.metrics].index(key)
    return {group.name: group.levels[place] for group in result.groups}


def test_a_fleets_values_are_those_of_compare(runs: list[Path], exported: str) -> None:
    lines = opened(exported).to_pyarrow().to_pylist()
    assert set(DEFAULT_METRICS) <= {line["row"] for line in lines}
    rows = ask("compare", *runs, "--all", "--format", "json").rows
    place = {f"{path.parent.name}+{path.name}/{path.name}": number for number, path in enumerate(runs)}
    for line in lines:
        key = line["row"].replace("disk_data_", "disk_vda_").replace("nic_main_", "nic_veth0_")
        if key.endswith(("_per_statement", "_per_commit")) and key not in rows:
            continue  # of equal operations there are no costs of a statement
        value = rows[key]["cells"][place[line["run"]]]["value"]
        assert (line["value"], line["unit"]) == (value, rows[key]["unit"]), key
    assert len(lines) > 12 * 40


def test_heads_of_a_cost_and_its_rate_differ(exported: str) -> None:
    """Switches of an operation and of a second have one label in their groups; a fleet has no groups."""
    asked = ("switches_host", "switches_per_operation", "operations", "net_tx_per_operation")
    result = fleet(opened(exported), Query(metrics=asked))
    level = next(pivot for pivot in report(result, exported).pivots if pivot.key == "level")
    assert level.columns == (
        "context switches, whole host /s",
        "context switches, server threads per operation",
        "ops/s",
        "sent B/op",
    )


def test_the_instance_is_the_unit(exported: str) -> None:
    result = fleet(opened(exported), Query(reference="small"))
    assert [(group.instances, group.runs) for group in result.groups] == [(3, 6), (3, 6)]
    operations = by_group(result, "operations")
    large = operations["large · oltp_read_write · oltp"]
    versus = known(large.versus)
    assert versus.centre == pytest.approx(1.2, rel=0.01)
    assert known(versus.low) < 1.2 < known(versus.high)
    assert large.mean == pytest.approx((120.5 * 121.5 * 122.5) ** (1 / 3))
    assert operations["small · oltp_read_write · oltp"].versus is None
    assert large.runs_cv == pytest.approx(0.7071 / 121.5, rel=1e-3)


def test_two_engines_give_equal_answers(exported: str, clickhouse: Any) -> None:
    source = f"file('{dataset.open_dataset(exported).glob()}', Parquet)"
    clickhouse.raw_sql(f"CREATE VIEW lines AS SELECT * FROM {source}")
    elsewhere = fleet(clickhouse.table("lines"), EVERYTHING)
    here = fleet(opened(exported), EVERYTHING)
    assert [group.name for group in elsewhere.groups] == [group.name for group in here.groups]
    for one, other in zip(here.groups, elsewhere.groups, strict=True):
        assert (one.instances, one.runs) == (other.instances, other.runs)
        for metric, mine, theirs in zip(here.metrics, one.levels, other.levels, strict=True):
            for own, other_s in ((mine.mean, theirs.mean), (mine.runs_cv, theirs.runs_cv)):
                # sums are taken in another order there
                near = None if own is None else pytest.approx(own, rel=1e-9, abs=1e-10)
                assert other_s == near, metric.key


@pytest.fixture
def clickhouse(tmp_path: Path) -> Iterator[Any]:
    """ClickHouse inside of this process, as chdb has it."""
    assert chdb.chdb_version
    client = clickhouse_connect.get_client(interface="chdb", path=str(tmp_path / "clickhouse"))
    yield ibis.clickhouse.from_connection(client)
    client.close()


def test_exporting_twice_changes_nothing_and_an_object_store_is_as_good(
    runs: list[Path], exported: str
) -> None:
    url = f"memory://{uuid.uuid4().hex}"
    assert export.export(runs[:2], url).runs == 2
    assert export.export(runs[1:4], url).runs == 3
    there, here = (fleet(opened(place), Query(by=("instance",))) for place in (url, exported))
    assert [(group.name, group.runs) for group in there.groups] == [("small0", 2), ("small1", 2)]
    for one, other in zip(there.groups, here.groups[-3:-1], strict=True):
        assert one.name == other.name
        assert [level.mean for level in one.levels] == pytest.approx([level.mean for level in other.levels])
    fsspec.filesystem("memory").rm(url.removeprefix("memory://"), recursive=True)


def test_names_of_parent_directories_are_not_columns(runs: list[Path], tmp_path: Path) -> None:
    plain, partition = tmp_path / "fleet", tmp_path / "campaign=mine" / "user=7" / "side=new" / "fleet"
    lines = []
    for path in (plain, partition):
        export.export(runs[:2], str(path))
        table = opened(str(path)).to_pyarrow()
        lines.append((table.column_names, table.to_pylist()))
    assert lines[0] == lines[1]


def test_a_recording_named_twice_counts_once_and_none_is_written_into(
    runs: list[Path], tmp_path: Path
) -> None:
    latest = tmp_path / "latest"
    latest.symlink_to(runs[0])
    assert export.export([runs[0], latest], str(tmp_path / "fleet")).runs == 1
    before = sorted(runs[0].rglob("*"))
    assert "is a recording" in ask("export", runs[1], "--to", runs[0]).line
    assert sorted(runs[0].rglob("*")) == before


@pytest.mark.parametrize("version", [1, 3])
def test_a_data_set_of_another_format_is_left_as_it_is(
    runs: list[Path], tmp_path: Path, version: int
) -> None:
    marker = tmp_path / "fleet" / "loadprint-fleet-version"
    marker.parent.mkdir()
    marker.write_text(f"{version}\n")
    for words in (["export", runs[0], "--to", tmp_path / "fleet"], ["fleet", tmp_path / "fleet"]):
        assert f"format version {version}, this loadprint reads 2" in ask(*words).line
    assert marker.read_text() == f"{version}\n"


def test_a_data_set_without_a_part_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "loadprint-fleet-version").write_text("2\n")
    assert "cannot be read" in ask("fleet", tmp_path).line


def test_a_run_whose_counters_were_reset_does_not_count(tmp_path: Path) -> None:
    whole = on(tmp_path / "e" / "whole", "m1", "small")
    broken = on(tmp_path / "e" / "broken", "m1", "small")
    change_column(
        broken / "server/disk.parquet", "reads", lambda row: 0 if row["tick"] == 12 else row["reads"]
    )
    result = fleet(opened(of_runs(tmp_path, whole, broken)), Query())
    assert [group.runs for group in result.groups] == [1]
    assert result.left_out == (("a counter was reset or wrapped", 1),)


def test_an_instance_that_stands_out_is_named(tmp_path: Path) -> None:
    made = [
        on(tmp_path / f"e{k}" / "r", f"m{k}", "small", events=100 + k % 4 - 40 * (k == 7)) for k in range(9)
    ]
    output = ask("fleet", of_runs(tmp_path, *made)).out
    assert "m7 is an outlier in small · oltp_read_write · oltp: operations 0.6" in output
    assert "m3 is an outlier" not in output


@pytest.mark.parametrize("instances", ["mm", "mn"])
def test_operations_that_differ_are_not_averaged(tmp_path: Path, instances: str) -> None:
    made = [
        on(tmp_path / name / "r", instance, "small", operation=name)
        for name, instance in zip(("lookup", "new order"), instances, strict=True)
    ]
    url = of_runs(tmp_path, *made)
    with pytest.raises(InputError, match=r"mixes operations \(lookup, new order\)"):
        fleet(opened(url), Query(by=("instance_type",)))
    assert len(fleet(opened(url), Query(by=("instance_type", "operation"))).groups) == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["fleet", "{empty}"], "not a fleet data set"),
        (["fleet", "nonsense://x"], "Protocol not known"),
        (["fleet", "{fleet}", "--by", "colour"], "not a column to group by"),
        (["fleet", "{fleet}", "--metrics", "speed"], "no such row"),
        (["fleet", "{fleet}", "--where", "workload"], "not COLUMN=VALUE"),
        (["fleet", "{fleet}", "--where", "workload=none"], "no run is left"),
        (["fleet", "{fleet}", "--reference", "huge"], "no such instance_type"),
        (["export", "{empty}", "--to", "{empty}/x"], "is empty"),
    ],
)
def test_bad_input_is_one_line(words: list[str], said: str, exported: str, tmp_path: Path) -> None:
    assert said in ask(*(word.format(fleet=exported, empty=tmp_path) for word in words)).line
