"""Gathers the content of a report: table, charts over time, histograms, settings, provenance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from loadprint.commands.report import ebpf_histograms, latency, time_charts, unread_probes
from loadprint.commands.report.charts import MIB
from loadprint.commands.report.flames import flames
from loadprint.commands.report.scaling_section import scaled
from loadprint.commands.report.settings import settings
from loadprint.commands.sweep.cells import Cell, Swept
from loadprint.comparison.compare_sides import compare
from loadprint.metrics import devices
from loadprint.metrics.gather import Measured, gather
from loadprint.reading import cpusets
from loadprint.reading.queries import Store
from loadprint.reading.sides import Side
from loadprint.rendering.report_data import Absent, Report, RunOf, SideOf, Span
from loadprint.series import series, spikes
from loadprint.tables.table import Table

WHY = {
    "Over time": "no recorder's table and no generator's series cover the window",
    "Latency": "no generator wrote latencies",
    "Histograms by eBPF": "no eBPF probe was recorded; it needs root, or CAP_BPF and CAP_PERFMON",
    "Flame graphs": "a run has no samples of probe profile (it needs root, or CAP_BPF and CAP_PERFMON)",
    "Throughput over threads": "the sides ran at one number of threads",
    "A/B blocks": "this is not an A/B on a live server",
}
OF_SEVERAL = ("Throughput over threads", "A/B blocks")  # never in a report of one side


def collect(sides: Sequence[Side], reference: str | None) -> Report:
    """Report of a comparison. Raises InputError with the file that cannot be used."""
    store = Store()
    runs, placed = runs_of(sides)
    complete = (run for side in sides for run in side.runs)
    everyone = [(place, side, run) for (place, side), run in zip(placed, complete, strict=True)]
    sampled = time_charts.sample(everyone, store)
    known = iter(sampled)
    measured = [[gather(run, store, series=next(known).series) for run in side.runs] for side in sides]
    table = compare(sides, reference, measured=measured)
    sampled_stacks = flames(measured, table)
    drawn, still = time_charts.courses(
        sampled, devices.disks(measured), devices.interfaces(measured), sets_of(measured)
    )
    runs = with_spikes(runs, sampled)
    percentiles, by_type = latency.latency(everyone, len(sides))
    inside = ebpf_histograms.distributions(measured)
    curves = scaled(_swept(sides, measured))
    return Report(
        title=_title(sides),
        compared=" and ".join(side.label for side in sides),
        sides=tuple(
            SideOf(side.name, side.label, own[0].operation) for side, own in zip(sides, measured, strict=True)
        ),
        runs=runs,
        table=table,
        pivots=None,
        courses=drawn,
        percentiles=percentiles,
        distributions=(*by_type, *inside),
        scaled=curves,
        settings=settings(sides, measured),
        made=made(sides, table),
        absent=absent_of(
            {
                "Over time": drawn,
                "Latency": percentiles,
                "Histograms by eBPF": inside,
                "Flame graphs": sampled_stacks.nodes if sampled_stacks else (),
                **(dict(zip(OF_SEVERAL, (curves, ()), strict=True)) if len(sides) > 1 else {}),
            }
        ),
        flames=sampled_stacks,
        probes=unread_probes.lost([side.name for side in sides], measured),
        notes={"still": ", ".join(still)} if still else {},
    )


def _flat(measured: Sequence[Sequence[Measured]]) -> list[Measured]:
    return [run for runs in measured for run in runs]


def runs_of(sides: Sequence[Side]) -> tuple[tuple[RunOf, ...], list[tuple[int, int]]]:
    """All repeats, missing ones after the others, and (place, side) of each complete one."""
    repeats: list[RunOf] = []
    placed: list[tuple[int, int]] = []
    for position, side in enumerate(sides):
        for number, run in enumerate(side.runs, start=1):
            placed.append((len(repeats), position))
            repeat = run.meta.get("repeat")
            phases = tuple(
                Span(span.name, span.begin_s, span.end_s)
                for span in series.phases(run)
                if span.end_s is not None
            )
            repeats.append(
                RunOf(
                    run.id,
                    position,
                    repeat if isinstance(repeat, int) else number,
                    "complete",
                    phases=phases,
                )
            )
    for position, side in enumerate(sides):
        repeats += [RunOf(name, position, 0, "missing", reason) for name, reason in side.missing]
    return tuple(repeats), placed


def with_spikes(runs: Sequence[RunOf], sampled: Sequence[time_charts.Sampled]) -> tuple[RunOf, ...]:
    """Runs with the checkpoint spikes of their series."""
    marked = list(runs)
    for run in sampled:
        spans = tuple(
            Span(spike.what, spike.begin_s, spike.end_s, spike.throughput_drop)
            for spike in spikes.find(run.series)
        )
        marked[run.place] = replace(marked[run.place], spikes=spans)
    return tuple(marked)


def sets_of(measured: Sequence[Sequence[Measured]]) -> dict[str, tuple[str, float | None]]:
    """Names of the CPU sets and their cores; empty where the sides differ."""
    names: dict[str, tuple[str, float | None]] = {}
    for side in ("server", "load"):
        sets = {run.server_cpus if side == "server" else run.load_cpus for run in _flat(measured)}
        if len(sets) == 1:
            (cpus,) = sets
            if cpus is not None:
                names[side] = (cpusets.named(cpus), float(len(cpus)))
    return names


def _title(sides: Sequence[Side]) -> str:
    """The campaign's title, or the sides; one side with its name, a single run with its id."""
    title = str(_campaign(sides).get("title") or "")
    if len(sides) > 1:
        return title or " and ".join(side.label for side in sides)
    (side,) = sides
    runs = side.runs[0].id if len(side.runs) == 1 and not side.missing else ""
    return ": ".join(dict.fromkeys(each for each in (title, side.label, runs) if each))


