"""Renders the report of a check as text or JSON."""

from __future__ import annotations

import json
import textwrap

from loadprint.commands.check.check_report import SEVERITIES, CheckFinding, CheckReport

WIDTH = 100
MAX_NAMES = 4


def text(report: CheckReport) -> str:
    """Return the findings, the rules that were not checked, and the number of rules that passed."""
    lines = [f"checked: {_named(report.subjects)}", ""]
    for finding in report.findings:
        lines += _finding(finding, len(report.subjects))
    if not report.findings:
        lines += ["no mistake found", ""]
    if report.unknown:
        lines.append("not checked:")
        reasons: dict[str, list[str]] = {}
        for rule, reason in report.unknown:
            reasons.setdefault(reason, []).append(rule)
        for reason, rules in reasons.items():
            lines += textwrap.wrap(
                f"{', '.join(rules)}: {reason}", WIDTH, initial_indent="  ", subsequent_indent="    "
            )
        lines.append("")
    found = [finding.severity for finding in report.findings]
    counts = ", ".join(f"{severity} {found.count(severity)}" for severity in SEVERITIES)
    lines.append(f"{counts}; {len(report.passed)} rules passed, {len(report.unknown)} not checked")
    return "\n".join(lines) + "\n"


def _finding(finding: CheckFinding, subjects: int) -> list[str]:
    head = f"{finding.severity:<9}{finding.id}: {finding.evidence}"
    if len(finding.where) < subjects:
        head += f" (in {len(finding.where)} of {subjects}: {_named(finding.where)})"
    inside, below = " " * 11, " " * 16
    fix = textwrap.TextWrapper(
        WIDTH,
        initial_indent=inside,
        subsequent_indent=below,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [
        *textwrap.wrap(head, WIDTH, subsequent_indent=inside),
        *textwrap.wrap(f"why: {finding.why}", WIDTH, initial_indent=inside, subsequent_indent=below),
        *fix.wrap(f"fix: {finding.fix}"),
        "",
    ]


def _named(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return ", ".join(names[:MAX_NAMES]) + more


def as_json(report: CheckReport) -> str:
    """Return the JSON object that docs/recording-format.md describes."""
    document = {
        "format_version": 2,
        "subjects": report.subjects,
        "failed": report.failed,
        "findings": [vars(finding) for finding in report.findings],
        "unknown": [{"id": rule, "why": why} for rule, why in report.unknown],
        "passed": report.passed,
    }
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
