"""Renders a report as text of 100 columns, Markdown, CSV and JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from loadprint import numbers
from loadprint.commands.qualify.qualify_report import CellReport, LevelLine, Qualification
from loadprint.rendering import escape
from loadprint.rendering.printout import WIDTH, as_csv, as_json, grid, labelled, pipes, wrapped

HEADS = ("", "", "baseline", "candidate", "ratio", "bounds", "limit", "verdict")
MAX_LISTED = 12
LABEL = 11  # characters of a label, with the blanks that follow it
CSV_HEADS = (
    *("cell", "threads", "load", "row", "unit", "better", "tolerance", "baseline", "candidate"),
    *("ratio", "low", "high", "limit", "verdict", "more", "reason"),
)


def text(report: Qualification) -> str:
    """Return the report for a terminal; its last line is the verdict with its reason."""
    lines = labelled(facts(report), least=LABEL)
    heads, *aligned = _aligned([HEADS, *(texts for cell in report.cells for texts, _ in rows(cell))])
    below_heads = iter(aligned)
    for cell in report.cells:
        lines += ["", cell.title, heads]
        for _, reason in rows(cell):
            lines += [next(below_heads), *wrapped(reason, " " * 6, " " * 6)]
        for void in why_void(cell):
            lines += wrapped(void, "  undecided: ", " " * 16)
        for line in below(cell):
            lines += wrapped(line, "  ")
    lines += ["", *(line for sentence in report.method for line in wrapped(sentence, rest="")), ""]
    last = conclusion(report)
    if len(report.reasons) > 1 or len(last) > WIDTH:
        lines += (line for reason in report.reasons for line in wrapped(reason, "- "))
    lines.append(textwrap.shorten(last, WIDTH, placeholder=" …", break_on_hyphens=False))
    return "\n".join(lines) + "\n"


def _aligned(texts: Sequence[Sequence[str]]) -> list[str]:
    """The lines of all cells, with the same columns; the verdict is to the left, as label and unit are."""
    for gap in ("  ", " "):
        columns = grid([row[:-1] for row in texts], 2, gap)
        lines = [f"{line}{gap}{row[-1]}" for line, row in zip(columns, texts, strict=True)]
        if max(map(len, lines)) <= WIDTH:
            break
    return list(map(str.rstrip, lines))


def markdown(report: Qualification) -> str:
    """Return the report as Markdown."""
    lines = [f"- **{label}** {escape.markdown(fact)}" for label, fact in facts(report)]
    for cell in report.cells:
        heads, _, *table = pipes((*HEADS, "why"), ((*texts, why) for texts, why in rows(cell)), left=0)
        rule = "| --- " * (len(HEADS) + 1) + "|"
        lines += ["", f"### {escape.markdown(cell.title)}", "", heads, rule, *table]
        lines += ["", *(f"- undecided: {escape.markdown(void)}" for void in why_void(cell))]
        lines += [f"- {escape.markdown(line)}" for line in below(cell)]
    lines += ["", *(f"{escape.markdown(sentence)}  " for sentence in report.method), ""]
    lines += [f"- {escape.markdown(reason)}" for reason in report.reasons]
    return "\n".join([*lines, "", f"**{report.verdict}**"]) + "\n"


def comma_separated(report: Qualification) -> str:
    """Return one line for each row and cell, in base units."""
    lines: list[Sequence[object]] = [CSV_HEADS]
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
            lines.append([values[head] for head in CSV_HEADS])
    return as_csv(lines)


def to_json(report: Qualification) -> str:
    """Return the whole report, with its exit status."""
    return as_json(report, format_version=1, status=report.status)


RENDERERS = {"text": text, "markdown": markdown, "csv": comma_separated, "json": to_json}


def facts(report: Qualification) -> Iterator[tuple[str, str]]:
    """Yield what is compared, as (label, text)."""
    about = "the type of instance" if report.about == "type" else "these instances"
    yield "judged", f"{about}, every bound at {100 * report.confidence:g} %"
    for name, executions, machines in report.parties:
        hosts = ", ".join(
            f"{machine.name}{f' ({machine.kind})' if machine.kind else ''}, "
            f"{machine.runs} run{'' if machine.runs == 1 else 's'}"
            for machine in machines
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
                low, high = (numbers.single(bound * line.factor) for bound in (figure.low, figure.high))
                yield f"{name}: {line.label} between {low} and {high} {line.shown}"
    yield from cell.notes


def conclusion(report: Qualification) -> str:
    """Return the verdict and its reason, in one line."""
    more = len(report.reasons) - 1
    return f"{report.verdict}: {report.reasons[0]}{f' (and {more} more)' if more > 0 else ''}"


def _differences(differences: tuple[tuple[str, str, str], ...]) -> str:
    return numbers.listed([f"{name} {old} | {new}" for name, old, new in differences], MAX_LISTED, "; ")


def _level(level: LevelLine) -> Iterator[str]:
    if level.burst is None or level.sustained is None:
        yield f"{level.party}: burst and sustained level are not known: no throughput by seconds without gaps"
        return
    yield (
        f"{level.party}: burst {numbers.single(level.burst)}/s (best {level.burst_s} s), sustained "
        f"{numbers.single(level.sustained)}/s ({numbers.ratio(level.sustained / level.burst)} of it), "
        f"windows of {level.seconds:.0f} s"
    )
    for fall in level.exhausted:
        yield (
            f"{level.party}: {fall.run} fell after {fall.second} s, from {numbers.single(fall.before)}/s to "
            f"{numbers.single(fall.after)}/s, and did not recover: possibly an exhausted credit"
        )