def _campaign(sides: Sequence[Side]) -> Mapping[str, Any]:
    execution = next((side.execution for side in sides if side.execution), None) or {}
    campaign = execution.get("campaign")
    return campaign if isinstance(campaign, dict) else {}


def absent_of(sections: Mapping[str, Sequence[Any]]) -> tuple[Absent, ...]:
    """Empty sections, with the reason."""
    return tuple(Absent(title, WHY[title]) for title, shown in sections.items() if not shown)


def _swept(sides: Sequence[Side], measured: Sequence[Sequence[Measured]]) -> Swept | None:
    """The sides as cells of their execution, if they are all of one."""
    execution = sides[0].execution
    parents = {run.run.path.parent for run in _flat(measured)}
    if execution is None or len(parents) > 1 or any(side.execution != execution for side in sides):
        return None
    plans = execution.get("sides") or {}
    cells = tuple(
        Cell(side.name, plans.get(side.name) or {}, tuple(runs))
        for side, runs in zip(sides, measured, strict=True)
    )
    return Swept(parents.pop(), execution, cells, ())


def made(sides: Sequence[Side], table: Table | None) -> tuple[tuple[str, str], ...]:
    """Method and provenance as (label, text): method, versions, campaign, seed, files."""
    execution = next((side.execution for side in sides if side.execution), None) or {}
    campaign = _campaign(sides)
    runs = [run for side in sides for run in side.runs]
    versions = {
        f"{name} {version}" if name not in str(version) else str(version)
        for run in runs
        for name, version in (run.meta.get("versions") or {}).items()
    }
    files = [entry for run in runs for entry in ((run.manifest or {}).get("files") or {}).values()]
    size = sum(int(entry.get("bytes") or 0) for entry in files)
    lines = [("method", "\n".join(table.method))] if table else []
    lines += [
        ("campaign", f"{campaign.get('name')}, hash {execution.get('hash')}" if campaign else ""),
        ("when", " to ".join(str(execution[key]) for key in ("started", "ended") if execution.get(key))),
        ("seed", str(execution.get("seed") or "")),
        ("versions", ", ".join(sorted(versions))),
        ("directories", ", ".join(dict.fromkeys(str(run.path.resolve().parent) for run in runs))),
        ("files", f"{len(files):,} in {len(runs)} runs, {size / MIB:,.1f} MiB" if files else ""),
    ]
    return tuple((label, text) for label, text in lines if text)
