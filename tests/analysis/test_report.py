"""The page of a report as text: what is in it, that nothing of a recording can act in it, its packing."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import loadprint.commands.report as package
import numpy as np
import pytest
from conftest import insert, oltp
from damage import ask, refused
from loadprint.commands.ab.analysis import analyse
from loadprint.commands.ab.experiment import Gates
from loadprint.commands.ab.result import Result
from loadprint.commands.report import pack, page_charts, table_section
from loadprint.commands.report.page import page
from loadprint.commands.report.sweep_and_ab import collect_sweep
from loadprint.rendering.report_data import Course, Line, ReportPage
from loadprint.tables import views
from loadprint.tables.table import Table
from profiles import COMMAND, MYSQLD, SEARCH, make_profiled_run
from reads import known, report_of
from recordings import Host, change_json, make_execution, make_matrix, write_manifest
from test_ab_analysis import windows

EVIL = "</script><script>alert('x')</script>\"'><img src=x onerror=alert(1)>"


class Reader(HTMLParser):
    """Collects elements with their attributes, and the text of scripts and style."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.raw: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.elements and self.elements[-1][0] in ("script", "style") and data.strip():
            self.raw.append((self.elements[-1][0], data))

    def ids(self) -> list[str]:
        """All ids, in order."""
        return [own["id"] or "" for _, own in self.elements if "id" in own]


@pytest.fixture(scope="module")
def report(execution: Path) -> ReportPage:
    """The report of three repeats of two workloads."""
    return report_of(execution)


def test_every_section_is_there_and_in_order(report: ReportPage) -> None:
    read = Reader(page(report))
    wanted = ["contents", "table", "sentences", "comparable", "probes", "time", "settings", "made", "absent"]
    assert [name for name in read.ids() if name in wanted] == wanted
    links = [own["href"] for tag, own in read.elements if tag == "a"]
    inside = {f"#{name}" for name in read.ids()}
    assert links
    assert set(links) <= inside, "every link leads to a place on the page"
    headings = [int(tag[1]) for tag, _ in read.elements if re.fullmatch("h[1-6]", tag)]
    assert headings[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(headings))
    scopes = [own.get("scope") for tag, own in read.elements if tag == "th"]
    assert set(scopes) == {"col", "row", "rowgroup"}


