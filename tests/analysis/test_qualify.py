"""Whole qualifications of recordings the test made: verdicts, what forbids them, groups, levels, outputs."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import pytest
from loadprint.__main__ import main
from loadprint.errors import InputError
from loadprint.qualify import junit, render, spec
from loadprint.qualify.measure import Reader
from loadprint.qualify.qualify import qualify
from loadprint.qualify.report import CellReport, Line, Report
from loadprint.qualify.spec import Spec
from recordings import Host, make_execution, write_json, write_manifest
from test_canary import line as canary_line

Golden = Callable[[str, str], None]
SECONDS = 40
RUNS = (0, 1, -1)  # what the repeats of a host differ by, in tenths of a percent


def asked(**changed: Any) -> Spec:
    """One row at one concurrency, in windows of 30 s."""
    plain: dict[str, Any] = {
        "rows": {"operations": "3 %"},
        "concurrencies": 1,
        "sustained": {"at_least": "30s", "burst": "10s"},
    }
    return Spec.model_validate(plain | changed)


def execution(
    path: Path,
    sides: Mapping[str, Host],
    spread: tuple[int, ...] = RUNS,
    profile: str = "durable",
    fraction: float | None = None,
) -> Path:
    """Repeats of hosts with 1000 events a second or so; a side called NAME-tN has N threads."""
    made, plans = {}, {}
    for name, host in sides.items():
        threads = int(name.partition("-t")[2].partition("@")[0] or 4)
        held = {"threads": threads, **({"rate": host.result.get("rate", 700)} if "@" in name else {})}
        made[name] = [
            replace(host, seconds=SECONDS, events=host.events + by, result={**host.result, **held})
            for by in spread
        ]
        plans[name] = {
            "of": name.partition("-t")[0],
            "threads": threads,
            "workload": host.workload,
            "cell": {"threads": threads},
            "server": {"profile": profile},
            **({"fraction": fraction or 0.7} if "@" in name else {}),
        }
    return make_execution(path, made, next(iter(sides)), plans)


def at(events: int, host: str = "db1", **changed: Any) -> Host:
    """A host that does so many events a second, evenly."""
    variables = {"innodb_flush_log_at_trx_commit": "1", "innodb_io_capacity": "100"}
    return Host(events=events, host=host, variables=variables, **changed)


@dataclass(frozen=True)
class Base:
    """A baseline of 1000 events a second, read once for all tests."""

    path: Path
    reader: Reader

    def against(self, path: Path, host: Host, given: Spec, **how: Any) -> Report:
        """Judge three repeats of a candidate."""
        made = execution(path / "new", {"oltp": host}, **how)
        return self.judge([str(made)], given)

    def judge(self, candidate: list[str], given: Spec) -> Report:
        return qualify([str(self.path)], candidate, given, self.reader)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Base:
    return Base(execution(tmp_path_factory.mktemp("base") / "old", {"oltp": at(1000)}), Reader())


def only_cell(report: Report) -> CellReport:
    assert len(report.cells) == 1
    return report.cells[0]


def line(report: Report, key: str = "operations") -> Line:
    found = [each for cell in report.cells for each in cell.lines if each.key == key]
    assert len(found) == 1, key
    return found[0]


@pytest.mark.parametrize(
    ("events", "verdict", "status"),
    [(1000, "pass", 0), (1100, "pass", 0), (900, "fail", 1)],
)
def test_verdicts(base: Base, tmp_path: Path, events: int, verdict: str, status: int) -> None:
    report = base.against(tmp_path, at(events, "db2"), asked())
    found = line(report)
    assert (str(report.verdict), report.status, str(found.verdict)) == (verdict, status, verdict)
    assert found.is_better is (events > 1000)
    assert found.ratio is not None
    assert found.ratio == pytest.approx(events / 1000, rel=2e-3)
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.ratio < found.high
    assert found.limit == pytest.approx(0.97)
    assert any("type: 1 | 1 instances" in note for note in report.notes)


def test_wide_bounds_say_how_many_more_repeats_would_decide(base: Base, tmp_path: Path) -> None:
    report = base.against(tmp_path, at(1000, "db2"), asked(), spread=(0, 30, -30))
    found = line(report)
    assert (report.verdict, report.status) == ("cannot tell", 2)
    assert found.more is not None
    assert 1 <= found.more < 30
    assert re.fullmatch(rf"{found.more} more repeats? a side would decide", found.reason)


def test_two_repeats_have_a_ratio_and_no_verdict(base: Base, tmp_path: Path) -> None:
    report = base.against(tmp_path, at(800, "db2"), asked(), spread=(0, 1))
    found = line(report)
    assert (found.verdict, found.low) == ("cannot tell", None)
    assert found.ratio == pytest.approx(0.8, rel=1e-2)
    assert found.reason == "3 | 2 repeats: three of an instance are the fewest that tell"


def test_one_concurrency_and_a_short_window_cannot_tell_by_default(base: Base, tmp_path: Path) -> None:
    short = base.against(tmp_path, at(1000, "db2"), asked(sustained={"at_least": "10m"}))
    assert line(short).reason == "beyond 41 s: a window of 600 s tells what is sustained"
    assert short.status == 2
    single = base.judge([str(tmp_path / "new")], asked(concurrencies=2))
    assert line(single).verdict == "pass"
    assert single.verdict == "cannot tell"
    assert "oltp: run at 4 threads only, 2 concurrencies are asked for" in single.reasons[0]


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
    with pytest.raises(InputError, match="server profile `blog`, only durable qualifies") as error:
        base.against(tmp_path, at(1000, "db2"), asked(), profile="blog")
    assert "\n" not in str(error.value)
    accepted = base.judge([str(tmp_path / "new")], asked(accept_profiles=["durable", "blog"]))
    assert accepted.verdict == "pass"


def changed(path: Path, file: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Rewrite a JSON file of every run below a path."""
    for found in path.rglob(file):
        value = json.loads(found.read_text())
        change(value)
        write_json(found, value)
        write_manifest(found.parents[1])


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
    told = canary_line("before", 0, cpu=1000) + canary_line("after", 40, cpu=1100)
    (new / "b2-oltp-r2" / "server" / "canary.jsonl").write_text(told)
    write_manifest(new / "b2-oltp-r2")
    report = base.judge([str(new)], asked())
    assert report.reasons == ("oltp: disturbed",)
    assert only_cell(report).voids[0][1].endswith("b2-oltp-r2 cpu 1.10 × slower after (limit 1.03 ×)")
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


