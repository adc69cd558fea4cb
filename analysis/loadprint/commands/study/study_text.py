"""Renders a study's claims as text, Markdown or JSON."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

from loadprint.commands.study.judgements import DIFFERS, HOLDS, INCONCLUSIVE, NOT_COMPARABLE, Judged
from loadprint.commands.study.study import Finding, Report
from loadprint.commands.study.study_file import Study

WIDTH = 100
INDENT = 16
ANSWERS = (HOLDS, DIFFERS, INCONCLUSIVE, NOT_COMPARABLE)


def text(report: Report) -> str:
    """Return the claims, each with its published and its measured figure, in 100 columns."""
    lines = [f"{report.name}: {report.study.title}", *_wrapped(f"source: {report.study.source}", 2)]
    for label, fact in report.facts:
        lines += _wrapped(f"{label}: {fact}", 2)
    missing = [each for each in report.findings if each.judged.needs]
    for finding in report.findings:
        lines += [] if finding in missing else ["", *_block(finding)]
    counts = Counter(each.judged.needs for each in missing)
    lines += [""] if counts else []
    for needs, count in counts.items():
        lines.append(f"{count} more {'claim needs' if count == 1 else 'claims need'} {needs}")
    return "\n".join([*lines, "", summary(report)]) + "\n"


def as_json(report: Report) -> str:
    """Return one JSON object."""
    value = {
        "format_version": 1,
        "study": report.name,
        "title": report.study.title,
        "source": report.study.source,
        "executions": dict(report.facts),
        "claims": [
            {
                **each.claim.model_dump(mode="json", exclude={"explain"}),
                **asdict(each.judged),
                "explanation": each.explanation,
            }
            for each in report.findings
        ],
    }
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def listed(studies: Sequence[tuple[str, Study]]) -> str:
    """Return every claim of every study, one or two lines each."""
    lines = []
    for name, study in studies:
        lines += [f"{name}: {study.title}"]
        for claim in study.claims:
            figure = f"{claim.place}: {claim.published}; {claim.source or 'published figures'}"
            lines += _wrapped(f"{claim.id:<26}{claim.text} ({figure})", 2, 28)
        lines.append("")
    count = sum(len(study.claims) for _, study in studies)
    return "\n".join([*lines, f"{count} claims in {len(studies)} studies"]) + "\n"


def summary(report: Report) -> str:
    """Return the number of claims by verdict."""
    counts = Counter(each.judged.answer for each in report.findings)
    texts = [f"{counts[answer]} {answer}" for answer in ANSWERS if counts[answer]]
    return f"{len(report.findings)} claims: {', '.join(texts)}"


def reason(judged: Judged) -> str:
    """Return why a claim has no other verdict, and the repeats that would decide it."""
    texts = [judged.reason]
    if judged.more:
        texts.append(f"{judged.more} more repeat{'s' if judged.more > 1 else ''} per side would decide it")
    return "; ".join(each for each in texts if each)


def _block(finding: Finding) -> list[str]:
    claim, judged = finding.claim, finding.judged
    lines = _wrapped(f"{judged.answer:<{INDENT}}{claim.text}", 0, INDENT)
    lines += _wrapped(f"published: {claim.published} ({claim.place})", INDENT)
    if judged.measured:
        repeats = f", {judged.repeats} repeat{'s' if judged.repeats > 1 else ''}" if judged.repeats else ""
        factor = "".join(f"; {part}" for part in (judged.size, judged.size_answer) if part)
        how = "measured" if judged.repeats else "computed"
        lines += _wrapped(f"{how}: {judged.measured}{repeats}{factor}", INDENT)
    for more in (reason(judged), finding.explanation):
        lines += _wrapped(more, INDENT) if more else []
    return lines


def _wrapped(words: str, indent: int, hanging: int | None = None) -> list[str]:
    first, rest = " " * indent, " " * (indent if hanging is None else hanging)
    return textwrap.wrap(words, WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)
