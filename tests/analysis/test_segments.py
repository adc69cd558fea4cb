"""Recordings that are cut into segments: slices of sides that take turns, windows of an experiment.

Counters rise by other amounts in every interval, so that an interval that is counted twice or not at all
shows.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from damage import ask
from declarations import Declared, declared
from loadprint.catalogue.files import catalogue
from loadprint.metrics.gather import gather
from loadprint.metrics.load import FROZEN, NO_INTERVALS
from loadprint.metrics.quantities import Quantities
from loadprint.metrics.turns import LEFT_BEHIND, SPANS
from loadprint.reading.queries import Store
from loadprint.reading.recording import open_run
from loadprint.reading.segments import sides_in
from loadprint.reading.sides import single
from loadprint.reading.time_series import end_to_end
from reads import known, report_of, table_of
from recordings import (
    SECOND,
    Host,
    agreed,
    change_column,
    change_json,
    make_run,
    read_at,
    write_latencies,
    write_lines,
    write_manifest,
)

# ticks at both ends of each segment, of one length
SEGMENTS = ((3, 9), (12, 18), (25, 31))
MS = 1_000_000
EXPERIMENT = Path(__file__).parents[1] / "recordings" / "v1" / "hidden-index"
# what is no mean over time: quotients of counters, quantiles, shares of samples
NOT_LINEAR = (
    *("perf.", "cgroup.", "p50(", "p90(", "p99(", "p999(", "profile", "ledger.", "programs.", "mysql.miss"),
    *(
        "server.",
        "load.seconds",
        "load.cv",
        "load.worst_second",
        "threads.server.busiest",
        "threads.load.busiest",
    ),
)
LARGEST = (
    *("max(", "mysql.checkpoint_age_max", "frequency.server.most_khz"),
    *("sockets.server.time_wait", "sockets.load.time_wait"),
)
SMALLEST = ("min(", "frequency.server.least_khz")


def span(first: int, last: int) -> tuple[int, int]:
    return read_at(first) - SECOND // 4, read_at(last) + SECOND // 4


def shaken(run: Path, fall: Callable[[int, int], int]) -> Path:
    """Counters with another amount in each interval; `fall` changes the values of those that exist at first.

    Those of an entity that appears later start at zero.
    """
    for probe in declared():
        path = run / "server" / f"{probe.name}.parquet"
        counters = [name for name, kind in probe.columns.items() if kind == "counter" and name != "starttime"]
        counters += ["value"] if probe.shape == "metrics" else []
        if path.is_file() and counters:
            table = pq.read_table(path)
            rows = table.to_pylist()
            first = [_entity(probe, row) for row in rows if row["tick"] == rows[0]["tick"]]
            for row in rows:
                if not (probe.shape == "metrics" and f"{probe.name}.{row['metric']}" in catalogue().read):
                    entity = _entity(probe, row)
                    row.update(_shaken(row, entity, counters, fall if entity in first else None))
            pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path)
            agreed(path)
    return run


def _entity(probe: Declared, row: dict[str, Any]) -> list[Any]:
    return [row[name] for name in probe.entities]


def _shaken(
    row: dict[str, Any], entity: list[Any], counters: list[str], fall: Callable[[int, int], int] | None
) -> dict[str, Any]:
    tick = int(row["tick"])

    def value(name: str, of: Any) -> Any:
        if isinstance(of, list):
            return [value(f"{name}{place}", 0) for place in range(len(of))]
        total = sum(crc32(f"{entity} {name} {at}".encode()) % 1000 for at in range(tick))
        return fall(10_000_000 + total, tick) if fall else total

    return {name: value(name, row[name]) for name in counters if row[name] is not None}


def cut(run: Path, *spans: tuple[int, int]) -> Quantities:
    store = Store()
    return gather(replace(open_run(run), segments=spans), store).quantities


@pytest.fixture(scope="module")
def plain(complete: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("segments") / "run"
    shutil.copytree(complete, run)
    return shaken(run, lambda value, _: value)


@pytest.mark.parametrize(
    "fall",
    [
        pytest.param(
            lambda value, tick: value - 10_000_000 * (tick >= 20) - 5 * (tick == 18),
            id="step back, restart between",
        ),
        pytest.param(lambda value, tick: value - 10_002_000 * (tick > 12), id="restart in"),
        pytest.param(lambda value, tick: (value + 2**32 - 10_008_000) % 2**32, id="wraps"),
    ],
)
def test_the_whole_is_the_sum_of_its_parts(
    plain: Path, tmp_path: Path, fall: Callable[[int, int], int], request: pytest.FixtureRequest
) -> None:
    restarts = "restart in" in request.node.name
    run = shaken(Path(shutil.copytree(plain, tmp_path / "run")), fall)
    whole, parts = (
        cut(run, *map(span, *zip(*SEGMENTS, strict=True))),
        [cut(run, span(*segment)) for segment in SEGMENTS],
    )
    assert len(whole.values) > 450
    wrong = {}
    for name, value in whole.values.items():
        rates = np.array([part.values[name].rate for part in parts if name in part.values])
        if not name.startswith(NOT_LINEAR):
            which = np.max if name.startswith(LARGEST) else np.min if name.startswith(SMALLEST) else np.mean
            by_segment = whole.by_segment.get(name, rates)
            is_known = ~np.isnan(by_segment)  # not of a segment in which the counter restarted
            if value.rate != pytest.approx(which(rates)) or by_segment[is_known] != pytest.approx(
                rates[is_known]
            ):
                wrong[name] = (value.rate, by_segment, rates)
    assert wrong == {}
    assert {bool(np.isnan(of_name).any()) for of_name in whole.by_segment.values()} <= {False, restarts}
    for key, histogram in whole.histograms.items():
        assert (histogram.counts == sum(part.histograms[key].counts for part in parts)).all(), key


def test_what_is_counted_between_segments_changes_no_figure(plain: Path, tmp_path: Path) -> None:
    run = shaken(
        Path(shutil.copytree(plain, tmp_path / "run")), lambda value, tick: value + 10**9 * (tick > 10)
    )
    spans = [span(*segment) for segment in SEGMENTS]
    before, after = cut(plain, *spans), cut(run, *spans)
    changed = {name for name, value in before.values.items() if after.values.get(name) != value}
    # the time of a call of a program is of the first seconds of a recording
    assert {name for name in changed if not name.startswith("programs.")} == set()
    assert (before.warnings, before.notes, before.falls) == (after.warnings, after.notes, after.falls)


def slices(*, seconds: int = 6, rounds: int = 4, guard: float = 0.5) -> list[dict[str, Any]]:
    """Two sides in turn from tick 2 on; b is first in every second round."""
    lines, at = [], 2.0
    for number in range(rounds):
        for position, side in enumerate("ba" if number % 2 else "ab"):
            begin, end = read_at(0) + int(at * SECOND), read_at(0) + int((at + seconds) * SECOND)
            times = {"begin_ns": begin, "measured_from_ns": begin + int(guard * SECOND), "end_ns": end}
            lines.append({"round": number, "position": position, "side": side, **times})
            at += seconds
    return lines


def seconds_of_b() -> set[int]:
    """The seconds of the recording in which side b has its turns."""
    turns = (turn for turn in slices() if turn["side"] == "b")
    ends = (((turn[name] - read_at(0)) // SECOND for name in ("begin_ns", "end_ns")) for turn in turns)
    return {second for begin, end in ends for second in range(begin, end)}


@pytest.fixture
def start(tmp_path: Path) -> Path:
    """Sides a and b take turns on one host; while b runs, operations and switches are three times as many."""
    run = make_run(tmp_path / "start", Host(seconds=60))
    of_b = seconds_of_b()
    switches = np.cumsum([1000 * (3 if second in of_b else 1) for second in range(-1, 63)]).tolist()
    change_column(
        run / "server/cpu.parquet", "ctxt", lambda row: switches[row["tick"]] if row["cpu"] == "all" else None
    )
    # an interval ends at each half second
    change_column(
        run / "load/throughput.parquet", "events", lambda row: 300 if row["second"] in of_b else 100
    )
    write_lines(run / "slices.jsonl", slices())
    return write_latencies(run, "event", [[MS * (20 if second in of_b else 5)] * 10 for second in range(61)])


def test_sides_that_take_turns_have_the_figures_of_their_slices(start: Path) -> None:
    table = table_of(start)
    assert [side.name for side in table.sides] == ["a", "b"]
    switches, operations = (known(table.row(key)) for key in ("switches_host", "operations"))
    assert [cell.value for cell in switches.cells] == pytest.approx([1000, 3000])
    assert [cell.value for cell in operations.cells] == pytest.approx([100, 300])
    latency = known(table.row("latency_p95"))
    assert [cell.value for cell in latency.cells] == pytest.approx([0.005, 0.02], rel=1e-3)
    change_json(start / "load/result.json", others=6000)
    of_slices = next(iter(sides_in(open_run(start)).values()))[0]
    found = gather(of_slices, Store()).quantities
    assert found.why("load.others") == NO_INTERVALS
    assert found.why("load.rows") == "the load generator does not count rows"
    assert found.why("latency.p999").startswith("the run has fewer than 10,000 transactions")
    assert [side.name for side in table_of(f"{start}:b", f"{start}:a").sides] == ["b", "a"]


def test_a_generator_that_is_frozen_as_it_is_has_no_figures_of_its_turns(start: Path) -> None:
    change_json(start / "load/result.json", generator="sysbench", events=None, queries=None, latency_ms={})
    for series in ("throughput", "latency"):
        (start / f"load/{series}.parquet").unlink()
    write_manifest(start)
    found = gather(next(iter(sides_in(open_run(start)).values()))[0], Store()).quantities
    assert found.why("load.events") == found.why("latency.p95") == FROZEN.format("sysbench")


def test_a_run_of_a_start_is_read_in_the_slices_of_its_own_side(start: Path) -> None:
    change_json(start / "run.json", side="b")
    (run,) = single(start).runs
    assert run.segments == tuple(
        (turn["measured_from_ns"], turn["end_ns"]) for turn in slices() if turn["side"] == "b"
    )
    assert "no side `a`; its sides are b" in ask("compare", f"{start}:a", f"{start}:b").line


def test_operations_are_those_that_a_side_worked_on_in_its_turns(start: Path) -> None:
    """Of a hundred a second, ten end after two turns of b, as those of a long operation do."""
    seconds = seconds_of_b()
    late = {second + 1 for second in seconds} - seconds
    path = start / "load/throughput.parquet"
    change_column(path, "queries", lambda row: 1000 * (row["second"] in seconds))
    change_column(path, "events", lambda row: 90 * (row["second"] in seconds) + 120 * (row["second"] in late))
    change_json(start / "run.json", side="b")
    found = gather(single(start).runs[0], Store()).quantities.values
    assert found["load.queries"].rate == pytest.approx(1000)
    assert found["load.events"].rate == pytest.approx(100)
    # ten latencies of 20 ms a second ended inside
    assert found["connections.in.event.share"].rate == pytest.approx(10 / 0.9 * 0.02 / 4, rel=1e-3)


def test_what_a_side_leaves_to_the_time_of_others_is_a_warning(plain: Path, tmp_path: Path) -> None:
    run = change_json(Path(shutil.copytree(plain, tmp_path / "run")) / "run.json", side="a")
    memory, usual = (
        run / "server/memory.parquet",
        cut(plain, *(span(*segment) for segment in SEGMENTS)).warnings,
    )

    def warned(dirty_kib: int, others_kib: int = 0, **changes: Any) -> list[str]:
        times = (
            {"begin_ns": begin, "measured_from_ns": begin, "end_ns": end}
            for begin, end in (span(*segment) for segment in SEGMENTS)
        )
        lines = [{"round": 1, "position": 1, "side": "a", **time, **changes} for time in times]
        write_lines(run / "slices.jsonl", lines)

        def value(row: dict[str, Any]) -> int:
            tick = int(row["tick"])
            pages = {"Dirty": tick * dirty_kib + tick % 4 * others_kib, "Writeback": 0}
            return pages.get(row["metric"], tick)

        change_column(memory, "value", value)
        found = gather(single(run).runs[0], Store()).quantities.warnings
        return [text for text in found if text not in usual]

    assert warned(0) == []
    assert warned(0, in_event=2) == [f"6 {SPANS}"]
    (left,) = warned(1000)
    assert left.endswith(LEFT_BEHIND), left
    # what other programs write comes and goes
    assert warned(0, others_kib=1000) == []


def test_segments_are_end_to_end_whatever_was_read_in_them() -> None:
    times, segment = np.array([1.5, 3.0, 6.0, 6.5]), np.array([0, -1, 1, 1])
    assert end_to_end(times, segment, [(1.0, 2.0), (6.0, 8.0)]) == pytest.approx(
        [0.5, np.nan, 1, 1.5], nan_ok=True
    )


def test_courses_are_of_the_slices_of_the_own_side(start: Path) -> None:
    report = report_of(start)
    charts = {course.key: course.lines for course in report.courses}
    for place, (side, rate) in enumerate((("a", 1000), ("b", 3000))):
        line = next(line for line in charts["switches_host"] if line.run == place)
        assert np.allclose(line.values, rate)
        assert line.seconds[0] >= 0
        assert line.seconds[-1] <= known(report.runs[place].window).end_s == 4 * 5.5
        change_json(start / "run.json", side=side)
        for words in ((), ("--from", 10, "--to", 40)):
            (shown,) = (
                figures
                for pivot in ask("show", start, "--all", "--format", "json", *words).document["pivots"]
                for name, figures in zip(pivot["rows"], pivot["cells"], strict=True)
                if name.startswith("context switches, whole host")
            )
            assert shown[:3] == pytest.approx([rate] * 3)


def test_a_load_on_another_host_has_the_slices_of_that_host(start: Path) -> None:
    """Its slices end two seconds sooner here, and one of its operations had not ended at each of them."""

    def found() -> Quantities:
        return gather(single(change_json(start / "run.json", side="b")).runs[0], Store()).quantities

    both = found()
    sooner = [turn | {"end_ns": turn["end_ns"] - 2 * SECOND, "in_event": 1} for turn in slices()]
    write_lines(start / "load/slices.jsonl", sooner)
    apart = found()
    for key in ("host.ctxt", "load.events"):
        assert apart.values[key].rate == pytest.approx(both.values[key].rate)
    seconds = [run.values["load.seconds"].rate for run in (both, apart)]
    assert seconds[0] - seconds[1] == pytest.approx(4 * 2)
    assert f"4 {SPANS}" in apart.warnings


def test_a_short_interval_after_a_slice_leaves_the_slice_whole(start: Path) -> None:
    """The generator ends one at the edge of a slice, and another when its events have ended."""

    def lasted() -> list[float]:
        runs = [run for sides in sides_in(open_run(start)).values() for run in sides]
        return [gather(run, Store()).quantities.values["load.seconds"].rate for run in runs]

    path, before = start / "load/throughput.parquet", lasted()
    table = pq.read_table(path)
    first = next(phase for phase in open_run(start).phases if phase.name == "measure").begin_ns
    ends = {first + (second + 1) * SECOND for second in table.column("second").to_numpy().tolist()}
    edges = [max(end for end in ends if end <= turn["end_ns"]) for turn in slices()]
    write_lines(
        start / "slices.jsonl",
        [turn | {"end_ns": edge} for turn, edge in zip(slices(), edges, strict=True)],
    )
    stamps = sorted(ends.union(edge + 100 * MS for edge in edges))
    rows = table.take([0] * len(stamps)).append_column("monotonic_ns", pa.array(stamps, pa.int64()))
    field = table.schema.field("second")
    numbers = pa.array(range(len(stamps)), field.type)
    rows = rows.set_column(table.column_names.index("second"), field, numbers)
    pq.write_table(rows.replace_schema_metadata(table.schema.metadata), path)
    write_manifest(start)
    assert lasted() == pytest.approx(before)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda lines: lines[6].update(end_ns=lines[6]["begin_ns"] - 1), "line 7: ends before it begins"),
        (lambda lines: lines[6].update(begin_ns=lines[5]["end_ns"] - 1), "line 7: overlaps line 6"),
        (lambda lines: lines[6].update(measured_from_ns=1), "line 7: is measured from outside of it"),
        (lambda lines: lines[2].update(side=7), "line 3: is not a slice"),
        (
            lambda lines: lines.__setitem__(slice(None), slices(seconds=2, guard=1.5)),
            "fewer than two ticks are inside every slice; record longer slices, or at a shorter interval",
        ),
    ],
)
def test_slices_that_cannot_be_used_are_one_line(
    start: Path, change: Callable[[list[dict[str, Any]]], object], says: str
) -> None:
    lines = slices()
    change(lines)
    write_lines(start / "slices.jsonl", lines)
    agreed(start / "slices.jsonl")
    answer = ask("compare", start)
    assert (answer.status, says in answer.line) == (2, True), answer.line


def test_a_last_slice_that_is_cut_off_is_dropped_and_reported(start: Path) -> None:
    path = start / "slices.jsonl"
    path.write_text(path.read_text(encoding="utf-8")[:-20], encoding="utf-8")
    agreed(path)
    assert ("slices.jsonl: last line 8 is cut off") in ask("compare", start, "--verbose").out
    assert ask("compare", start, f"{start}:c").line.endswith(":c: no side `c`; its sides are a, b\n")


def test_an_experiment_is_compared_block_by_block(tmp_path: Path) -> None:
    sides = [f"{EXPERIMENT}:{name}" for name in ("baseline", "treatment")]
    table = table_of(*sides)
    assert [len(side.repeats) for side in table.sides] == [4, 4]
    cpu = known(table.row("process_server_cpu"))
    verdict = json.loads(ask("ab", "show", EXPERIMENT, "--format", "json").out)
    effect = next(effect for effect in verdict["effects"] if effect["key"] == "cpu")
    # of two windows per block the sums of times, and not the mean of logs
    assert known(cpu.versus[1]).centre == pytest.approx(effect["ratio"], rel=0.02)
    page = tmp_path / "page.html"
    assert ask("report", *sides, "-o", page).status == 0
    assert "treatment" in page.read_text(encoding="utf-8")
