"""Whole qualifications of recordings the test made: verdicts, what forbids them, levels, money."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from loadprint.commands.qualify import qualify_text
from loadprint.commands.qualify.measure import Reader
from loadprint.commands.qualify.qualification import qualify
from loadprint.errors import InputError
from qualifying import SECONDS, Base, asked, at, changed, execution, line, only_cell, waiting
from recordings import write_manifest
from test_canary import line as canary_line


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Base:
    return Base(execution(tmp_path_factory.mktemp("base") / "old", {"oltp": at(1000)}), Reader())


@pytest.mark.parametrize(
    ("events", "verdict", "status"),
    [(1000, "pass", 0), (1100, "pass", 0), (900, "fail", 1)],
)
def test_verdicts(base: Base, tmp_path: Path, events: int, verdict: str, status: int) -> None:
    report = base.against(tmp_path, at(events, "db2"), asked())
    result = line(report)
    assert (str(report.verdict), report.status, str(result.verdict)) == (verdict, status, verdict)
    assert result.is_better is (events > 1000)
    assert result.ratio is not None
    assert result.ratio == pytest.approx(events / 1000, rel=2e-3)
    assert result.low is not None
    assert result.high is not None
    assert result.low < result.ratio < result.high
    assert result.limit == pytest.approx(0.97)
    assert any("type: 1 baseline and 1 candidate instances" in note for note in report.notes)


def test_wide_bounds_say_how_many_more_repeats_would_decide(base: Base, tmp_path: Path) -> None:
    report = base.against(tmp_path, at(1000, "db2"), asked(), spread=(0, 30, -30))
    result = line(report)
    assert (report.verdict, report.status) == ("inconclusive", 2)
    assert result.more is not None
    assert 1 <= result.more < 30
    assert re.fullmatch(rf"{result.more} more repeats? per side would decide", result.reason)


def test_two_repeats_have_a_ratio_and_no_verdict(base: Base, tmp_path: Path) -> None:
    report = base.against(tmp_path, at(800, "db2"), asked(), spread=(0, 1))
    result = line(report)
    assert (result.verdict, result.low) == ("inconclusive", None)
    assert result.ratio == pytest.approx(0.8, rel=1e-2)
    assert result.reason == "3 | 2 repeats: an instance needs three or more"


def test_one_concurrency_and_a_short_window_are_inconclusive_by_default(base: Base, tmp_path: Path) -> None:
    short = base.against(tmp_path, at(1000, "db2"), asked(sustained={"at_least": "10m"}))
    assert line(short).reason == "beyond 41 s: the sustained level needs a window of 600 s"
    assert short.status == 2
    single = base.judge([str(tmp_path / "new")], asked(concurrencies=2))
    assert line(single).verdict == "pass"
    assert single.verdict == "inconclusive"
    assert "oltp: run at 4 threads only, 2 concurrencies required" in single.reasons[0]


def test_several_concurrencies_are_cells_of_their_own_and_one_that_fails_decides(tmp_path: Path) -> None:
    old = execution(tmp_path / "old", {"oltp-t4": at(1000), "oltp-t16": at(2000)})
    new = execution(tmp_path / "new", {"oltp-t4": at(1000, "db2"), "oltp-t16": at(1500, "db2")})
    reader = Reader()
    report = qualify([str(old)], [str(new)], asked(concurrencies=2), reader)
    assert [cell.threads for cell in report.cells] == [4, 16]
    assert report.verdict == "fail"
    assert report.reasons == ("beyond the tolerance: oltp-t16: operations, sustained",)
    alone = qualify([f"{old}:oltp-t4"], [f"{new}:oltp-t4"], asked(), reader)
    assert alone.verdict == "pass"
    unlike = qualify([f"{old}:oltp-t4"], [f"{new}:oltp-t16"], asked(), reader)
    assert unlike.reasons == ("oltp-t4 | oltp-t16: not the same work",)


def test_only_durable_servers_qualify_unless_others_are_accepted(base: Base, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="server profile is `blog`, only durable qualifies") as error:
        base.against(tmp_path, at(1000, "db2"), asked(), profile="blog")
    assert "\n" not in str(error.value)
    accepted = base.judge([str(tmp_path / "new")], asked(accept_profiles=["durable", "blog"]))
    assert accepted.verdict == "pass"


def test_hardware_is_the_subject_and_configuration_spoils_unless_accepted(base: Base, tmp_path: Path) -> None:
    new = execution(tmp_path / "new", {"oltp": at(1000, "db2")})
    changed(new, "fingerprint.json", lambda f: f["cpus"].update(model="Newer CPU"))
    report = base.judge([str(new)], asked())
    assert report.verdict == "pass"
    assert report.subject == (("cpus.model", "Test CPU", "Newer CPU"),)
    other = new.rename(tmp_path / "other")  # the reader has seen `new`
    changed(other, "server.json", lambda s: s["variables"].update(innodb_io_capacity="200"))
    report = base.judge([str(other)], asked())
    assert report.reasons == ("oltp: not the same configuration",)
    assert report.configuration == (("innodb_io_capacity", "100", "200"),)
    assert line(report).ratio == pytest.approx(1.0, rel=2e-3)  # shown all the same
    accepted = base.judge([str(other)], asked(accept=["innodb_io_*"]))
    assert accepted.verdict == "pass"
    assert accepted.accepted == report.configuration


def test_a_disturbed_repeat_decides_nothing_unless_it_may(base: Base, tmp_path: Path) -> None:
    new = execution(tmp_path / "new", {"oltp": at(1000, "db2")})
    lines = canary_line("before", 0, cpu=1000) + canary_line("after", 40, cpu=1100)
    (new / "b2-oltp-r2" / "server" / "canary.jsonl").write_text(lines)
    write_manifest(new / "b2-oltp-r2")
    report = base.judge([str(new)], asked())
    assert report.reasons == ("oltp: disturbed",)
    assert only_cell(report).voids[0][1].endswith("b2-oltp-r2 cpu 1.10 × slower after the run (limit 1.03 ×)")
    assert base.judge([str(new)], asked(accept_disturbed=True)).verdict == "pass"


def test_a_client_at_its_limit_or_a_side_that_never_settles_decides_nothing(
    base: Base, tmp_path: Path
) -> None:
    busy = {"0": {"user": 50, "idle": 50}, "1": {"user": 95, "idle": 5}}
    report = base.against(tmp_path / "a", at(900, "db2", cpus=busy), asked())
    assert report.reasons == ("oltp: client-bound",)
    ramp = at(1000, "db2", series=lambda second: 800 + 10 * second)
    report = base.against(tmp_path / "b", ramp, asked())
    assert report.reasons == ("oltp: never settled",)


def test_the_level_after_a_credit_is_judged_and_the_step_is_reported(base: Base, tmp_path: Path) -> None:
    def used_up(second: int) -> int:
        return (1300 if second < 18 else 700) + second % 3

    report = base.against(tmp_path, at(1000, "db2", series=used_up), asked())
    assert report.verdict == "fail"  # 1000 a second over the whole window, 724 after its credit
    mean = sum(map(used_up, range(SECONDS))) / SECONDS
    assert line(report).candidate.value == pytest.approx(1000 * 701 / mean, rel=1e-2)
    steady, falling = only_cell(report).levels
    assert steady.exhausted == ()
    assert [(step.run, step.second) for step in falling.exhausted] == [
        (f"b{k}-oltp-r{k}", 18) for k in (1, 2, 3)
    ]
    assert falling.burst is not None
    assert falling.sustained is not None
    assert falling.burst / falling.sustained == pytest.approx(1301 / 701, rel=1e-2)
    assert "fell after 18 s" in qualify_text.text(report)


def test_money_is_a_row_where_a_tolerance_is_given(base: Base, tmp_path: Path) -> None:
    price: dict[str, Any] = {"baseline": 2.0, "candidate": 1.0, "currency": "EUR", "per": "hour"}
    report = base.against(tmp_path, at(700, "db2"), asked(price=price))
    shown = line(report, "operations_per_currency")
    assert (report.verdict, shown.verdict, shown.label) == ("fail", "", "operations per EUR")
    assert shown.candidate.value == pytest.approx(700 * 3600, rel=2e-3)
    assert shown.candidate.low is not None
    assert shown.candidate.low < 700 * 3600
    assert shown.ratio == pytest.approx(1.4, rel=2e-3)
    assert shown.low is not None
    cheap = asked(rows={"server_cpu_per_operation": "50 %"}, price=price | {"tolerance": "0 %"})
    judged = base.judge([str(tmp_path / "new")], cheap)
    assert line(judged, "operations_per_currency").verdict == "pass"
    assert judged.verdict == "pass"


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Base:
    """A baseline that was held to 700 events a second, 10 ms each."""
    path = tmp_path_factory.mktemp("held") / "old"
    return Base(execution(path, {"oltp@70": waiting(700, "db1", 10.0, 700)}), Reader())


@pytest.mark.parametrize(
    ("ms", "rate", "verdict"),
    [
        (10.0, 700, "pass"),
        (12.0, 700, "fail"),
        (10.0, 800, "pass"),  # driven harder and still as quick
        (12.0, 800, "inconclusive"),
        (10.0, 600, "inconclusive"),
        (12.0, 600, "fail"),  # slower although driven less
    ],
)
def test_latency_is_judged_at_equal_load(
    held: Base, tmp_path: Path, ms: float, rate: float, verdict: str
) -> None:
    new = execution(tmp_path / "new", {"oltp@70": waiting(700, "db2", ms, rate)})
    report = held.judge([str(new)], asked(rows={"latency_p99": "5 %"}))
    assert (line(report, "latency_p99").verdict, report.verdict) == (verdict, verdict)
    assert only_cell(report).levels == ()


def test_latency_of_a_closed_loop_has_no_verdict(base: Base, tmp_path: Path) -> None:
    rows = {"operations": "3 %", "latency_p99": "5 %"}
    report = base.against(tmp_path, at(1000, "db2", latency_ms=90.0), asked(rows=rows))
    assert [each.key for each in only_cell(report).lines] == ["operations"]
    assert report.reasons == ("latency_p99: judged at equal-load, and no side was run at it",)


def test_rows_of_devices_zeros_and_rows_that_are_not_there(base: Base, tmp_path: Path) -> None:
    rows: dict[str, Any] = {
        "disk_*_flushes": {"tolerance": "5 %", "better": "lower"},
        "disk_*_await": "5 %",
        "errors": "1 %",
        "energy_per_operation": "5 %",
    }
    report = base.against(tmp_path, at(1000, "db2"), asked(rows=rows))
    result = {each.key: each for each in only_cell(report).lines}
    assert list(result) == ["disk_vda_flushes", "disk_vda_await", "errors", "energy_per_operation"]
    assert result["disk_vda_flushes"].verdict == result["disk_vda_await"].verdict == "pass"
    assert (result["errors"].verdict, result["errors"].reason) == ("pass", "the candidate has none")
    assert result["energy_per_operation"].reason == "not among the rows of these recordings"
    assert report.verdict == "inconclusive"
    with pytest.raises(InputError, match="higher or lower is better; write `better"):
        base.judge([str(tmp_path / "new")], asked(rows={"disk_vda_flushes": "5 %"}))
