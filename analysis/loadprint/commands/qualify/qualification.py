"""From two parties and a specification to a Report: every cell measured and judged, then one verdict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from loadprint.commands.qualify import cell, parties
from loadprint.commands.qualify.measure import Reader, observe
from loadprint.commands.qualify.non_inferiority import CANNOT_TELL, FAIL, LEAST_FREEDOM, PASS, Verdict
from loadprint.commands.qualify.parties import Cell, Party
from loadprint.commands.qualify.party_differences import configuration
from loadprint.commands.qualify.qualify_report import CellReport, Machine, Report
from loadprint.commands.qualify.spec import Spec
from loadprint.reading.instances import Instance, instances

LEAST_INSTANCES = LEAST_FREEDOM + 1
NAMES = ("baseline", "candidate")
Differences = tuple[tuple[str, str, str], ...]


def qualify(
    baseline: Sequence[str], candidate: Sequence[str], spec: Spec, reader: Reader | None = None
) -> Report:
    """Judge the candidate against the baseline. Raises InputError where one of them cannot be used.

    A `reader` remembers the runs it has measured.
    """
    reader = reader or Reader()
    both = [parties.party(words, spec) for words in (baseline, candidate)]
    matched, only_old, only_new = parties.cells(*both)
    machines = [
        instances([run for part in party.parts.values() for run in part.runs], spec.instances_by)
        for party in both
    ]
    counts = [len(each) for each in machines]
    group = max(counts) > 1 if spec.about == "auto" else spec.about == "type"
    by_type = group and min(counts) >= LEAST_INSTANCES
    cells, settings = [], []
    for each in matched:
        sheet = observe(each, spec, reader)
        setting = configuration(each, sheet.baseline.runs, sheet.candidate.runs, spec.accept)
        settings.append(setting)
        cells.append(cell.report(sheet, setting, spec, by_type=by_type))
    type_unknown = (
        f"nothing can be said about the type: {counts[0]} | {counts[1]} instances, three a side are needed"
        if not by_type
        else ""
    )
    gaps = [*_gaps(matched, cells, spec), *_unmatched(only_old)]
    verdict, reasons = _verdict(cells, gaps, type_unknown if group else "")
    return Report(
        about="type" if group else "instances",
        confidence=spec.confidence,
        parties=tuple(
            (name, party.executions, tuple(map(_machine, own)))
            for name, party, own in zip(NAMES, both, machines, strict=True)
        ),
        subject=_union([setting.hardware for setting in settings]),
        configuration=_union([setting.spoiling for setting in settings]),
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
    """All rows must pass; one that fails decides, unless the question was about a type nobody can judge."""
    judged = [(each, line) for each in cells for line in each.lines if line.verdict]
    failed = [f"{each.name}: {line.label}" for each, line in judged if line.verdict == FAIL]
    if type_unknown:
        passed = judged and all(line.verdict == PASS for _, line in judged)
        own = f"these instances themselves: {'fail' if failed else 'pass' if passed else 'cannot tell'}"
        return CANNOT_TELL, [type_unknown, own, *gaps]
    if failed:
        return FAIL, [f"beyond the tolerance: {', '.join(failed)}"]
    reasons = [
        f"{each.name}: {', '.join(dict.fromkeys(word for word, _ in each.voids))}"
        for each in cells
        if each.voids
    ]
    reasons += _grouped(
        (line.reason, f"{each.name}: {line.label}")
        for each, line in judged
        if line.verdict == CANNOT_TELL and not each.voids
    )
    reasons += gaps
    if reasons or not judged:
        return CANNOT_TELL, reasons or ["no row of the specification was judged"]
    ahead = sum(line.is_better for _, line in judged)
    told = f"all {len(judged)} rows are within their tolerances"
    return PASS, [f"{told}, {ahead} of them better than the baseline's" if ahead else told]


def _grouped(told: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Each reason once, with the first row it is of and how many more."""
    rows: dict[str, list[str]] = {}
    for reason, row in told:
        rows.setdefault(reason, []).append(row)
    for reason, own in rows.items():
        more = len(own) - 1
        yield f"{own[0]}{f' and {more} more' if more else ''}: {reason}"


def _gaps(matched: Sequence[Cell], cells: Sequence[CellReport], spec: Spec) -> Iterator[str]:
    """What the specification asks and no recording can answer: concurrencies, and rows of another load."""
    families: dict[str, set[int]] = {}
    for each, told in zip(matched, cells, strict=True):
        if told.load == "saturation" and told.threads is not None:
            plan = each.candidate.plan
            rest = {key: value for key, value in (plan.get("cell") or {}).items() if key != "threads"}
            name = " ".join(map(str, (plan.get("of") or each.name, *rest.values())))
            families.setdefault(name, set()).add(told.threads)
    for name, threads in families.items():
        if len(threads) < spec.concurrencies:
            only = ", ".join(map(str, sorted(threads)))
            yield (
                f"{name}: run at {only} threads only, {spec.concurrencies} concurrencies are asked for "
                "(sides that differ in threads, or `concurrencies: 1`)"
            )
    loads = {told.load for told in cells}
    for key, asked in spec.rows.items():
        at = asked.judged_at(key)
        if at not in ("any", *loads):
            yield f"{key}: judged at {at}, and no side was run so"


def _unmatched(only_old: Sequence[str]) -> list[str]:
    return [f"the candidate has no side {', '.join(only_old)}"] if only_old else []


def _notes(
    both: Sequence[Party],
    only_new: Sequence[str],
    machines: Sequence[Sequence[Instance]],
    type_unknown: str,
) -> Iterator[str]:
    if only_new:
        yield f"only the candidate has {', '.join(only_new)}: not judged"
    for name, party, own in zip(NAMES, both, machines, strict=True):
        for side, why in party.missing:
            yield f"{name}: {side}: {why}"
        for each in own:
            if each.boots > 1:
                yield f"{name}: {each.name} was booted {each.boots} times: taken for one instance"
    if type_unknown:
        yield type_unknown
    shared = {each.name for each in machines[0]} & {each.name for each in machines[1]}
    if shared:
        names = ", ".join(sorted(shared))
        yield f"both call their host {names}: if it is one machine, no hardware is compared"
    recorded = [{run.path.resolve() for part in party.parts.values() for run in part.runs} for party in both]
    if recorded[0] & recorded[1]:
        yield "recordings of the baseline are beside themselves: that says how wide the bounds are, no more"


def _machine(instance: Instance) -> Machine:
    return Machine(instance.name, instance.kind, len(instance.places), instance.boots)


def _union(found: Sequence[Differences]) -> Differences:
    return tuple(dict.fromkeys(each for differences in found for each in differences))


def _method(spec: Spec, *, by_type: bool) -> Iterator[str]:
    level = f"{100 * spec.confidence:g} %"
    unit = "instances (log means of each)" if by_type else "runs (logs, about their own instance)"
    yield (
        f"ratio: candidate / baseline, of geometric means over {unit}; bounds: one-sided, {level} each, "
        "Welch's t."
    )
    yield (
        "pass: the bound on the worse side is within the limit; fail: both bounds are beyond it. All rows "
        "must pass, so that their number needs no correction (intersection-union)."
    )
    yield (
        "operations are judged at the sustained level: after the last lasting step down of throughput, else "
        "over the second half of the window; all other rows over the whole window."
    )
