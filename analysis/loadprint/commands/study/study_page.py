"""Renders a study as a page of Markdown: verdicts, figures, what differs and why, how it was measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from loadprint.commands.study.judgements import HOLDS
from loadprint.commands.study.study import Finding, Report
from loadprint.commands.study.study_text import reason, summary
from loadprint.rendering.escape import markdown as escaped


def page(report: Report, figures: Sequence[tuple[str, str]] = ()) -> str:
    """Return the page; `figures` are the title and the file of each."""
    lines = [f"# {escaped(report.study.title)}", "", f"Source: {escaped(report.study.source)}.", ""]
    lines += [f"**{summary(report)}.**", ""]
    for title, file in figures:
        lines += [f"![{escaped(title)}]({file})", ""]
    lines += ["| claim | published | measured | verdict |", "|---|---|---|---|"]
    lines += [_row(each) for each in report.findings]
    reasons = list(_reasons(report.findings))
    lines += ["", "## Why", "", *reasons] if reasons else []
    lines += ["", "## How it was measured", "", *_measured(report)]
    return "\n".join(lines) + "\n"


def _row(each: Finding) -> str:
    judged = each.judged
    parts = (judged.measured, judged.size, judged.size_answer if judged.size_judged else "")
    measured = "; ".join(part for part in parts if part)
    cells = (f"{each.claim.text} ({each.claim.place})", each.claim.published, measured or "–")
    shown = judged.answer if judged.answer == HOLDS else f"**{judged.answer}**"
    return f"| {' | '.join(map(escaped, cells))} | {shown} |"


def _reasons(findings: Sequence[Finding]) -> Iterator[str]:
    """Explanations of verdicts, and reasons; claims with the same ones share a line."""
    listed: dict[tuple[str, str], list[str]] = {}
    for each in findings:
        texts = [text.rstrip(".") for text in (each.explanation, reason(each.judged)) if text]
        if texts or each.judged.answer != HOLDS:
            why = "; ".join(texts) or "the interval supports the opposite"
            listed.setdefault((each.judged.answer, why), []).append(f"*{escaped(each.claim.text)}*")
    for (answer, why), claims in listed.items():
        yield f"- {'; '.join(claims)} – {answer}: {escaped(why)}."
    lacking = dict.fromkeys(each.judged.size_answer for each in findings if not each.judged.size_judged)
    yield from (f"- Sizes of ratios are {escaped(each)}." for each in lacking)


def _measured(report: Report) -> list[str]:
    if not report.known:
        return ["Nothing was measured for this page."]
    lines = [f"- `{seen.command}`: {escaped(seen.amount)}" for seen in report.known.values()]
    machines = dict.fromkeys(seen.machine for seen in report.known.values())
    lines += [f"- Machine: {escaped(each)}" for each in machines]
    lines += ["- Figures are means over repeats; `[low, high]` is the 95 % interval."]
    return lines
