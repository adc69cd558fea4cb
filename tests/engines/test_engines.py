"""A fleet of 10,000 runs: DuckDB, ClickHouse's engine and Spark give equal answers.

Spark runs in local-cluster mode: a master and two workers, processes of their own on loopback.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import chdb
import clickhouse_connect
import ibis
import ibis.expr.types as ir
import pytest
from fleets import make_fleet
from loadprint.commands.fleet import dataset
from loadprint.commands.fleet.fleet_table import Fleet, Query, fleet
from loadprint.tables.run_metrics import metrics
from pyspark.sql import SparkSession

RUNS = 10_000
KEPT = Path(__file__).parents[1] / "recordings" / "v1" / "oltp"
EVERYTHING = Query(metrics=tuple(metrics()), everything=True)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fleet") / "fleet"
    make_fleet(path, KEPT, RUNS)
    return path


@pytest.fixture(scope="module")
def here(place: Path) -> Fleet:
    answer = fleet(dataset.on_duckdb(dataset.open_dataset(str(place))), EVERYTHING)
    assert sum(group.runs for group in answer.groups) == RUNS
    assert [len(group.levels) for group in answer.groups] == [len(answer.metrics)] * 2
    assert len(answer.metrics) > 100
    return answer


@pytest.fixture
def on_clickhouse(place: Path, tmp_path: Path) -> Iterator[ir.Table]:
    """ClickHouse inside of this process, as chdb has it."""
    assert chdb.chdb_version
    client = clickhouse_connect.get_client(interface="chdb", path=str(tmp_path / "clickhouse"))
    backend = ibis.clickhouse.from_connection(client)
    source = dataset.open_dataset(str(place)).glob()
    backend.raw_sql(f"CREATE VIEW lines AS SELECT * FROM file('{source}', Parquet)")
    yield backend.table("lines")
    client.close()


@pytest.fixture
def on_spark(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ir.Table]:
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    monkeypatch.setenv("SPARK_LOCAL_HOSTNAME", "localhost")
    builder: Any = SparkSession.builder
    session = (
        builder.master("local-cluster[2,1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    session.read.parquet(str(place)).createOrReplaceTempView("lines")
    yield ibis.pyspark.connect(session).table("lines")
    session.stop()


@pytest.mark.parametrize("engine", ["on_clickhouse", "on_spark"])
def test_engines_give_equal_answers(here: Fleet, engine: str, request: pytest.FixtureRequest) -> None:
    there = fleet(request.getfixturevalue(engine), EVERYTHING)
    assert [group.name for group in there.groups] == [group.name for group in here.groups]
    assert [metric.key for metric in there.metrics] == [metric.key for metric in here.metrics]
    assert len(there.outliers) == len(here.outliers)
    for one, other in zip(here.groups, there.groups, strict=True):
        assert (one.instances, one.runs) == (other.instances, other.runs)
        for metric, mine, theirs in zip(here.metrics, one.levels, other.levels, strict=True):
            for own, same in ((mine.mean, theirs.mean), (mine.cv, theirs.cv), (mine.runs_cv, theirs.runs_cv)):
                # sums are taken in another order there
                near = None if own is None else pytest.approx(own, rel=1e-9, abs=1e-10)
                assert same == near, metric.key
