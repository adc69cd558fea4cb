"""Renders a report as text of 100 columns, Markdown, CSV and JSON."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import asdict
from json import dumps

from loadprint import numbers
from loadprint.commands.qualify.qualify_report import CellReport, LevelLine, Qualification
from loadprint.rendering import escape

HEADS = ("", "", "baseline", "candidate", "ratio", "bounds", "limit", "verdict")
MAX_LISTED = 12
WIDTH = 100
GAP = 2
LEFT = 2  # label and unit; numbers are to the right
CSV_HEADS = (
    *("cell", "threads", "load", "row", "unit", "better", "tolerance", "baseline", "candidate"),
    *("ratio", "low", "high", "limit", "verdict", "more", "reason"),
)


def text(report: Qualification) -> str:
    """Return the report for a terminal; its last line is the verdict with its reason."""
    lines: list[str] = []
    for label, fact in facts(report):
        lines += _wrapped(fact, f"{label:<11}")
    widths = _widths(report)
    for cell in report.cells:
        lines += ["", cell.title, *_table(cell, widths)]
        for void in why_void(cell):
            lines += _wrapped(void, "  inconclusive: ")
        for line in below(cell):
            lines += _wrapped(line, "  ")
    lines.append("")
    for sentence in report.method:
        lines += _wrapped(sentence, "")
    lines.append("")
    last = conclusion(report)
    if len(report.reasons) > 1 or len(last) > WIDTH:
        for reason in report.reasons:
            lines += _wrapped(reason, "- ")
    lines.append(textwrap.shorten(last, WIDTH, placeholder=" …", break_on_hyphens=False))
    return "\n".join(lines) + "\n"


def markdown(report: Qualification) -> str:
    """Return the report as Markdown."""
    lines = [f"- **{label}** {escape.markdown(fact)}" for label, fact in facts(report)]
    for cell in report.cells:
        lines += [
            "",
            f"### {escape.markdown(cell.title)}",
            "",
            _pipes([*HEADS, "why"]),
            _pipes(["---"] * 9),
        ]
        lines += [_pipes([*texts, why]) for texts, why in rows(cell)]
        lines += ["", *(f"- inconclusive: {escape.markdown(void)}" for void in why_void(cell))]
        lines += [f"- {escape.markdown(line)}" for line in below(cell)]
    lines += ["", *(f"{escape.markdown(sentence)}  " for sentence in report.method), ""]
    lines += [f"- {escape.markdown(reason)}" for reason in report.reasons]
    return "\n".join([*lines, "", f"**{report.verdict}**"]) + "\n"


def comma_separated(report: Qualification) -> str:
    """Return one line for each row and cell, in base units."""
    out = io.StringIO()
    writer = escape.CsvWriter(out)
    writer.writerow(CSV_HEADS)
    for cell in report.cells:
        for line in cell.lines:
            values = vars(line) | {
                "cell": cell.name,
                "threads": cell.threads,
                "load": cell.load,
                "row": line.key,
                "baseline": line.baseline.value,
                "candidate": line.candidate.value,
                "reason": line.reason or "; ".join(why_void(cell)),
            }
            writer.writerow(values[head] for head in CSV_HEADS)
    return out.getvalue()


def as_json(report: Qualification) -> str:
    """Return the whole report, with its exit status."""
    plain = {"format_version": 1, "status": report.status, **asdict(report)}
    return dumps(plain, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


RENDERERS: dict[str, Callable[[Qualification], str]] = {
    "text": text,
    "markdown": markdown,
    "csv": comma_separated,
    "json": as_json,
}


def _wrapped(text: str, head: str) -> list[str]:
    lines = textwrap.wrap(
        text.replace(" %", "\N{NO-BREAK SPACE}%"),
        WIDTH,
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines]


def _widths(report: Qualification) -> list[int]:
    """Return the width of every column, over all cells."""
    texts = [
        list(HEADS),
        *(row for cell in report.cells for row, _ in rows(cell)),
    ]
    return [max(len(row[place]) for row in texts) for place in range(len(HEADS))]


def _table(cell: CellReport, widths: list[int]) -> Iterator[str]:
    yield _line(list(HEADS), widths)
    for row, reason in rows(cell):
        yield _line(row, widths)
        if reason:
            yield from _wrapped(reason, " " * 6)


def _line(row: list[str], widths: list[int]) -> str:
    last = len(row) - 1
    cells = [
        each.ljust(width) if place < LEFT or place == last else each.rjust(width)
        for place, (each, width) in enumerate(zip(row, widths, strict=True))
    ]
    gap = " " * (GAP if sum(widths) + GAP * last <= WIDTH else 1)
    return gap.join(cells).rstrip()


def _pipes(cells: list[str]) -> str:
    return f"| {' | '.join(map(escape.markdown, cells))} |"


def facts(report: Qualification) -> Iterator[tuple[str, str]]:
    """Yield what is compared, as (label, text)."""
    about = "the type of instance" if report.about == "type" else "these instances"
    yield "judged", f"{about}, every bound at {100 * report.confidence:g} %"
    for name, executions, machines in report.parties:
        hosts = ", ".join(
            f"{each.name}{f' ({each.kind})' if each.kind else ''}, "
            f"{each.runs} run{'' if each.runs == 1 else 's'}"
            for each in machines
        )
        yield name, f"{' '.join(executions)}: {hosts}"
    yield "hardware", _differences(report.subject) or "no difference recorded"
    yield "differs", _differences(report.configuration) or "no material difference in the configuration"
    if report.accepted:
        yield "accepted", _differences(report.accepted)
    for note in report.notes:
        yield "note", note


def rows(cell: CellReport) -> Iterator[tuple[list[str], str]]:
    """Yield every line of a cell: its texts in the order of HEADS, and the reason below it."""
    for line in cell.lines:
        figures = [figure.value for figure in (line.baseline, line.candidate)]
        scaled = [None if value is None else value * line.factor for value in figures]
        places = numbers.decimals(value for value in scaled if value is not None)
        values = ["n/a" if value is None else numbers.number(value, places) for value in scaled]
        ratio = "" if line.ratio is None else numbers.ratio(line.ratio)
        bounds = limit = ""
        if line.low is not None and line.high is not None:
            bounds = f"[{numbers.ratio(line.low)}, {numbers.ratio(line.high)}]"
        if line.limit is not None and line.tolerance is not None:
            limit = f"{'≥' if line.better == 'higher' else '≤'}{numbers.ratio(line.limit)}"
        verdict = f"{line.verdict}, better" if line.verdict == "pass" and line.is_better else line.verdict
        yield [line.label, line.shown, *values, ratio, bounds, limit, verdict], line.reason


def why_void(cell: CellReport) -> list[str]:
    """Return the reasons why no row of a cell has a verdict."""
    return [void if word in void else f"{word}: {void}" for word, void in cell.voids]


def below(cell: CellReport) -> Iterator[str]:
    """Yield the lines below the rows of a cell: levels, steps down, price, missing runs."""
    for level in cell.levels:
        yield from _level(level)
    for line in cell.lines:
        for name, figure in (("baseline", line.baseline), ("candidate", line.candidate)):
            if figure.of_ceiling is not None:
                yield f"{name}: {line.label} at {100 * figure.of_ceiling:.0f} % of the measured ceiling"
            if line.key == "operations_per_currency" and figure.low is not None and figure.high is not None:
                low, high = (_rate(bound * line.factor) for bound in (figure.low, figure.high))
                yield f"{name}: {line.label} between {low} and {high} {line.shown}"
    yield from cell.notes


def conclusion(report: Qualification) -> str:
    """Return the verdict and its reason, in one line."""
    more = len(report.reasons) - 1
    return f"{report.verdict}: {report.reasons[0]}{f' (and {more} more)' if more > 0 else ''}"


def _differences(differences: tuple[tuple[str, str, str], ...]) -> str:
    text = "; ".join(f"{name} {old} | {new}" for name, old, new in differences[:MAX_LISTED])
    more = len(differences) - MAX_LISTED
    return f"{text}; and {more} more" if more > 0 else text


def _level(level: LevelLine) -> Iterator[str]:
    if level.burst is None or level.sustained is None:
        yield f"{level.party}: burst and sustained level are not known: no throughput by seconds"
        return
    yield (
        f"{level.party}: burst {_rate(level.burst)}/s (best {level.burst_s} s), sustained "
        f"{_rate(level.sustained)}/s ({numbers.ratio(level.sustained / level.burst)} of it), "
        f"windows of {level.seconds:.0f} s"
    )
    for each in level.exhausted:
        yield (
            f"{level.party}: {each.run} fell after {each.second} s, from {_rate(each.before)}/s to "
            f"{_rate(each.after)}/s, and did not recover: possibly an exhausted credit"
        )


def _rate(value: float) -> str:
    return numbers.number(value, numbers.decimals([value]))
