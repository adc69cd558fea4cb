"""Renders a report as JUnit XML, for continuous integration: a suite per cell, a case per row.

A row that fails is a `failure`, an undecided row is an `error`: a pipeline would treat `skipped`
as passed. The last suite contains the overall verdict, so that the file fails whenever the exit
status is not 0.
"""

from __future__ import annotations

from xml.etree import ElementTree as Xml

from loadprint.commands.qualify import qualify_text
from loadprint.commands.qualify.non_inferiority import FAIL, PASS
from loadprint.commands.qualify.qualify_report import CellReport, Qualification
from loadprint.rendering import escape

Case = tuple[str, str, str, str]  # name, verdict, message, details


def render(report: Qualification) -> str:
    """Return the XML document."""
    # a dot would separate packages in a class name
    suites = [(cell.title, f"qualify.{cell.name.replace('.', '_')}", _cases(cell)) for cell in report.cells]
    overall = ("verdict", report.verdict, qualify_text.conclusion(report), "\n".join(report.reasons))
    suites.append(("overall", "qualify", [overall]))
    every = _counts([case for _, _, cases in suites for case in cases])
    root = Xml.Element("testsuites", {"name": "loadprint qualify", **every})
    for name, classname, cases in suites:
        about = {"name": escape.xml(name), **_counts(cases), "skipped": "0", "time": "0"}
        suite = Xml.SubElement(root, "testsuite", about)
        for case, verdict, message, details in cases:
            names = {"name": escape.xml(case), "classname": escape.xml(classname)}
            element = Xml.SubElement(suite, "testcase", names, time="0")
            if verdict == PASS:
                Xml.SubElement(element, "system-out").text = escape.xml(details)
            else:
                kind = "failure" if verdict == FAIL else "error"
                result = Xml.SubElement(element, kind, message=escape.xml(message), type=verdict)
                result.text = escape.xml(details)
    Xml.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{Xml.tostring(root, encoding="unicode")}\n'


def _cases(cell: CellReport) -> list[Case]:
    cases = []
    for line, (texts, _) in zip(cell.lines, qualify_text.rows(cell), strict=True):
        if line.verdict:
            message = line.reason or "; ".join(qualify_text.why_void(cell))
            if line.verdict == FAIL:
                message = "both bounds of the ratio are beyond the limit"
            figures = zip(qualify_text.HEADS[2:], texts[2:], strict=True)
            details = ", ".join(f"{head} {text}" for head, text in figures if text)
            cases.append((line.key, line.verdict, message, details))
    return cases


def _counts(cases: list[Case]) -> dict[str, str]:
    failed = sum(verdict == FAIL for _, verdict, _, _ in cases)
    errors = sum(verdict not in (FAIL, PASS) for _, verdict, _, _ in cases)
    return {"tests": str(len(cases)), "failures": str(failed), "errors": str(errors)}
