"""Renders a study as a page of Markdown: verdicts, figures, what differs and why, how it was measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from loadprint.commands.study.campaign_claims import RatioClaim
from loadprint.commands.study.claim_verdicts import ClaimVerdict
from loadprint.commands.study.study import JudgedClaim, StudyReport
from loadprint.commands.study.study_file import CHECK, Claim
from loadprint.commands.study.study_text import by_kind, reason, shown_answer, summary
from loadprint.judging.facts_host import described
from loadprint.plotting import style
from loadprint.rendering.escape import markdown as escaped


def figures(report: StudyReport, page: Path) -> tuple[tuple[str, str], ...]:
    """Write each figure that has its execution as PAGE-N.svg, and return its title and its file's name."""
    rules = {
        (claim.campaign or "", claim.id): claim.judge
        for claim in report.study.claims
        if isinstance(claim.judge, RatioClaim) and claim.kind != CHECK
    }
    written = []
    with style.styled():
        for number, figure in enumerate(report.study.figures, start=1):
            seen: Any = report.sources.get(figure.experiment if figure.kind == "windows" else figure.campaign)
            if seen is not None:
                file = page.with_name(f"{page.stem}-{number}.svg")
                title = f"{figure.title} ({CHECK})" if report.study.stand_in else figure.title
                style.save(figure.model_copy(update={"title": title}).draw(seen, rules), file)
                written.append((title, file.name))
    return tuple(written)


def page(report: StudyReport, figures: Sequence[tuple[str, str]] = ()) -> str:
    """Return the page; `figures` are the title and the file of each."""
    study = report.study
    lines = [f"# {escaped(study.title)}", ""]
    lines += [escaped(study.stand_in), ""] if study.stand_in else []
    lines += [f"Source: {escaped(study.source)}.", ""]
    lines += [*(f"- {sentence}" for sentence in summary(report)), ""]
    for title, file in figures:
        lines += [f"![{escaped(title)}]({file})", ""]
    for kind, findings in by_kind(report.findings).items():
        lines += [f"## Claims: {kind}", ""]
        lines += ["| claim | published | measured | direction | size |", "|---|---|---|---|---|"]
        lines += [*map(_row, findings), ""]
    reasons = list(_reasons(report.findings))
    lines += ["## Why", "", *reasons, ""] if reasons else []
    notes = [f"- {escaped(note.rstrip('.'))}." for note in study.notes]
    lines += ["## What the publication leaves open", "", *notes, ""] if notes else []
    lines += ["## How it was measured", "", *_measured(report)]
    return "\n".join(lines) + "\n"


def _row(finding: JudgedClaim) -> str:
    claim, judged = finding.claim, finding.judged
    cells = (f"{claim.text} ({claim.place})", claim.published, judged.measured or "–")
    verdicts = (_cell(claim, judged.direction), _cell(claim, judged.size))
    return f"| {' | '.join((*map(escaped, cells), *verdicts))} |"


def _cell(claim: Claim, verdict: ClaimVerdict | None) -> str:
    if verdict is None:
        return "–"
    answer = shown_answer(claim, verdict.answer)
    shown = answer if verdict.answer == "holds" else f"**{answer}**"
    return f"{shown}: {escaped(verdict.figure)}" if verdict.figure else shown


def _reasons(findings: Sequence[JudgedClaim]) -> Iterator[str]:
    """Explanations of verdicts, and reasons; claims with the same ones share a line."""
    by_reason: dict[str, list[str]] = {}
    for finding in findings:
        because: dict[str, list[str]] = {}
        for name, verdict in (("direction", finding.judged.direction), ("size", finding.judged.size)):
            if verdict is not None and (why := reason(finding.judged, verdict)):
                answer = shown_answer(finding.claim, verdict.answer)
                because.setdefault(f"{answer}: {why}", []).append(name)
        one = len(finding.judged.verdicts) == 1
        texts = [finding.explanation]
        texts += [why if one else f"{' and '.join(names)} {why}" for why, names in because.items()]
        if why := "; ".join(text.rstrip(".") for text in texts if text):
            by_reason.setdefault(why, []).append(f"*{escaped(finding.claim.text)}*")
    yield from (f"- {'; '.join(claims)} – {escaped(why)}." for why, claims in by_reason.items())


def _measured(report: StudyReport) -> list[str]:
    if not report.sources:
        return ["Nothing was measured for this page."]
    lines = [f"- `{seen.command}`: {escaped(seen.amount)}" for seen in report.sources.values()]
    machines = dict.fromkeys(described(seen.fingerprint) for seen in report.sources.values())
    lines += [f"- No verdict: {escaped(void)}" for void in report.voids]
    lines += [f"- Machine: {escaped(machine)}" for machine in machines]
    lines += ["- Figures are means over repeats; `[low, high]` is the 95 % interval of each figure alone."]
    return lines