def test_the_policy_allows_what_the_page_holds_and_nothing_else(report: ReportPage) -> None:
    text = page(report)
    read = Reader(text)
    policy = next(
        own["content"] or "" for _, own in read.elements if own.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    runnable = [data for kind, data in read.raw if not data.lstrip().startswith('{"times"')]
    hashes = {
        f"'sha256-{base64.b64encode(hashlib.sha256(data.encode()).digest()).decode()}'" for data in runnable
    }
    assert hashes == set(re.findall(r"'sha256-[^']+'", policy))
    for _, own in read.elements:
        assert not {"style", "src", "srcset", "onclick", "onerror", "onload"} & own.keys()
    assert not re.search(r"url\(|@import|https?://(?!github)", "".join(data for _, data in read.raw))


def test_nothing_of_a_recording_can_act_in_the_page(tmp_path: Path) -> None:
    """Labels, hosts, variables, types of transactions and reasons are texts of a user."""

    def hostile(k: int) -> dict[str, Any]:
        return {
            "transactions": {EVIL: {"count": 5, "latency_ms": {"p50": 1.0 + k, "p95": 2.0, "p99": 3.0}}},
            "workload": EVIL,
        }

    hosts = [
        replace(
            oltp(k), host=EVIL, variables={"sql_mode": EVIL, EVIL: "1"}, operation=EVIL, result=hostile(k)
        )
        for k in (0, 1, 2)
    ]
    plans = {"a": {"label": EVIL}, "b": {"label": "b"}}
    execution = make_execution(
        tmp_path / "x", {"a": hosts, "b": [insert(k) for k in (0, 1, 2)]}, "b", plans, {"title": EVIL}
    )
    change_json(execution / "b2-a-r2/run.json", status="failed", reason=EVIL)
    text = page(report_of(execution))
    assert html.escape(EVIL, quote=False).replace("'", "&#39;").replace('"', "&#34;") in text
    assert "<img" not in text
    read = Reader(text)
    assert sum(tag == "script" for tag, _ in read.elements) == 2
    data = json.loads(next(data for kind, data in read.raw if data.lstrip().startswith('{"times"')))
    assert f"percentiles-{EVIL}" in [chart["key"] for chart in data["charts"]]


def test_one_run_alone_has_values_and_nothing_that_takes_two(
    execution: Path, whole_table: Table, tmp_path: Path
) -> None:
    run = execution / "b1-oltp-r1"
    assert ask("report", run, "-o", tmp_path / "run.html").status == 0
    text = (tmp_path / "run.html").read_text()
    read = Reader(text)
    assert {"table", "comparable", "time", "settings", "made", "row-operations"} <= set(read.ids())
    assert "<h1>oltp: b1-oltp-r1</h1>" in text.replace("oltp_read_write", "oltp")
    assert "Comparability" not in text
    assert "the reference" not in text

    report = report_of(run)
    table = known(report.table)
    assert [verdict.key for verdict in table.verdicts] == ["client-bound", "pinned", "overhead", "disturbed"]
    assert {"Throughput over threads", "A/B blocks"}.isdisjoint(dict(report.absent))
    operations = known(table.row("operations"))
    both = known(whole_table.row("operations"))
    assert operations.cells[0].repeats[0] == both.cells[0].repeats[0]
    assert table_section.tabled(table)["compared"] == []
    assert [run.id for run in report.runs] == ["b1-oltp-r1"]


def test_one_side_of_an_execution_has_all_its_repeats(execution: Path) -> None:
    report = report_of(f"{execution}:oltp")
    assert [side.name for side in report.sides] == ["oltp"]
    assert len(report.runs_of(0)) == 3
    assert all(versus is None for row in known(report.table).rows for versus in row.versus)
    assert "facts differ." not in page(report)


def test_the_page_opens_with_the_rows_of_the_first_screen(report: ReportPage) -> None:
    table = known(report.table)
    tabled = table_section.tabled(table)
    rows = [row for group in tabled["groups"] for row in group["rows"]]
    opened = [row["anchor"] for row in rows if row["kind"] == "first"]
    assert opened == [table_section.anchor(row.key) for row in views.first(table).rows]
    assert len(opened) == tabled["counts"][0]
    kinds = [(row["label"], row["kind"]) for row in rows]
    assert ("NOPM", "further") in kinds
    assert ("client statements", "first") in kinds


def test_charts_and_table_count_in_the_same_units(report: ReportPage) -> None:
    row = known(known(report.table).row("disk_vda_write_kb"))
    course = next(course for course in report.courses if course.title == "Written")
    assert (course.shown, course.factor) == (row.shown, row.factor)
    assert {course.shown for course in report.courses}.isdisjoint({"MB", "MB/s", "GB"})
    assert page(report).count("kB is 1,024 B") == 1


def test_a_stack_is_the_mean_of_a_sides_repeats(execution: Path) -> None:
    report = report_of(f"{execution}:oltp")
    first, second, third = range(3)
    lines = [
        Line(run, np.arange(3.0), np.array(values), part)
        for run, part, values in (
            (first, "user", [1.0, 2.0, 3.0]),
            (second, "user", [3.0, 4.0, np.nan]),
            (third, "user", [2.0, 3.0, 4.0]),
            (first, "system", [0.5, 0.5, 0.5]),
        )
    ]
    course = Course("cpu", "cpu", "CPU", "cores", 1.0, tuple(lines), ("user", "system"))
    grid = pack.grid_of([course])
    ((_, _, charts),) = page_charts.over_time(replace(report, courses=(course,)), grid)
    (chart,) = charts
    assert chart["title"] == "CPU: oltp, mean of 3 repeats"
    user, system = (np.frombuffer(base64.b64decode(one["y"]), "<f4")[:3] for one in chart["data"]["series"])
    assert user == pytest.approx([2, 3, 3.5])
    assert system == pytest.approx([0.5, 0.5, 0.5])


def test_a_chart_tells_of_its_window_what_was_counted_wholly_inside(report: ReportPage) -> None:
    values, inside = np.array([9_000.0, 2.0, 4.0, 0.0]), np.array([False, True, True, False])
    counted = Course("k", "s", "t", "/s", 1.0, (Line(0, np.arange(4.0), values, "", inside),))
    assert page_charts.of_course(counted, report) == [(0, "3 (2 – 4)")]
    line = next(course for course in report.courses if course.title == "Written").lines[0]
    window, half = known(report.runs[0].window), np.median(np.diff(line.seconds)) / 2
    begins, ends = line.seconds - half + 0.05, line.seconds + half - 0.05
    assert np.array_equal(line.inside, (begins >= window.begin_s) & (ends <= known(window.end_s)))
    assert 0 < np.sum(line.inside) < len(line.seconds)


def test_missing_repeats_and_probes_are_said(own_execution: Path) -> None:
    change_json(own_execution / "b2-oltp-r2/run.json", status="failed", reason="the server died: signal 9")
    report = report_of(own_execution)
    assert ("energy", "unavailable: no powercap here") in report.probes
    assert len(report.runs_of(0)) == 2
    assert "failed: the server died: signal 9" in page(report)


def test_a_section_without_data_is_listed_with_its_reason(report: ReportPage) -> None:
    assert {"Latency", "Histograms by eBPF", "A/B blocks"} <= dict(report.absent).keys()
    text = page(report)
    assert 'id="ebpf"' not in text
    assert "no eBPF probe was recorded" in text


def test_sentences_link_to_their_rows(report: ReportPage) -> None:
    table = known(report.table)
    said = table_section.findings(table)
    assert said
    anchors = {row["anchor"] for group in table_section.tabled(table)["groups"] for row in group["rows"]}
    for sentence in said:
        assert sentence["cites"]
        assert {anchor for anchor, _ in sentence["cites"]} <= anchors
        assert "[" not in sentence["text"]


def test_bars_show_ratios_on_one_axis(report: ReportPage) -> None:
    table = known(report.table)
    written = table_section.tabled(table)
    rows = {row["anchor"]: row for group in written["groups"] for row in group["rows"]}
    bar = rows["row-statements"]["versus"][0]["bar"]
    versus = next(one for one in known(table.row("statements")).versus if one)
    assert bar["centre"] == pytest.approx(
        50 * np.log(known(versus.centre)) / np.log(written["scale"]), abs=0.01
    )
    assert bar["low"] <= bar["centre"] <= bar["high"]


def test_encoded_values_come_back() -> None:
    values = [1.5, np.nan, 1e9]
    assert np.frombuffer(base64.b64decode(pack.encoded(values)), "<f4") == pytest.approx(values, nan_ok=True)


def test_a_short_last_interval_leaves_no_hole_in_any_line() -> None:
    whole = np.arange(0.5, 20.0, dtype=np.float64)
    cut = np.array([*whole, 20.08], dtype=np.float64)
    ticks = np.arange(-7.63, 21.0, dtype=np.float64)
    lines = tuple(Line(0, seconds, np.ones(len(seconds))) for seconds in (whole, cut, ticks, 2 * ticks))
    course = Course("k", "s", "t", "/s", 1.0, lines)
    grid = known(pack.grid_of([course]))
    assert grid.step == 1.0
    for line in lines[:3]:
        cells = np.flatnonzero(np.isfinite(pack.placed(line, grid)))
        assert (np.diff(cells) == 1).all()
    cells = np.flatnonzero(np.isfinite(pack.placed(lines[3], grid)))
    assert (np.diff(cells) == 2).all()


def test_spikes_and_holes_survive_thinning() -> None:
    values = np.full(20_000, 100.0)
    values[7_777], values[13_001] = 900.0, 3.0
    values[15_000:16_000] = np.nan
    lines = (Line(0, np.arange(20_000.0), values),)
    grid = known(pack.grid_of([Course("k", "s", "t", "/s", 1.0, lines)]))
    assert grid.keep > 1
    assert len(grid.times) <= pack.MOST
    (got,) = pack.thinned(np.stack([pack.placed(line, grid) for line in lines]), grid)
    assert got.shape == grid.times.shape
    assert np.nanmax(got) == 900
    assert grid.times[np.nanargmax(got)] == pytest.approx(7_777, abs=grid.keep)
    assert np.nanmin(got) == 3
    inside = (grid.times > 15_000 + 2 * grid.keep) & (grid.times < 16_000 - 2 * grid.keep)
    assert np.isnan(got[inside]).all()


def test_a_thinned_stack_keeps_its_parts_together() -> None:
    seconds = np.arange(10_000.0)
    user, system = np.full(10_000, 0.5), np.full(10_000, 0.1)
    user[5_000], system[5_000] = 0.1, 0.85
    lines = (Line(0, seconds, user, "user"), Line(0, seconds, system, "system"))
    grid = known(pack.grid_of([Course("k", "cpu", "t", "cores", 1.0, lines, ("user", "system"))]))
    one, other = pack.thinned(np.stack([pack.placed(line, grid) for line in lines]), grid)
    place = int(np.nanargmax(other))
    assert one[place] + other[place] == pytest.approx(0.95)


def test_the_vendored_files_are_those_of_the_readme() -> None:
    folder = Path(package.__file__).parent / "vendor"
    listed = dict(re.findall(r"\| `([^`]+)` \| `([0-9a-f]{64})` \|", (folder / "README.md").read_text()))
    assert listed == {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in listed}
    assert listed.keys() == {path.name for path in folder.iterdir()} - {
        *("README.md", "LICENSE-uPlot", "LICENSE-d3", "LICENSE-d3-flame-graph")
    }
    assert (folder / "LICENSE-uPlot").read_text().startswith("The MIT License")


def test_the_command_writes_a_page_and_says_where(execution: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    assert str(out) in ask("report", execution, "-o", out).line
    assert out.read_text().startswith("<!doctype html>")
    refused("report", execution, "-o", tmp_path / "no" / "such.html")
    assert ask("compare", execution, "--format", "html", "-o", out).status == 0
    assert "Not in this report" not in out.read_text()


def test_a_broken_table_of_latencies_is_one_clear_line(own_execution: Path, tmp_path: Path) -> None:
    run = own_execution / "b1-oltp-r1"
    (run / "load" / "latency.parquet").write_text("PAR1")
    write_manifest(run)
    assert "latency.parquet: cannot be read" in refused("report", own_execution, "-o", tmp_path / "x.html")


def matrix(tmp_path: Path) -> Path:
    """Two scenarios at 1, 2, 4 and 8 threads, a repeat each."""
    reached = ((1, 100), (2, 180), (4, 300), (8, 380))
    rates = {(of, threads): [n * rate] for of, n in (("text", 1), ("ps", 2)) for threads, rate in reached}
    return make_matrix(tmp_path / "matrix", rates, "protocol", "test", of="points")


def test_an_execution_with_a_matrix_is_told_by_pivots_and_fits(tmp_path: Path) -> None:
    execution, out = matrix(tmp_path), tmp_path / "sweep.html"
    assert ask("report", execution, "-o", out).status == 0
    report = collect_sweep(execution)
    text, prepared = report.scaled
    assert (text.title, prepared.title) == ("text", "ps")
    assert text.n.tolist() == [1, 2, 4, 8]
    assert prepared.x[3] == pytest.approx(760, rel=0.01)
    assert text.curves[0].chief
    assert "Throughput over threads" not in dict(report.absent)
    read = Reader(out.read_text())
    assert {"table", "scaling", "settings"} <= set(read.ids())
    assert known(report.pivots).pivots[0].title in out.read_text()


def test_an_experiment_is_told_by_its_sentence_and_its_windows(report: ReportPage) -> None:
    *whole, last = windows([0.5, 1.0, 1.01, 0.51, 0.5], "TBBT")
    given = [*whole, replace(last, queries=None)]
    actual = analyse(given, Gates(), Result("try", "an <experiment>", "ABBA"))
    series = page_charts.windows(actual)["data"]["series"]
    assert [curve["label"] for curve in series] == ["treatment", "baseline"]
    values = np.frombuffer(base64.b64decode(series[0]["y"]), "<f4")
    assert values == pytest.approx((1000 / 0.5, 1000 / 0.51))
    text = page(replace(report, table=None, ab=actual))
    read = Reader(text)
    assert "ab" in read.ids()
    assert html.escape(actual.sentence) in text
    assert 'data-key="windows"' in text


def test_a_sum_of_rows_is_shown_where_these_rows_are_not(tmp_path: Path) -> None:
    small = {f"{COMMAND};{MYSQLD}!{name}": 1 for name in ("row_purge", "mtr_t::commit()")}
    busy = Host(server_ticks={"utime": 68, "stime": 34})
    runs = [make_profiled_run(tmp_path / name, busy, server={SEARCH: 100} | small) for name in ("a", "b")]
    table = known(report_of(*runs).table)
    text = table_section.tabled(table)
    groups = [group for group in text["groups"] if "Where" in group["title"]]
    kinds = {row["label"]: row["kind"] for group in groups for row in group["rows"]}
    assert {kinds[label] for label in ("purge", "redo (mini-transactions)")} == {"further"}
    assert kinds["2 other groups"] == "sum"
    assert text["counts"][2] == len(table.rows) - 1
