"""Formats the parts of a report as texts, for the text and Markdown renderers."""

from __future__ import annotations

from collections.abc import Iterator

from loadprint import numbers
from loadprint.commands.qualify.qualify_report import CellReport, Figure, LevelLine, Line, Report

HEADS = ("", "", "baseline", "candidate", "ratio", "bounds", "limit", "verdict")
MAX_LISTED = 12


def facts(report: Report) -> Iterator[tuple[str, str]]:
    """Yield what is compared, as (label, text)."""
    about = "the type of instance" if report.about == "type" else "these instances"
    yield "judged", f"{about}, every bound at {100 * report.confidence:g} %"
    for name, executions, machines in report.parties:
        hosts = ", ".join(
            f"{each.name}{f' ({each.kind})' if each.kind else ''}, {_count(each.runs, 'run')}"
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
        places = _places(line)
        yield (
            [
                line.label,
                line.shown,
                _value(line, line.baseline, places),
                _value(line, line.candidate, places),
                "" if line.ratio is None else numbers.ratio(line.ratio),
                _bounds(line.low, line.high),
                _limit(line),
                _verdict(line),
            ],
            line.reason,
        )


def voids(cell: CellReport) -> list[str]:
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
        if line.key == "operations_per_currency":
            for name, figure in (("baseline", line.baseline), ("candidate", line.candidate)):
                if figure.low is not None and figure.high is not None:
                    low, high = (_rate(bound * line.factor) for bound in (figure.low, figure.high))
                    yield f"{name}: {line.label} between {low} and {high} {line.shown}"
    yield from cell.notes


def last(report: Report) -> str:
    """Return the verdict and its reason, in one line."""
    more = len(report.reasons) - 1
    return f"{report.verdict}: {report.reasons[0]}{f' (and {more} more)' if more > 0 else ''}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _differences(differences: tuple[tuple[str, str, str], ...]) -> str:
    text = "; ".join(f"{name} {old} | {new}" for name, old, new in differences[:MAX_LISTED])
    more = len(differences) - MAX_LISTED
    return f"{text}; and {more} more" if more > 0 else text


def _places(line: Line) -> int:
    known = [figure.value for figure in (line.baseline, line.candidate)]
    return numbers.decimals(value * line.factor for value in known if value is not None)


def _value(line: Line, figure: Figure, places: int) -> str:
    return "n/a" if figure.value is None else numbers.number(figure.value * line.factor, places)


def _bounds(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"[{numbers.ratio(low)}, {numbers.ratio(high)}]"


def _limit(line: Line) -> str:
    if line.limit is None or line.tolerance is None:
        return ""
    return f"{'≥' if line.better == 'higher' else '≤'}{numbers.ratio(line.limit)}"


def _verdict(line: Line) -> str:
    return f"{line.verdict}, better" if line.verdict == "pass" and line.is_better else line.verdict


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
