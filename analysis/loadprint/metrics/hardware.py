"""Reads quantities of the processor: perf events, energy, clock frequency, busy thread siblings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from loadprint.metrics.host import cpu
from loadprint.metrics.quantities import Quantities
from loadprint.metrics.rates import Source
from loadprint.reading.cpusets import cores_of
from loadprint.reading.queries import among, by_entity, quote
from loadprint.reading.run_documents import Fingerprint

CONTROL = "intel-rapl"  # AMD's too; intel-rapl-mmio reads the same counters
EVERYWHERE = "all"


def perf(source: Source, side: str, cpus: Sequence[int] | None) -> None:
    """Events on a set of CPUs as `perf.<side>.<event>`, of all processes and the kernel.

    Multiplexed counters are scaled: Δvalue × Δtime enabled / Δtime running (perf_event_open(2)).
    """
    wanted = [EVERYWHERE] if cpus is None else [side, *(str(cpu) for cpu in cpus)]
    rows = source.rows("perf", f"SELECT tick, event, cpus FROM t WHERE cpus IN {among(wanted)}")
    if rows is None:
        source.out.mark_missing(f"perf.{side}", source.window.why_missing("perf"))
        return
    if not len(rows["tick"]):
        source.out.mark_missing(f"perf.{side}", "perf has no rows of these CPUs")
        return
    chosen = among([side] if side in rows["cpus"] else wanted)  # the recorder's sum of the set
    for event in sorted(set(rows["event"].tolist())):
        _event(source, f"perf.{side}.{event}", f"event = {quote(event)} AND cpus IN {chosen}")


def _event(source: Source, name: str, where: str) -> None:
    """An event on some CPUs; missing if it was not counted on one of them."""
    parts = replace(source, out=Quantities(source.out.segments), charted=False)
    names = {column: f"{name}.{column}" for column in ("value", "enabled_ns", "running_ns")}
    parts.sum("perf", names, "hash(cpus)", where)
    source.out.add_events(parts.out)
    value, enabled, running = (parts.out.get(name) for name in names.values())
    if value is None or enabled is None or running is None or running.rate <= 0:
        source.out.mark_missing(name, "the processor had no free counter for this event in the window")
    else:
        source.out.put(name, value.rate * max(1.0, enabled.rate / running.rate), value.count)


def energy(source: Source) -> None:
    """Power of all packages as `energy.package.energy_uj` and of all memory as `energy.dram.…`, in W (J/s).

    A counter wraps at the range of its zone; the wraps are added back.
    """
    rows = source.rows(
        "energy",
        'SELECT tick, zone, energy_uj::DOUBLE AS used, max_energy_range_uj::DOUBLE AS "range" FROM t'
        f" WHERE control = {quote(CONTROL)}",
    )
    if rows is None:
        source.out.mark_missing("energy", source.window.why_missing("energy"))
        return
    kinds = {kind: Quantities(source.out.segments) for kind in ("package", "dram")}
    for zone, series in by_entity(rows, "zone"):
        whole, _, part = zone.partition("/")
        kind = "dram" if part.startswith("dram") else "package"
        if not whole.startswith("package") or (part and kind == "package"):
            continue  # cores and uncore are parts of their package, psys includes more than the packages
        if len(series["tick"]) > 1:
            at, of = source.times("energy", series["tick"]), source.segments("energy", series["tick"])
            size = next(iter(series["range"][series["range"] > 0].tolist()), None)
            unit = source.unit("energy.energy_uj")
            kinds[kind].counter(f"{kind}.{zone}", series["used"], at, unit, size, of=of)
    for kind, parts in kinds.items():
        source.out.sum_of(f"energy.{kind}.energy_uj", parts, f"RAPL has no {kind} zone")


def frequency(source: Source, side: str, cpus: Sequence[int] | None) -> None:
    """Mean, lowest and highest clock of a set of CPUs over the window as `frequency.<side>`, in Hz."""
    wanted = "" if cpus is None else f" WHERE cpu IN {among(map(str, cpus))}"
    rows = source.rows(
        "frequency",
        "SELECT tick, avg(khz::DOUBLE) AS mean, min(khz::DOUBLE) AS least, max(khz::DOUBLE) AS most"
        f" FROM t{wanted} GROUP BY tick",
    )
    if rows is None or np.isnan(rows["mean"]).all():
        source.out.mark_missing(f"frequency.{side}", source.window.why_missing("frequency"))
        return
    unit = source.unit("frequency.khz")
    source.out.put(f"frequency.{side}.mean_khz", float(np.nanmean(rows["mean"])) * unit)
    source.out.put(f"frequency.{side}.least_khz", float(np.nanmin(rows["least"])) * unit)
    source.out.put(f"frequency.{side}.most_khz", float(np.nanmax(rows["most"])) * unit)


def siblings(source: Source, cpus: Sequence[int] | None) -> None:
    """CPU time of the hardware threads that share a core with one of the server's, as `cpu.siblings.<field>`.

    They include CPUs of the server's set if it has both threads of a core.
    """
    threads = siblings_of(source.run.fingerprint(source.window.role), cpus)
    if threads:
        cpu(source, "siblings", threads)
    else:
        source.out.mark_missing(
            "cpu.siblings", "according to the fingerprint no CPU shares a core with a CPU of the server"
        )


def siblings_of(fingerprint: Fingerprint, cpus: Sequence[int] | None) -> tuple[int, ...]:
    """CPUs on the same core as another CPU of the set; `cpus` None is the whole host."""
    cores = cores_of(fingerprint.cpus.list)
    chosen = cores.keys() if cpus is None else cores.keys() & set(cpus)
    taken = Counter(cores[cpu] for cpu in chosen)
    return tuple(sorted(cpu for cpu, core in cores.items() if taken[core] > (cpu in chosen)))
