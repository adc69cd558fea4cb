"""An increase is divided by its own seconds: what was not read of a counter changes no rate."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from damage import ask
from reads import quantities, unchanged
from recordings import agreed

# of the ticks 2 to 41 of the window
UNREAD: dict[str, Callable[[int], bool]] = {
    "at its begin": lambda tick: tick < 5,
    "at its end": lambda tick: tick > 37,
    "inside": lambda tick: tick in {5, 6, 20, 30, 31, 32},
    "at most ticks": lambda tick: tick % 7 != 3,
}
KEPT = {"tick", "pid", "tid", "starttime", "stack", "samples", "cycles"}
# of readings, not of increases
FIGURES = (
    *("mean(", "max(", "min(", "frequency."),
    *("mysql.miss_ratio", "mysql.threads_connected", "mysql.redo_capacity", "mysql.checkpoint_"),
    *("mysql.flush_burst", "sockets.load.time_wait", "sockets.server.time_wait", "programs."),
)
# tables of which an entity without a row counted nothing yet, or is not there
BORN = ("ebpf_", "threads", "process", "profile", "mysql_")


def unread(run: Path, at: Callable[[int], bool], step: int) -> Path:
    """Null the numbers of every table at some ticks, of every column or of each second; 0: drop the rows."""
    for path in sorted((run / "server").glob("*.parquet")):
        table = pq.read_table(path)
        ticks: list[int] = table["tick"].to_numpy().tolist()
        for place, column in enumerate(table.schema if step and path.stem != "ticks" else ()):
            if place % step == 0 and pa.types.is_integer(column.type) and column.name not in KEPT:
                cells = zip(table[column.name].to_pylist(), ticks, strict=True)
                values = pa.array([None if at(tick) else value for value, tick in cells], column.type)
                table = table.set_column(place, column, values)
        if not step and path.stem != "ticks" and not path.stem.startswith(BORN):
            table = table.filter(pa.array([not at(tick) for tick in ticks]))
        pq.write_table(table, path)
    return agreed(run / "run.json")


@pytest.mark.parametrize("step", [0, 1, 2])
@pytest.mark.parametrize("at", UNREAD.values(), ids=UNREAD)
def test_what_was_not_read_of_a_counter_changes_no_rate(
    complete: Path, tmp_path: Path, at: Callable[[int], bool], step: int
) -> None:
    whole = unchanged(complete)
    found = quantities(unread(Path(shutil.copytree(complete, tmp_path / "run")), at, step))
    rates, others = ({name: one.rate for name, one in of.values.items()} for of in (whole, found))
    for name in rates:
        if not name.startswith(FIGURES):
            assert others.get(name) == pytest.approx(rates[name], rel=1e-6), name
    for name, course in whole.series.items():
        # between few readings there are no neighbours
        if not name.startswith(FIGURES) and (name in found.series or at is not UNREAD["at most ticks"]):
            seen = ~np.isnan(found.series[name].values)
            assert found.series[name].values[seen] == pytest.approx(course.values[seen], rel=1e-6), name


@pytest.mark.parametrize("added_at", [10, 150, 290])
def test_a_host_that_gets_a_cpu_has_the_shares_of_the_time_of_its_cpus(tmp_path: Path, added_at: int) -> None:
    """Of 300 s: 10 % of two CPUs in user mode, then 90 % of three."""

    def series(cpu: int, mode: str) -> dict[str, object]:
        used, points = 0.0, []
        for at in range(0, 301, 10):
            if cpu < 2 or at >= added_at:
                points.append([1_700_000_000 + at, str(round(used, 3))])
            share = 0.1 if at < added_at else 0.9
            used += 10 * (share if mode == "user" else 1 - share)
        labels = {"instance": "db1", "cpu": str(cpu), "mode": mode}
        return {"metric": {"__name__": "node_cpu_seconds_total", **labels}, "values": points}

    saved, out = tmp_path / "saved.json", tmp_path / "run"
    saved.write_text(json.dumps([series(cpu, mode) for cpu in range(3) for mode in ("user", "idle")]))
    assert ask("import", "prometheus", saved, "--out", out).status == 0
    found, after = quantities(out), 300 - added_at
    cpus, used = 2 + after / 300, 2 * 0.1 * added_at + 3 * 0.9 * after
    assert found.values["cpu.host.cores"].rate == pytest.approx(cpus)
    assert found.values["cpu.host.user"].rate == pytest.approx(used / 300)
    assert "a CPU of the host set went online or offline in the window" in found.warnings
    shares = found.series["cpu.host.user"].values / found.series["cpu.host.cores"].values
    assert sorted(set(np.round(shares, 6))) == [0.1, 0.9]
