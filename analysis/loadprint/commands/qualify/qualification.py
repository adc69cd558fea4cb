"""Judges a candidate against a baseline: measures and judges every cell, and gives one verdict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from loadprint import numbers
from loadprint.commands.qualify import cell, parties
from loadprint.commands.qualify.measure import Reader, Sheet, observe
from loadprint.commands.qualify.non_inferiority import FAIL, MIN_FREEDOM, PASS, UNDECIDED, Verdict
from loadprint.commands.qualify.parties import Party
from loadprint.commands.qualify.party_differences import configuration
from loadprint.commands.qualify.qualify_report import CellReport, Machine, Qualification
from loadprint.commands.qualify.spec import Spec
from loadprint.reading.instances import Instance, instances

MIN_INSTANCES = MIN_FREEDOM + 1
NAMES = ("baseline", "candidate")
Differences = tuple[tuple[str, str, str], ...]


def qualify(
    baseline: Sequence[str], candidate: Sequence[str], spec: Spec, reader: Reader | None = None
) -> Qualification:
    """Judge the candidate against the baseline. Raises InputError if one of them is unusable.

    A `reader` that is given again does not measure its runs again.
    """
    reader = reader or Reader()
    both = [parties.party(words, spec) for words in (baseline, candidate)]
    matched, only_old, only_new = parties.cells(*both)
    machines = [
        instances([run for part in party.parts.values() for run in part.runs], spec.instances_by)
        for party in both
    ]
    counts = [len(machine) for machine in machines]
    group = max(counts) > 1 if spec.about == "auto" else spec.about == "type"
    by_type = group and min(counts) >= MIN_INSTANCES
    sheets = [observe(name, parts, spec, reader) for name, *parts in matched]
    settings = [configuration(sheet, spec.accept) for sheet in sheets]
    cells = [
        cell.report(sheet, setting, spec, by_type=by_type)
        for sheet, setting in zip(sheets, settings, strict=True)
    ]
    type_unknown = (
        f"no verdict about the type: {counts[0]} baseline and {counts[1]} candidate instances, "
        "three or more per side needed"
        if min(counts) < MIN_INSTANCES
        else ""
    )
    gaps = list(_gaps(sheets, cells, spec))
    gaps += [f"the candidate has no side {', '.join(only_old)}"] if only_old else []
    verdict, reasons = _verdict(cells, gaps, type_unknown if group else "")
    return Qualification(
        about="type" if group else "instances",
        confidence=spec.confidence,
        parties=tuple(
            (
                name,
                party.executions,
                tuple(
                    Machine(machine.name, machine.kind, len(machine.places), machine.boots)
                    for machine in its_machines
                ),
            )
            for name, party, its_machines in zip(NAMES, both, machines, strict=True)
        ),
        subject=_union([setting.hardware for setting in settings]),
        configuration=_union([setting.invalidating for setting in settings]),
        accepted=_union([setting.accepted for setting in settings]),
        cells=tuple(cells),
        notes=tuple(_notes(both, only_new, machines, "" if group else type_unknown)),
        method=tuple(_method(spec, by_type=by_type)),
        verdict=verdict,
        reasons=tuple(reasons),
    )


def _verdict(
    cells: Sequence[CellReport], gaps: Sequence[str], type_unknown: str
) -> tuple[Verdict, list[str]]:
    """Return pass if all rows pass, fail if one fails, else undecided, with the reasons."""
    judged = [(cell, line) for cell in cells for line in cell.lines if line.verdict]
    failed = [f"{cell.name}: {line.label}" for cell, line in judged if line.verdict == FAIL]
    if type_unknown:
        passed = judged and not gaps and all(line.verdict == PASS for _, line in judged)
        verdict = FAIL if failed else PASS if passed else UNDECIDED
        return UNDECIDED, [type_unknown, f"these instances themselves: {verdict}", *gaps]
    if failed:
        return FAIL, [f"beyond the tolerance: {row}" for row in failed]
    reasons = [
        f"{cell.name}: {', '.join(dict.fromkeys(word for word, _ in cell.voids))}"
        for cell in cells
        if cell.voids
    ]
    reasons += _grouped(
        (line.reason, f"{cell.name}: {line.label}")
        for cell, line in judged
        if line.verdict == UNDECIDED and not cell.voids
    )
    reasons += gaps
    if reasons or not judged:
        return UNDECIDED, reasons or ["no row of the specification was judged"]
    better = sum(line.is_better for _, line in judged)
    if len(judged) == 1:
        return PASS, [f"the one row is within its tolerance{', better than the baseline' if better else ''}"]
    reason = f"all {len(judged)} rows are within their tolerances"
    return PASS, [f"{reason}, {better} of them better than the baseline" if better else reason]


def _grouped(reasons: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield each reason once, with its first row and the number of further rows."""
    rows_by_reason: dict[str, list[str]] = {}
    for reason, row in reasons:
        rows_by_reason.setdefault(reason, []).append(row)
    for reason, rows in rows_by_reason.items():
        yield f"{numbers.listed(rows, 1)}: {reason}"


