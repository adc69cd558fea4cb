"""What the processor itself counts: events of its counters, energy, clock frequency, busy thread siblings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ibis
import numpy as np

from loadprint.metrics.quantities import Quantities
from loadprint.metrics.sources import Source, cpu
from loadprint.reading.queries import number

KILOHERTZ, MICROJOULE = 1e3, 1e-6
CONTROL = "intel-rapl"  # AMD's too; intel-rapl-mmio is a second door to the same counters
EVERYWHERE = "all"


def perf(source: Source, side: str, cpus: Sequence[int] | None) -> None:
    """Events on a set of CPUs as `perf.<side>.<event>`, all that runs there, kernel included.

    Counters that took turns are scaled: Δvalue × Δtime enabled / Δtime running (perf_event_open(2)).
    """
    path = source.run.table(source.window.role, "perf")
    ticks = sorted(source.window.middle_ns.get("perf", ()))
    if path is None or len(ticks) < 2:
        source.out.mark_missing(f"perf.{side}", source.window.why_missing("perf"))
        return
    wanted = [EVERYWHERE] if cpus is None else [side, *(str(each) for each in cpus)]
    fields = {name: number(ibis._[name]) for name in ("value", "enabled_ns", "running_ns")}
    rows = source.store.fetch(
        path,
        lambda t: t.filter(t.cpus.isin(wanted)).select("tick", "event", "cpus", **fields).order_by("tick"),
        at=(ticks[0], ticks[-1]),
    )
    if side in rows["cpus"]:  # the recorder's own sum of the set
        rows = {name: values[rows["cpus"] == side] for name, values in rows.items()}
    if not len(rows["tick"]):
        source.out.mark_missing(f"perf.{side}", "perf has no row of these CPUs")
        return
    seconds = source.seconds("perf", np.array([ticks[0], ticks[-1]], dtype=np.float64))
    for event in sorted(set(rows["event"].tolist())):
        chosen = rows["event"] == event
        first, last = chosen & (rows["tick"] == ticks[0]), chosen & (rows["tick"] == ticks[-1])
        risen = [
            float(np.nansum(rows[name][last]) - np.nansum(rows[name][first]))
            for name in ("value", "enabled_ns", "running_ns")
        ]
        _event(source.out, f"perf.{side}.{event}", risen, seconds)


def _event(out: Quantities, name: str, risen: Sequence[float], seconds: float) -> None:
    value, enabled, running = risen
    if running <= 0 or seconds <= 0:
        out.mark_missing(name, "this event never had a counter of the processor in the window")
    elif value < 0:
        out.mark_missing(name, "the counter began anew in the window")
    else:
        out.put(name, value * max(1.0, enabled / running) / seconds, value)


def energy(source: Source) -> None:
    """Power of all packages as `energy.package` and of all memory as `energy.dram`, in W (J/s).

    A counter begins again at zero behind the zone's own range; what it lost there is added back.
    """
    rows = source.rows(
        "energy",
        lambda t: t.filter(t.control == CONTROL).select(
            "tick", "zone", used=number(t.energy_uj), range=number(t.max_energy_range_uj)
        ),
    )
    if rows is None:
        source.out.mark_missing("energy", source.window.why_missing("energy"))
        return
    parts = Quantities()
    for zone, series in source.entities(rows, "zone"):
        whole, _, part = zone.partition("/")
        kind = "dram" if part.startswith("dram") else "package"
        if not whole.startswith("package") or (part and kind == "package"):
            continue  # cores and uncore are parts of their package, psys is more than all of them
        if len(series["tick"]) > 1:
            seconds = source.seconds("energy", series["tick"])
            known = series["range"][~np.isnan(series["range"])]
            ranges = tuple(known[:1].tolist())
            parts.counter(f"{kind}.{zone}", series["used"], seconds, MICROJOULE, wraps=ranges)
    for kind in ("package", "dram"):
        found = [quantity for name, quantity in parts.values.items() if name.startswith(f"{kind}.")]
        if found:
            source.out.total(f"energy.{kind}", found)
        else:
            source.out.mark_missing(f"energy.{kind}", f"no zone of RAPL is a {kind}'s")
    source.out.warnings += parts.warnings


def frequency(source: Source, side: str, cpus: Sequence[int] | None) -> None:
    """Mean clock of a set of CPUs over the window as `frequency.<side>`, in Hz; the slowest reading too."""
    wanted = None if cpus is None else [str(each) for each in cpus]
    rows = source.rows(
        "frequency",
        lambda t: (
            (t if wanted is None else t.filter(t.cpu.isin(wanted)))
            .group_by("tick")
            .agg(mean=number(t.khz).mean(), least=number(t.khz).min())
        ),
    )
    if rows is None or np.isnan(rows["mean"]).all():
        source.out.mark_missing(f"frequency.{side}", source.window.why_missing("frequency"))
        return
    source.out.put(f"frequency.{side}.mean", float(np.nanmean(rows["mean"])) * KILOHERTZ)
    source.out.put(f"frequency.{side}.least", float(np.nanmin(rows["least"])) * KILOHERTZ)


def siblings(source: Source, cpus: Sequence[int] | None, hz: float) -> None:
    """CPU time of the hardware threads that share a core with one of the server's, as `cpu.siblings.<field>`.

    Among them are CPUs of the server's own set where it has both threads of a core.
    """
    beside = siblings_of(source.run.fingerprint(source.window.role), cpus)
    if beside:
        cpu(source, "siblings", beside, hz)
    else:
        source.out.mark_missing(
            "cpu.siblings", "as far as the host tells, no CPU shares a core with one of the server's"
        )


def siblings_of(fingerprint: dict[str, Any], cpus: Sequence[int] | None) -> tuple[int, ...]:
    """CPUs on the same core as another CPU of the set; `cpus` None is the whole host."""
    told = (fingerprint.get("cpus") or {}).get("list") or []
    cores: dict[tuple[Any, Any], set[int]] = {}
    for entry in told:
        if isinstance(entry, dict) and isinstance(entry.get("cpu"), int):
            cores.setdefault((entry.get("package"), entry.get("core")), set()).add(entry["cpu"])
    found: set[int] = set()
    for threads in cores.values():
        for own in threads if cpus is None else threads & set(cpus):
            found |= threads - {own}
    return tuple(sorted(found))
