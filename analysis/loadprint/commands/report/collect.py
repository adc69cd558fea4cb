"""Gathers the content of a report of a comparison or one side, and what all reports have in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from loadprint.catalogue.files import Catalogue, catalogue
from loadprint.commands.report import charts, distributions
from loadprint.commands.report.flames import flames
from loadprint.commands.report.scaling import scaled
from loadprint.commands.sweep.cells import SweepCell, Swept
from loadprint.comparison.compare_sides import compare
from loadprint.judging import comparability
from loadprint.metrics import devices
from loadprint.metrics.gather import Measured, gather
from loadprint.reading import cpusets
from loadprint.reading.queries import Store
from loadprint.reading.recording import Run
from loadprint.reading.run_documents import ExecutionPlan
from loadprint.reading.sides import NO_EXECUTION, Side
from loadprint.reading.time_series import phases
from loadprint.rendering.report_data import MarkedSpan, ReportPage, RunOf, SideOf
from loadprint.series import spikes
from loadprint.tables.table import Table

LONGEST = 400  # characters of a setting
ORDER = ("material", "varied", "harmless", "unknown", "same")  # of settings
OFF = "off"  # a probe that was not requested is not missing
Nested = Sequence[Sequence[Measured]]


def collect(sides: Sequence[Side], reference: str | None, rows: Catalogue | None = None) -> ReportPage:
    """Report of a comparison. Raises InputError with the file that cannot be used."""
    store = Store()
    runs = placed(sides)
    measured = [[gather(run, store, charted=True, rows=rows) for run in side.runs] for side in sides]
    every = [run.quantities for of_side in measured for run in of_side]
    sampled = [(place, side, every[place]) for place, side, _ in runs]
    table = compare(sides, reference, measured=measured, rows=rows)
    percentiles, by_type = distributions.latency(runs, len(sides), store)
    return assembled(
        title_of(sides),
        sides,
        measured,
        sampled,
        table,
        rows,
        percentiles=percentiles,
        distributions=(*by_type, *distributions.of_ebpf(measured)),
        scaled=scaled(_swept(sides, measured)),
        flames=flames(sides, measured, table),
    )


def placed(sides: Sequence[Side]) -> list[tuple[int, int, Run]]:
    """All runs with their position in the report and that of their side."""
    runs = [(side, run) for side, of_side in enumerate(sides) for run in of_side.runs]
    return [(place, side, run) for place, (side, run) in enumerate(runs)]


def assembled(  # noqa: PLR0913, PLR0917
    title: str,
    sides: Sequence[Side],
    measured: Nested,
    sampled: Sequence[charts.Sampled],
    table: Table | None = None,
    rows: Catalogue | None = None,
    **more: Any,
) -> ReportPage:
    """The parts of a report that its runs give, and `more` parts."""
    # without a table, its devices are not known
    disks, nics = (devices.disks(measured), devices.interfaces(measured)) if table else ([], [])
    drawn, still = charts.courses(sampled, disks, nics, _sets(measured), rows or catalogue())
    report = ReportPage(
        title,
        tuple(
            SideOf(side.name, side.label, own[0].operation) for side, own in zip(sides, measured, strict=True)
        ),
        _runs(sides, sampled),
        table,
        courses=drawn,
        settings=_settings(sides, measured),
        made=made(sides, table),
        probes=_lost([side.name for side in sides], measured),
        notes={"still": ", ".join(still), "charted": ""},
        **more,
    )
    return _with_absent(report)


def _with_absent(report: ReportPage) -> ReportPage:
    """A report with those of its sections that are empty, and the reason."""
    alone = len(report.sides) == 1
    sections = (
        ("Over time", report.courses, "no recorder's table and no generator's series cover the window"),
        ("Latency", report.percentiles, "no generator wrote latencies"),
        (
            "Histograms by eBPF",
            any(distribution.section != "latency" for distribution in report.distributions),
            "no eBPF probe was recorded; it needs root, or CAP_BPF and CAP_PERFMON",
        ),
        (
            "Flame graphs",
            report.flames or report.table is None,
            "a run has no samples of probe profile (it needs root, or CAP_BPF and CAP_PERFMON), or no"
            " CPU time of probe process",
        ),
        ("Throughput over threads", report.scaled or alone, "the sides ran at one number of threads"),
        ("A/B blocks", report.ab or alone, "this is not an A/B on a live server"),
    )
    return replace(report, absent=tuple((title, why) for title, content, why in sections if not content))


def _runs(sides: Sequence[Side], sampled: Sequence[charts.Sampled]) -> tuple[RunOf, ...]:
    """All repeats, with the checkpoint spikes of those that were sampled and had all of the time."""
    found_spikes = {place: spikes.find(of_run.series) for place, _, of_run in sampled if of_run.segments == 1}
    runs: list[RunOf] = []
    for side, of_side in enumerate(sides):
        for number, run in enumerate(of_side.runs, start=1):
            of_run = found_spikes.get(len(runs), ())
            spans = [MarkedSpan(one.what, one.begin_s, one.end_s, one.throughput_drop) for one in of_run]
            runs.append(RunOf(run.id, side, run.meta.repeat or number, tuple(_phases(run)), tuple(spans)))
    return tuple(runs)


def _phases(run: Run) -> Iterator[MarkedSpan]:
    """The phases of a run; of one that had parts of the time these alone, end to end, as they are drawn."""
    if run.segments and len(run.segments) > 1:
        yield MarkedSpan("measure", 0.0, sum(end - begin for begin, end in run.segments) / 1e9)
        return
    for span in phases(run):
        if span.end_s is not None:
            yield MarkedSpan(span.name, span.begin_s, span.end_s)


def _sets(measured: Nested) -> dict[str, tuple[str, float | None]]:
    """Names of the CPU sets and their cores; empty where the sides differ."""
    runs = [run for side in measured for run in side]
    sets = {"server": {run.server_cpus for run in runs}, "load": {run.load_cpus for run in runs}}
    common = {side: next(iter(cpus)) for side, cpus in sets.items() if len(cpus) == 1}
    return {
        side: (cpusets.named(cpus), float(len(cpus))) for side, cpus in common.items() if cpus is not None
    }


def _settings(sides: Sequence[Side], measured: Nested) -> tuple[comparability.Setting, ...]:
    """All facts of all sides, ordered by the meaning of a difference."""
    facts = [
        replace(setting, values=tuple(_cut(value) for value in setting.values))
        for setting in comparability.settings(sides, measured)
    ]
    return tuple(sorted(facts, key=lambda setting: ORDER.index(setting.kind)))


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} … ({len(text)} characters)"


def _lost(names: Sequence[str], measured: Nested) -> tuple[tuple[str, str], ...]:
    """Probes that were unavailable or failed as (probe, reason), with the sides unless all have it."""
    unread: dict[tuple[str, str], set[str]] = {}
    for name, run in [(name, run) for name, runs in zip(names, measured, strict=True) for run in runs]:
        if run.window is None:
            absent = [("all probes", "no recorder ran")]
        else:
            absent = [*run.window.unavailable.items(), *run.window.failures.items()]
            if run.window.missed:
                absent.append(("ticks", f"{run.window.missed} ticks missed in the window of {run.run.id}"))
        for probe, reason in absent:
            if reason.partition(":")[0].strip() != OFF:
                unread.setdefault((probe, reason), set()).add(name)
    return tuple(
        (probe, reason if len(sides) == len(names) else f"{reason} ({', '.join(sorted(sides))})")
        for (probe, reason), sides in sorted(unread.items())
    )


def title_of(sides: Sequence[Side]) -> str:
    """The campaign's title, or the sides; one side with its name, a single run with its id."""
    title = _execution(sides).campaign.title
    if len(sides) > 1:
        return title or " and ".join(side.label for side in sides)
    (side,) = sides
    runs = side.runs[0].id if len(side.runs) == 1 and not side.missing else ""
    return ": ".join(dict.fromkeys(part for part in (title, side.label, runs) if part))