def _gaps(sheets: Sequence[Sheet], cells: Sequence[CellReport], spec: Spec) -> Iterator[str]:
    """Yield requirements that no recording meets: concurrencies, and rows of another load."""
    families: dict[str, set[int]] = {}
    for sheet, cell_report in zip(sheets, cells, strict=True):
        if cell_report.load == "saturation" and cell_report.threads is not None:
            plan = sheet.candidate.part.plan
            rest = {key: value for key, value in plan.cell.items() if key != "threads"}
            name = " ".join(map(str, (plan.of or sheet.name, *rest.values())))
            families.setdefault(name, set()).add(cell_report.threads)
    for name, threads in families.items():
        if len(threads) < spec.concurrencies:
            only = ", ".join(map(str, sorted(threads)))
            yield (
                f"{name}: run at {only} threads only, {spec.concurrencies} concurrencies required "
                "(sides that differ in threads, or `concurrencies: 1`)"
            )
    loads = {cell_report.load for cell_report in cells}
    for key, row_spec in spec.rows.items():
        at = row_spec.judged_at(key)
        if at not in ("any", *loads):
            yield f"{key}: judged at {at}, and no side was run at it"


def _notes(
    both: Sequence[Party],
    only_new: Sequence[str],
    machines: Sequence[Sequence[Instance]],
    type_unknown: str,
) -> Iterator[str]:
    if only_new:
        yield f"only the candidate has {', '.join(only_new)}: not judged"
    for name, party, its_machines in zip(NAMES, both, machines, strict=True):
        for side, why in party.missing:
            yield f"{name}: {side}: {why}"
        for machine in its_machines:
            if machine.boots > 1:
                yield f"{name}: {machine.name} was booted {machine.boots} times: counted as one instance"
    if type_unknown:
        yield type_unknown
    shared = {machine.name for machine in machines[0]} & {machine.name for machine in machines[1]}
    if shared:
        names = ", ".join(sorted(shared))
        yield f"both have a host named {names}: if it is one machine, no hardware is compared"
    recorded = [{run.path.resolve() for part in party.parts.values() for run in part.runs} for party in both]
    if recorded[0] & recorded[1]:
        yield "baseline and candidate share recordings: this shows only the width of the bounds"


def _union(by_cell: Sequence[Differences]) -> Differences:
    return tuple(dict.fromkeys(difference for differences in by_cell for difference in differences))


def _method(spec: Spec, *, by_type: bool) -> Iterator[str]:
    level = f"{100 * spec.confidence:g} %"
    unit = "instances (mean of logs of each)" if by_type else "runs (variance within their instance)"
    yield (
        f"ratio: candidate / baseline, of geometric means over {unit}; bounds: one-sided, {level} each, "
        "Welch's t."
    )
    yield (
        "pass: the bound on the worse side is within the limit; fail: the whole interval is outside the "
        "limit. All rows must pass, so that their number needs no correction (intersection-union)."
    )
    yield (
        "operations are judged at the sustained level: after the last lasting step down of throughput, else "
        "over the second half of the window; all other rows over the whole window."
    )
