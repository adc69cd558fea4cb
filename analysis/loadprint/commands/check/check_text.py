"""Renders the report of a check as text or JSON."""

from __future__ import annotations

from loadprint import numbers
from loadprint.commands.check.check_report import SEVERITIES, CheckFinding, CheckReport
from loadprint.rendering import printout
from loadprint.rendering.printout import reasons, wrapped

MAX_NAMES = 4


def text(report: CheckReport) -> str:
    """Return the findings, the rules that were not checked, and the number of rules that passed."""
    lines = [f"checked: {numbers.listed(report.subjects, MAX_NAMES)}", ""]
    for finding in report.findings:
        lines += _finding(finding, len(report.subjects))
    if not report.findings:
        lines += ["no mistake found", ""]
    if report.unknown:
        lines += ["not checked:", *reasons(report.unknown), ""]
    severities = [finding.severity for finding in report.findings]
    counts = ", ".join(f"{severity} {severities.count(severity)}" for severity in SEVERITIES)
    lines.append(f"{counts}; {len(report.passed)} rules passed, {len(report.unknown)} not checked")
    return "\n".join(lines) + "\n"


def _finding(finding: CheckFinding, subjects: int) -> list[str]:
    head = f"{finding.severity:<9}{finding.id}: {finding.evidence}"
    if len(finding.where) < subjects:
        where = numbers.listed(finding.where, MAX_NAMES)
        head += f" (in {len(finding.where)} of {subjects}: {where})"
    inside, below = " " * 11, " " * 16
    why, fix = (wrapped(text, inside, below) for text in (f"why: {finding.why}", f"fix: {finding.fix}"))
    return [*wrapped(head, rest=inside), *why, *fix, ""]


def as_json(report: CheckReport) -> str:
    """Return the JSON object that docs/recording-format.md describes."""
    unknown = [{"id": rule, "why": why} for rule, why in report.unknown]
    findings = {"subjects": report.subjects, "failed": report.failed, "findings": report.findings}
    return printout.as_json(findings | {"unknown": unknown, "passed": report.passed}, format_version=2)