def test_the_level_after_a_credit_is_judged_and_the_step_is_told(base: Base, tmp_path: Path) -> None:
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
    assert "fell for good after 18 s" in render.text(report)


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


def waiting(events: int, host: str, ms: float, rate: float) -> Host:
    return at(events, host, latency_ms=ms, result={"rate": rate, "achieved_rate": rate})


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
        (12.0, 800, "cannot tell"),
        (10.0, 600, "cannot tell"),
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
    assert report.reasons == ("latency_p99: judged at equal-load, and no side was run so",)


def test_rows_of_devices_zeros_and_rows_that_are_not_there(base: Base, tmp_path: Path) -> None:
    rows: dict[str, Any] = {
        "disk_*_flushes": {"tolerance": "5 %", "better": "lower"},
        "disk_*_await": "5 %",
        "errors": "1 %",
        "energy_per_operation": "5 %",
    }
    report = base.against(tmp_path, at(1000, "db2"), asked(rows=rows))
    found = {each.key: each for each in only_cell(report).lines}
    assert list(found) == ["disk_vda_flushes", "disk_vda_await", "errors", "energy_per_operation"]
    assert found["disk_vda_flushes"].verdict == found["disk_vda_await"].verdict == "pass"
    assert (found["errors"].verdict, found["errors"].reason) == ("pass", "the candidate has none")
    assert found["energy_per_operation"].reason == "not among the rows of these recordings"
    assert report.verdict == "cannot tell"
    with pytest.raises(InputError, match="no direction of its own; say `better"):
        base.judge([str(tmp_path / "new")], asked(rows={"disk_vda_flushes": "5 %"}))


def fleet(path: Path, levels: list[int], first: int = 1) -> list[str]:
    return [
        str(execution(path / f"db{number}", {"oltp": at(level, f"db{number}")}, (1, -1)))
        for number, level in enumerate(levels, start=first)
    ]


@dataclass(frozen=True)
class Fleet:
    """Three instances, two runs of each: alike to half a percent, and unlike by six."""

    alike: list[str]
    unlike: list[str]
    reader: Reader


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    path = tmp_path_factory.mktemp("fleet")
    return Fleet(
        fleet(path / "alike", [1000, 1004, 996]), fleet(path / "unlike", [1000, 1060, 940]), Reader()
    )


def test_three_instances_a_side_tell_about_the_type(old: Fleet, tmp_path: Path) -> None:
    new = fleet(tmp_path / "new", [1001, 1005, 995, 999], first=4)
    report = qualify(old.alike, new, asked(), old.reader)
    assert (report.about, report.verdict) == ("type", "pass")
    assert [len(machines) for _, _, machines in report.parties] == [3, 4]
    assert (line(report).baseline.units, line(report).candidate.units) == (3, 4)
    spread = dict(only_cell(report).spread)["baseline"]
    assert spread.instances == pytest.approx(0.004, rel=0.1)
    assert spread.runs == pytest.approx(0.0014, rel=0.1)
    above = str(Path(old.alike[0]).parent)
    assert qualify([above], [f"{tmp_path}/new/db*:oltp"], asked(), old.reader).cells == report.cells


