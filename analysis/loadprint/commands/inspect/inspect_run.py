"""Reads a run directory: its contents, missed ticks and failed reads, and the recorder's cost.

Torn and unfinished directories are read too: a missing figure has a reason in its place.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from loadprint.errors import InputError
from loadprint.metrics.host import process
from loadprint.metrics.quantities import Quantities
from loadprint.metrics.rates import Source
from loadprint.reading.queries import Columns, Store
from loadprint.reading.recording import Run, check_manifest, open_run
from loadprint.reading.run_documents import ProbeStatus, TableMeaning
from loadprint.reading.time_series import grids
from loadprint.reading.window import STAMPS, Window


@dataclass(frozen=True)
class ProbeReport:
    """One probe of a role: its ticks by status, and the reason of its first failed read."""

    name: str
    status: str
    ticks: int
    failed: int
    skipped: int
    reason: str
    bytes: int
    read_us: float | None


@dataclass(frozen=True)
class RoleReport:
    """One recorder: its duration, missed ticks, and cost."""

    role: str
    host: str
    ticks: int
    missed: int
    interval_s: float
    span_s: float
    ended: str
    torn_bytes: int
    recorder_cpu_us_per_sample: float | None
    recorder_core_share: float | None
    recorder_cpu_steps: int
    recorder_rss_bytes: float | None
    recorder_cost_reason: str
    probes: tuple[ProbeReport, ...]


@dataclass(frozen=True)
class RunReport:
    """A run directory. `manifest` is `intact`, `missing` or `broken`; each of `problems` is one line."""

    path: str
    id: str
    status: str
    reason: str
    workload: str
    manifest: str
    files: dict[str, int]
    problems: tuple[str, ...]
    phases: tuple[tuple[str, float | None], ...]
    result: dict[str, Any] | None
    roles: tuple[RoleReport, ...]


def inspect(path: Path) -> RunReport:
    """Read a run directory. Raises InputError if `path` is not one, or if a table cannot be read."""
    run, store = open_run(path), Store()
    mismatches = check_manifest(run)
    files = {str(p.relative_to(path)): p.stat().st_size for p in sorted(path.rglob("*")) if p.is_file()}
    roles, unread = [], []
    for role in run.roles:
        try:
            roles.append(_role(run, role, store))
        except InputError as error:
            unread.append(str(error))
    return RunReport(
        path=str(path),
        id=run.id,
        status=run.meta.status,
        reason=run.meta.reason,
        workload=run.meta.workload or run.result.workload or "unknown",
        manifest="missing" if run.manifest is None else "broken" if mismatches else "intact",
        files=files,
        problems=(*run.problems, *mismatches, *unread),
        phases=tuple(
            (p.name, None if p.end_ns is None else (p.end_ns - p.begin_ns) / 1e9) for p in run.phases
        ),
        result=run.result.model_dump(exclude_unset=True) or None,
        roles=tuple(roles),
    )


def _role(run: Run, role: str, store: Store) -> RoleReport:
    path = run.path / role / "ticks.parquet"
    described = store.metadata(path)
    rows = store.fetch(path, f"SELECT probe, status, reason, {STAMPS} FROM t")
    if len(rows["tick"]) == 0:
        raise InputError(path, "contains no ticks", "record again")
    cost, reason = _cost(run, role, rows, described, store)
    samples = len(set(rows["tick"]))
    span = float(rows["end"].max() - rows["start"].min()) / 1e9
    return RoleReport(
        role=role,
        host=run.fingerprint(role).host or "unknown",
        ticks=samples,
        missed=int(described.missed),
        interval_s=described.interval_ns / 1e9,
        span_s=span,
        ended=described.ended,
        torn_bytes=int(described.torn_bytes),
        recorder_cpu_us_per_sample=None if "cpu" not in cost else cost["cpu"] * (1e6 * span / samples),
        recorder_core_share=cost.get("cpu"),
        recorder_cpu_steps=int(cost.get("steps", 0)),
        recorder_rss_bytes=cost.get("rss"),
        recorder_cost_reason=reason,
        probes=tuple(_probe(run, role, probe, rows, store) for probe in _probe_list(described, rows)),
    )


def _probe_list(described: TableMeaning, rows: Columns) -> list[ProbeStatus]:
    described_probes = {probe.name for probe in described.probes}
    others = sorted(set(rows["probe"]) - described_probes)
    return [*described.probes, *(ProbeStatus(name=name, status="running") for name in others)]


def _probe(run: Run, role: str, probe: ProbeStatus, rows: Columns, store: Store) -> ProbeReport:
    chosen = rows["probe"] == probe.name
    statuses = rows["status"][chosen]
    reasons = [str(text) for text in rows["reason"][chosen] if text]
    table = run.table(role, probe.name)
    if table and probe.name == "scrape":
        reasons += _failed_scrapes(table, store)
    good = chosen & (rows["status"] == "ok")
    return ProbeReport(
        name=probe.name,
        status=probe.status,
        ticks=int((statuses == "ok").sum()),
        failed=int((statuses == "failed").sum()),
        skipped=int((statuses == "skipped").sum()),
        reason=probe.reason or (reasons[0] if reasons else ""),
        bytes=table.stat().st_size if table else 0,
        read_us=float(np.median(rows["end"][good] - rows["start"][good])) / 1e3 if good.any() else None,
    )


def _failed_scrapes(table: Path, store: Store) -> list[str]:
    """List endpoints that did not answer: as in Prometheus, a failed scrape is recorded as `up` 0."""
    # an imported table may have neither an endpoint nor a reason
    columns = store.columns(table)
    endpoint = "endpoint" if "endpoint" in columns else "'an endpoint'"
    why = "text" if "text" in columns else "'no reason recorded'"
    rows = store.fetch(
        table,
        f"SELECT {endpoint} AS endpoint, count(*)::DOUBLE AS scrapes, sum((value = 0)::INT)::DOUBLE AS down,"
        f" min({why}) AS why FROM t WHERE metric = 'up' GROUP BY ALL ORDER BY endpoint",
    )
    lines = [
        f"{endpoint} down in {down:.0f} of {scrapes:.0f} scrapes ({why or 'no reason recorded'})"
        for endpoint, scrapes, down, why in zip(*(rows[name] for name in rows), strict=True)
        if down > 0
    ]
    return ["; ".join(lines)] if lines else []


def _cost(
    run: Run, role: str, rows: Columns, described: TableMeaning, store: Store
) -> tuple[dict[str, float], str]:
    """Return the recorder's CPU (cores) and resident bytes over the recording, or the reason for none."""
    everywhere = grids(rows, 0.0, [(-math.inf, math.inf)])
    reads = len(everywhere["process"].ticks) if "process" in everywhere else 0
    if reads < 2:
        return {}, "probe process has fewer than two reads"
    out, interval = Quantities(), int(described.interval_ns)
    window = Window(role, 0.0, 0, {}, {}, interval, grids=everywhere)
    process(Source(run, window, store, out))
    figures = {"cpu": "process.recorder.cpu", "rss": "max(process.recorder.rss)"}
    cost = {name: q.rate for name, figure in figures.items() if (q := out.get(figure))}
    cpu = out.get("process.recorder.cpu")
    if cpu and cpu.count is not None:
        cost["steps"] = cpu.count
    return cost, "" if cost else out.why("process.recorder")
