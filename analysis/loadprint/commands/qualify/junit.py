"""Renders a report as JUnit XML, for continuous integration: a suite per cell, a case per row.

A row that fails is a `failure`, an inconclusive row is an `error`: a pipeline would treat `skipped`
as passed. The last suite contains the overall verdict, so that the file fails whenever the exit
status is not 0.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from xml.etree import ElementTree as Xml

from loadprint.commands.qualify import qualify_text
from loadprint.commands.qualify.non_inferiority import FAIL, PASS
from loadprint.commands.qualify.qualify_report import CellReport, Qualification, QualifiedRow

NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class _Case:
    name: str
    verdict: str
    message: str
    details: str


def render(report: Qualification) -> str:
    """Return the XML document."""
    # a dot would separate packages in a class name
    suites = [(cell.title, f"qualify.{cell.name.replace('.', '_')}", _cases(cell)) for cell in report.cells]
    overall = _Case("verdict", report.verdict, qualify_text.conclusion(report), "\n".join(report.reasons))
    suites.append(("overall", "qualify", [overall]))
    root = Xml.Element("testsuites", name="loadprint qualify")
    for name, classname, cases in suites:
        suite = Xml.SubElement(root, "testsuite", {"name": _clean(name), **_counts(cases), "time": "0"})
        for case in cases:
            _add(suite, classname, case)
    for key, value in _counts([case for _, _, cases in suites for case in cases]).items():
        if key != "skipped":
            root.set(key, value)
    Xml.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{Xml.tostring(root, encoding="unicode")}\n'


def _cases(cell: CellReport) -> list[_Case]:
    heads = qualify_text.HEADS[2:]
    texts = [
        [text and f"{head} {text}" for head, text in zip(heads, row[2:], strict=True)]
        for row, _ in qualify_text.rows(cell)
    ]
    return [
        _Case(line.key, line.verdict, _message(cell, line), ", ".join(filter(None, figures)))
        for line, figures in zip(cell.lines, texts, strict=True)
        if line.verdict
    ]


def _message(cell: CellReport, line: QualifiedRow) -> str:
    if line.verdict == FAIL:
        return "both bounds of the ratio are beyond the limit"
    return line.reason or "; ".join(qualify_text.why_void(cell))


def _counts(cases: list[_Case]) -> dict[str, str]:
    failed = sum(case.verdict == FAIL for case in cases)
    errors = sum(case.verdict not in (FAIL, PASS) for case in cases)
    return {"tests": str(len(cases)), "failures": str(failed), "errors": str(errors), "skipped": "0"}


def _add(suite: Xml.Element, classname: str, case: _Case) -> None:
    element = Xml.SubElement(suite, "testcase", name=_clean(case.name), classname=_clean(classname), time="0")
    if case.verdict == PASS:
        Xml.SubElement(element, "system-out").text = _clean(case.details)
        return
    kind = "failure" if case.verdict == FAIL else "error"
    result = Xml.SubElement(element, kind, message=_clean(case.message), type=case.verdict)
    result.text = _clean(case.details)


def _clean(text: str) -> str:
    return NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