def test_the_spread_between_instances_is_what_counts_for_the_type(old: Fleet, tmp_path: Path) -> None:
    new = fleet(tmp_path / "new", [1010, 950, 1060], first=4)
    report = qualify(old.unlike, new, asked(), old.reader)
    assert report.verdict == "cannot tell"
    assert "more instances a side would decide" in line(report).reason
    themselves = qualify(old.unlike, new, asked(about="instances"), old.reader)
    assert themselves.verdict == "pass"  # exactly these six, on average


def test_under_three_instances_nothing_is_said_of_the_type(old: Fleet, tmp_path: Path) -> None:
    new = [str(execution(tmp_path / "db4", {"oltp": at(800, "db4")}))]
    report = qualify(old.alike, new, asked(), old.reader)
    assert report.verdict == "cannot tell"
    assert report.reasons[:2] == (
        "nothing can be said about the type: 3 | 1 instances, three a side are needed",
        "these instances themselves: fail",
    )
    assert qualify(old.alike, new, asked(about="instances"), old.reader).verdict == "fail"


def test_executions_of_one_host_are_one_instance(base: Base, tmp_path: Path) -> None:
    again = [str(execution(tmp_path / f"x{k}", {"oltp": at(1000 + k, "db2")}, (1, -1))) for k in range(3)]
    changed(tmp_path / "x2", "fingerprint.json", lambda f: f.update(boot_id="another"))
    report = base.judge(again, asked())
    assert report.about == "instances"
    assert [machine.runs for machine in report.parties[1][2]] == [6]
    assert any("db2 was booted 2 times" in note for note in report.notes)
    by = {how: base.judge(again, asked(instances_by=how)) for how in ("boot", "execution")}
    assert [len(each.parties[1][2]) for each in by.values()] == [2, 3]
    changed(tmp_path / "x2", "fingerprint.json", lambda f: f.update(machine_id="of its own"))
    report = base.judge(again, asked())
    assert [machine.name for machine in report.parties[1][2]] == ["db2#1", "db2#2"]
    assert report.about == "type"


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """A pass, a fail and what nobody can tell, at two concurrencies and at equal load."""
    tmp_path = tmp_path_factory.mktemp("mixed")
    sides = {"oltp-t4": at(1000), "oltp-t16": at(2000), "oltp-t4@70": waiting(700, "db1", 10.0, 700)}
    old = execution(tmp_path / "old", sides)
    slower = {
        "oltp-t4": at(1002, "db2"),
        "oltp-t16": at(1700, "db2"),
        "oltp-t4@70": waiting(700, "db2", 10.1, 900),
    }
    new = execution(tmp_path / "new", slower)
    changed(tmp_path / "new", "fingerprint.json", lambda f: f["cpus"].update(model="Newer CPU"))
    wanted = spec.load(None).model_copy(
        update={
            "sustained": asked().sustained,
            "price": spec.Price(baseline=0.192, candidate=0.154, currency="USD"),
        }
    )
    report = qualify([str(old)], [str(new)], wanted)
    parties = tuple((name, (f"runs/{name}",), machines) for name, _, machines in report.parties)
    return replace(report, parties=parties)


def test_text_fits_and_ends_with_the_verdict(mixed: Report, golden: Golden) -> None:
    text = render.text(mixed)
    assert max(map(len, text.splitlines())) <= render.WIDTH
    assert text.splitlines()[-1].startswith("fail: beyond the tolerance: oltp-t16: operations, sustained")
    golden("qualify.txt", text)
    golden("qualify.md", render.markdown(mixed))


def test_csv_and_json_hold_the_same_figures(mixed: Report) -> None:
    rows = list(csv.DictReader(io.StringIO(render.comma_separated(mixed))))
    found = json.loads(render.as_json(mixed))
    assert (found["status"], found["verdict"]) == (1, "fail")
    lines = [each for cell in found["cells"] for each in cell["lines"]]
    assert [row["row"] for row in rows] == [each["key"] for each in lines]
    assert [float(row["ratio"]) for row in rows] == pytest.approx([each["ratio"] for each in lines])


