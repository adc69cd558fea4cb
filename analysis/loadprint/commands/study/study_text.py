"""Renders a study's claims as text or JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

from loadprint.commands.study.claim_verdicts import ANSWERS, Answer, ClaimVerdict, Judged
from loadprint.commands.study.study import JudgedClaim, StudyReport
from loadprint.commands.study.study_file import CHECK, Claim, Study
from loadprint.rendering import printout
from loadprint.rendering.printout import wrapped

INDENT = 16
OPPOSITE = "the interval supports the opposite"
OUTSIDE = "the whole interval is beyond the limit"
OPEN = "the interval excludes neither answer"


def text(report: StudyReport) -> str:
    """Return the claims, each with its published and its measured figure, in 100 columns."""
    lines = [f"{report.name}: {report.study.title}", *_wrapped(report.study.stand_in, 2)]
    lines += _wrapped(f"source: {report.study.source}", 2)
    for name, seen in report.sources.items():
        lines += _wrapped(f"{name}: {seen.path}, {seen.amount}", 2)
    for line in report.voids:
        lines += _wrapped(f"no verdict: {line}", 2)
    missing = [finding for finding in report.findings if finding.judged.needs]
    for kind, findings in by_kind(report.findings).items():
        shown = [finding for finding in findings if finding not in missing]
        lines += ["", f"-- {kind} --"] if shown else []
        for finding in shown:
            lines += ["", *_block(finding)]
    counts = Counter(finding.judged.needs for finding in missing)
    lines += [""] if counts else []
    for needs, count in counts.items():
        lines.append(f"{count} more {'claim needs' if count == 1 else 'claims need'} {needs}")
    lines += [""] if report.study.notes else []
    for note in report.study.notes:
        lines += _wrapped(f"the publication: {note}", 0, 2)
    return (
        "\n".join([*lines, "", *(line for sentence in summary(report) for line in _wrapped(sentence, 0, 2))])
        + "\n"
    )


def as_json(report: StudyReport) -> str:
    """Return one JSON object."""
    value = {
        "study": report.name,
        "title": report.study.title,
        "source": report.study.source,
        "stand_in": report.study.stand_in,
        "notes": report.study.notes,
        "no_verdict": report.voids,
        "executions": {name: f"{seen.path}, {seen.amount}" for name, seen in report.sources.items()},
        "claims": [
            {
                **finding.claim.model_dump(mode="json", exclude={"explain", "basis"}),
                "basis": finding.claim.kind,
                **asdict(finding.judged),
                "explanation": finding.explanation,
            }
            for finding in report.findings
        ],
    }
    return printout.as_json(value, format_version=2)


def overview(studies: Sequence[tuple[str, Study]]) -> str:
    """Return every claim of every study, one or two lines each."""
    lines = []
    for name, study in studies:
        lines += [f"{name}: {study.title}"]
        for claim in study.claims:
            source = ", ".join(claim.sources) or claim.kind
            figure = f"{claim.place}: {claim.published}; {source}"
            lines += _wrapped(f"{claim.id:<26}{claim.text} ({figure})", 2, 28)
        lines.append("")
    count = sum(len(study.claims) for _, study in studies)
    return "\n".join([*lines, f"{count} claims in {len(studies)} studies"]) + "\n"


def by_kind(findings: Sequence[JudgedClaim]) -> dict[str, list[JudgedClaim]]:
    """The claims by kind: published, our reading, computed, checks of the method."""
    kinds = dict.fromkeys(["published", *(finding.claim.kind for finding in findings)])
    groups = {kind: [finding for finding in findings if finding.claim.kind == kind] for kind in kinds}
    return {kind: of_kind for kind, of_kind in groups.items() if of_kind}


def summary(report: StudyReport) -> list[str]:
    """Return one line for each kind of claim: the number of verdicts on direction and on size."""
    lines = []
    for kind, findings in by_kind(report.findings).items():
        directions = _counted([finding.judged.direction for finding in findings])
        sizes = _counted([finding.judged.size for finding in findings])
        parts = [f"{name}: {text}" for name, text in (("direction", directions), ("size", sizes)) if text]
        lines.append(f"{len(findings)} {kind}: {'; '.join(parts)}")
    return lines


def _counted(verdicts: Sequence[ClaimVerdict | None]) -> str:
    counts = Counter(verdict.answer for verdict in verdicts if verdict is not None)
    return ", ".join(f"{counts[answer]} {answer}" for answer in ANSWERS if counts[answer])


def reason(judged: Judged, verdict: ClaimVerdict) -> str:
    """Return why a claim has no other verdict, and the repeats that would decide it."""
    texts = [verdict.reason]
    if not verdict.reason and judged.repeats:
        differs = OPPOSITE if verdict is judged.direction else OUTSIDE
        texts.append({"differs": differs, "undecided": OPEN}.get(verdict.answer, ""))
    if verdict.more:
        texts.append(f"{verdict.more} more repeat{'s' if verdict.more > 1 else ''} per side would decide it")
    return "; ".join(text for text in texts if text)


def shown_answer(claim: Claim, answer: Answer) -> str:
    """The answer, which of a check of the method is not one on the publication."""
    return f"{CHECK}: {answer}" if claim.kind == CHECK else answer


def _block(finding: JudgedClaim) -> list[str]:
    claim, judged = finding.claim, finding.judged
    answer = shown_answer(claim, judged.answer)
    head = f"{answer:<{INDENT}}" if len(answer) < INDENT else f"{answer}: "
    lines = _wrapped(f"{head}{claim.text}", 0, INDENT)
    lines += _wrapped(f"published: {claim.published} ({claim.place})", INDENT)
    if judged.measured:
        repeats = f", {judged.repeats} repeat{'s' if judged.repeats > 1 else ''}" if judged.repeats else ""
        how = "measured" if judged.repeats else "computed"
        lines += _wrapped(f"{how}: {judged.measured}{repeats}", INDENT)
    for name, verdict in (("direction", judged.direction), ("size", judged.size)):
        if verdict is not None:
            parts = (shown_answer(claim, verdict.answer), verdict.figure, reason(judged, verdict))
            lines += _wrapped(f"{name}: {'; '.join(part for part in parts if part)}", INDENT)
    return lines + _wrapped(finding.explanation, INDENT)


def _wrapped(words: str, indent: int, hanging: int | None = None) -> list[str]:
    return wrapped(words, " " * indent, " " * (indent if hanging is None else hanging))
