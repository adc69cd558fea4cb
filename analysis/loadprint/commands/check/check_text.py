"""A check's report as text or JSON; lays out, decides nothing."""

from __future__ import annotations

import json
import textwrap
from dataclasses import asdict

from loadprint.commands.check.check_report import Finding, Report

WIDTH = 100
MOST_NAMED = 4


def text(report: Report) -> str:
    """Return the report for people: findings, then what cannot be told, then how many rules are well."""
    lines = [f"checked: {_named(report.subjects)}", ""]
    for finding in report.findings:
        lines += _finding(finding, len(report.subjects))
    if not report.findings:
        lines += ["no mistake found", ""]
    if report.unknown:
        lines.append("cannot tell:")
        reasons: dict[str, list[str]] = {}
        for rule, reason in report.unknown:
            reasons.setdefault(reason, []).append(rule)
        for reason, rules in reasons.items():
            lines += textwrap.wrap(
                f"{', '.join(rules)}: {reason}", WIDTH, initial_indent="  ", subsequent_indent="    "
            )
        lines.append("")
    counts = [
        f"{sum(1 for each in report.findings if each.severity == severity)} {verb}"
        for severity, verb in (("ruins", "ruin results"), ("distorts", "distort them"), ("note", "to note"))
    ]
    lines.append(
        f"{', '.join(counts)}; {len(report.well)} rules are kept, {len(report.unknown)} cannot be told"
    )
    return "\n".join(lines) + "\n"


def _finding(finding: Finding, subjects: int) -> list[str]:
    of = (
        f" (in {len(finding.where)} of {subjects}: {_named(finding.where)})"
        if len(finding.where) < subjects
        else ""
    )
    head = f"{finding.severity:<9}{finding.id}: {finding.evidence}{of}"
    return [
        *textwrap.wrap(head, WIDTH, subsequent_indent=" " * 11),
        *textwrap.wrap(f"why: {finding.why}", WIDTH, initial_indent=" " * 11, subsequent_indent=" " * 16),
        *textwrap.wrap(
            f"mend: {finding.mend}",
            WIDTH,
            initial_indent=" " * 11,
            subsequent_indent=" " * 17,
            break_long_words=False,
            break_on_hyphens=False,
        ),
        "",
    ]


def _named(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def as_json(report: Report) -> str:
    """Return one JSON object."""
    told = {
        "format_version": 1,
        "subjects": report.subjects,
        "ruined": report.ruined,
        "findings": [asdict(finding) for finding in report.findings],
        "unknown": [{"id": rule, "why": why} for rule, why in report.unknown],
        "well": report.well,
    }
    return json.dumps(told, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