# the schema that Jenkins keeps: attributes (required first), children in their order, how often
SCHEMA: dict[str, tuple[set[str], set[str], list[str]]] = {
    "testsuites": ({"name"}, {"tests", "failures", "errors", "disabled", "time"}, ["testsuite"]),
    "testsuite": (
        {"name", "tests"},
        {"failures", "errors", "skipped", "disabled", "time", "timestamp", "hostname", "id", "package"},
        ["properties", "testcase", "system-out", "system-err"],
    ),
    "testcase": (
        {"name"},
        {"classname", "time", "assertions", "status"},
        ["skipped", "error", "failure", "system-out", "system-err"],
    ),
    "error": (set(), {"message", "type"}, []),
    "failure": (set(), {"message", "type"}, []),
    "system-out": (set(), set(), []),
}


def against_schema(element: Xml.Element) -> None:
    required, optional, children = SCHEMA[element.tag]
    assert required <= set(element.attrib) <= required | optional, element.tag
    order = [children.index(child.tag) for child in element]
    assert order == sorted(order), element.tag
    for counted in {"tests", "failures", "errors", "skipped"} & set(element.attrib):
        assert element.attrib[counted].isdigit()
    for child in element:
        against_schema(child)


def test_junit_is_what_continuous_integration_reads(mixed: Report) -> None:
    root = Xml.fromstring(junit.render(mixed).encode())
    against_schema(root)
    for suite in (root, *root):
        for key, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error")):
            assert int(suite.attrib[key]) == len(list(suite.iter(tag))), key
    cases = {(case.attrib["classname"], case.attrib["name"]): case for case in root.iter("testcase")}
    failed = cases["qualify.oltp-t16", "operations"].find("failure")
    assert failed is not None
    assert "ratio 0.850" in (failed.text or "")
    assert cases["qualify.oltp-t4", "operations"].find("failure") is None
    assert cases["qualify", "verdict"].find("failure") is not None


def test_names_that_xml_cannot_hold_are_written_all_the_same(mixed: Report) -> None:
    odd = replace(mixed, cells=(replace(mixed.cells[0], title='<a> & "b" \x00\x1b'),))
    suite = Xml.fromstring(junit.render(odd).encode())[0]
    assert suite.attrib["name"] == '<a> & "b" \N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}'


def test_the_command(tmp_path: Path, base: Base, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = str(base.path), str(execution(tmp_path / "new", {"oltp": at(900, "db2")}))
    file = tmp_path / "spec.yml"
    file.write_text(
        f"rows: {{operations: 3 %}}\nconcurrencies: 1\nsustained: {{at_least: 30s}}\n"
        f"baseline: [{old}]\ncandidate: [{old}]\n"
    )
    out = tmp_path / "out.xml"
    assert main(["qualify", old, new, "--spec", str(file), "--junit", str(out)]) == 1
    assert capsys.readouterr().out.splitlines()[-1].startswith("fail: ")
    assert Xml.parse(out).getroot().attrib["failures"] == "2"
    assert main(["qualify", "--spec", str(file)]) == 0  # itself, named in the specification
    assert "beside themselves" in capsys.readouterr().out
    assert main(["qualify", "--candidate", new, "--spec", str(file), "--format", "json"]) == 1
    assert json.loads(capsys.readouterr().out)["verdict"] == "fail"
    assert main(["qualify", "--print-spec"]) == 0
    assert capsys.readouterr().out == spec.default_text()


@pytest.mark.parametrize(
    ("candidate", "why"),
    [("oltp", "cannot tell: oltp: "), ("insert", "cannot tell: oltp | insert: not the same work")],
)
def test_real_recordings_do_not_fail_where_nothing_can_be_told(
    capsys: pytest.CaptureFixture[str], candidate: str, why: str
) -> None:
    kept = Path(__file__).parents[1] / "recordings" / "v1"
    words = ["qualify", str(kept / "oltp"), str(kept / candidate)]
    assert main(words) == 2
    text = capsys.readouterr().out
    assert text.splitlines()[-1].startswith(why)
    assert max(map(len, text.splitlines())) <= render.WIDTH
    assert main([*words, "--format", "json"]) == 2
    ratios = {each["ratio"] for each in json.loads(capsys.readouterr().out)["cells"][0]["lines"]}
    assert ratios == ({1.0} if candidate == "oltp" else {None})  # different operations have no ratio


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["qualify"], "no baseline is given"),
        (["qualify", "{old}"], "1 words besides the options"),
        (["qualify", "{old}", "{old}/nowhere"], "no such execution or run"),
        (["qualify", "{old}", "{old}:other"], "no side `other`; its sides are oltp"),
        (["qualify", "{old}", "{old}:@50"], "no side at `@50`"),
        (["qualify", "{old}", "{old}*nothing*"], "matches nothing"),
        (["qualify", "{old}", "{old}/b1-oltp-r1", "--spec", "{old}/none.yml"], "no such specification file"),
    ],
)
def test_unusable_input_is_one_line(
    base: Base, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert main([word.format(old=base.path) for word in words]) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""