def _execution(sides: Sequence[Side]) -> ExecutionPlan:
    return next((side.execution for side in sides if side.execution), NO_EXECUTION)


def _swept(sides: Sequence[Side], measured: Nested) -> Swept | None:
    """The sides as cells of their execution, if they are all of one."""
    execution = sides[0].execution
    parents = {run.run.path.parent for side in measured for run in side}
    if not execution or len(parents) > 1 or any(side.execution != execution for side in sides):
        return None
    cells = tuple(
        SweepCell(side.name, side.plan, tuple(runs)) for side, runs in zip(sides, measured, strict=True)
    )
    return Swept(parents.pop(), execution, cells, ())


def made(sides: Sequence[Side], table: Table | None) -> tuple[tuple[str, str], ...]:
    """Method and provenance as (label, text): method, versions, campaign, seed, files."""
    execution = _execution(sides)
    runs = [run for side in sides for run in side.runs]
    versions = {
        f"{name} {version}" if name not in str(version) else str(version)
        for run in runs
        for name, version in run.meta.versions.items()
    }
    files = [entry for run in runs if run.manifest for entry in run.manifest.files.values()]
    size = sum(int(entry.bytes or 0) for entry in files)
    lines = (
        ("method", "\n".join(table.method) if table else ""),
        ("campaign", f"{execution.campaign.name}, hash {execution.hash}" if execution.campaign else ""),
        ("when", " to ".join(filter(None, (execution.started, execution.ended)))),
        ("seed", "" if execution.seed is None else str(execution.seed)),
        ("versions", ", ".join(sorted(versions))),
        ("directories", ", ".join(dict.fromkeys(str(run.path.resolve().parent) for run in runs))),
        ("files", f"{len(files):,} in {len(runs)} runs, {size / charts.MIB:,.1f} MiB" if files else ""),
    )
    return tuple((label, text) for label, text in lines if text)
