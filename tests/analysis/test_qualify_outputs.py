"""What `qualify` prints: text, tables, JUnit, exit statuses, and one line for unusable input."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest
from conftest import Golden
from damage import ask, refused
from loadprint.__main__ import main
from loadprint.commands.qualify import junit, qualify_text, spec
from loadprint.commands.qualify.qualification import qualify
from loadprint.commands.qualify.qualify_report import Qualification
from loadprint.rendering.printout import WIDTH
from qualifying import Base, asked, at, changed, execution, waiting
from reads import known


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Qualification:
    """A pass, a fail and an undecided row, at two concurrencies and at equal load."""
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


def test_text_fits_and_ends_with_the_verdict(mixed: Qualification, golden: Golden) -> None:
    text = qualify_text.text(mixed)
    assert max(map(len, text.splitlines())) <= WIDTH
    golden("qualify.txt", text)
    golden("qualify.md", qualify_text.markdown(mixed))


def test_a_long_verdict_is_cut_between_words_and_whole_above(mixed: Qualification) -> None:
    reason = f"{'long-words ' * 9}with-hyphens"
    lines = qualify_text.text(replace(mixed, reasons=(reason,))).splitlines()
    assert lines[-1] == f"fail: {'long-words ' * 8}…"
    assert lines[-3:-1] == [f"- {'long-words ' * 8}long-words", "  with-hyphens"]


def test_csv_and_json_hold_the_same_figures(mixed: Qualification) -> None:
    rows = list(csv.DictReader(io.StringIO(qualify_text.comma_separated(mixed))))
    result = json.loads(qualify_text.to_json(mixed))
    assert (result["status"], result["verdict"]) == (1, "fail")
    lines = [line for cell in result["cells"] for line in cell["lines"]]
    assert [row["row"] for row in rows] == [line["key"] for line in lines]
    assert [float(row["ratio"]) for row in rows] == pytest.approx([line["ratio"] for line in lines])


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


def test_junit_is_what_continuous_integration_reads(mixed: Qualification) -> None:
    root = Xml.fromstring(junit.render(mixed).encode())
    against_schema(root)
    for suite in (root, *root):
        for key, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error")):
            assert int(suite.attrib[key]) == len(list(suite.iter(tag))), key
    cases = {(case.attrib["classname"], case.attrib["name"]): case for case in root.iter("testcase")}
    failed = known(cases["qualify.oltp-t16", "operations"].find("failure"))
    assert "ratio 0.850" in (failed.text or "")
    assert cases["qualify.oltp-t4", "operations"].find("failure") is None
    assert cases["qualify", "verdict"].find("failure") is not None


def test_names_that_xml_cannot_hold_are_written_all_the_same(mixed: Qualification) -> None:
    odd = replace(mixed, cells=(replace(mixed.cells[0], title='<a> & "b" \x00\x1b'),))
    suite = Xml.fromstring(junit.render(odd).encode())[0]
    assert suite.attrib["name"] == '<a> & "b" \N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}'


def test_the_command(tmp_path: Path, base: Base) -> None:
    old, new = base.path, execution(tmp_path / "new", {"oltp": at(900, "db2")})
    file = tmp_path / "spec.yml"
    file.write_text(
        f"rows: {{operations: 3 %}}\nconcurrencies: 1\nsustained: {{at_least: 30s}}\n"
        f"baseline: [{old}]\ncandidate: [{old}]\n"
    )
    out = tmp_path / "out.xml"
    answer = ask("qualify", old, new, "--spec", file, "--junit", out)
    assert (answer.status, answer.out.splitlines()[-1].partition(":")[0]) == (1, "fail")
    assert Xml.parse(out).getroot().attrib["failures"] == "2"
    itself = ask("qualify", "--spec", file)  # named in the specification
    assert (itself.status, "share recordings" in itself.out) == (0, True)
    answer = ask("qualify", "--candidate", new, "--spec", file, "--format", "json")
    assert (answer.status, answer.document["verdict"]) == (1, "fail")
    assert ask("qualify", "--print-spec").out == spec.default_text()


@pytest.mark.parametrize(
    ("candidate", "why"),
    [("oltp", "undecided: oltp: "), ("insert", "undecided: oltp | insert: not the same work")],
)
def test_real_recordings_do_not_fail_without_enough_repeats(
    capsys: pytest.CaptureFixture[str], candidate: str, why: str
) -> None:
    kept = Path(__file__).parents[1] / "recordings" / "v1"
    words = ["qualify", str(kept / "oltp"), str(kept / candidate)]
    assert main(words) == 2
    text = capsys.readouterr().out
    assert text.splitlines()[-1].startswith(why)
    assert max(map(len, text.splitlines())) <= WIDTH
    assert main([*words, "--format", "json"]) == 2
    ratios = {line["ratio"] for line in json.loads(capsys.readouterr().out)["cells"][0]["lines"]}
    assert ratios == ({1.0} if candidate == "oltp" else {None})  # different operations have no ratio


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["qualify"], "no baseline given"),
        (["qualify", "{old}"], "1 argument given, BASELINE and CANDIDATE needed"),
        (["qualify", "{old}", "{old}/nowhere"], "no such execution or run"),
        (["qualify", "{old}", "{old}:other"], "no side `other`; its sides are oltp"),
        (["qualify", "{old}", "{old}:@50"], "no side `@50`"),
        (["qualify", "{old}", "{old}*nothing*"], "matches nothing"),
        (["qualify", "{old}", "{old}/b1-oltp-r1", "--spec", "{old}/none.yml"], "no such specification file"),
    ],
)
def test_unusable_input_is_one_line(base: Base, words: list[str], said: str) -> None:
    assert said in refused(*(word.format(old=base.path) for word in words))
