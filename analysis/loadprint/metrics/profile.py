"""Reads the CPU time of each role by groups of code from the samples of probe `profile`.

A sample of the CPU clock stands for its period. What /proc has beyond all samples is the time *not sampled*.
Samples are counts, so each time has a sampling error.

Hardware cycles have no time: a group's time is its share of the cycles, multiplied by the CPU time of the
role's processes in /proc. Such rows always add up; the cycles can only be compared with the clock frequency
of the server's CPUs, if it was recorded. Samples stand for different numbers of cycles, their weights. Their
effective number is (Σw)² / Σw²: as many samples of one weight have the same error (Kish, Survey Sampling,
1965).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loadprint.errors import InputError
from loadprint.metrics.cpu_groups import Grouped, group_nodes
from loadprint.metrics.quantities import Quantity
from loadprint.metrics.rates import Source
from loadprint.reading.bounds import COPY_AGAIN
from loadprint.reading.call_tree import CYCLES, CallTree, read_call_tree
from loadprint.reading.counters import edges
from loadprint.reading.queries import Columns, by_entity, quote

NO_TIME = "samples of hardware cycles have no time: they divide the CPU time in /proc"
CANNOT_FAIL = f"{NO_TIME}; this ledger cannot fail: its rows are shares of the CPU time, not times"


@dataclass(frozen=True)
class Profile:
    """Samples in the window: the call tree, and for each role by node the samples, weighted.

    Weights add up to the effective number of samples. `counts` are the samples, `cycles` what they stand for;
    it is empty, and weights are the counts, where the CPU clock was sampled.
    """

    tree: CallTree
    samples: Mapping[str, Mapping[int, float]]
    counts: Mapping[str, Mapping[int, float]]
    cycles: Mapping[str, Mapping[int, float]]


def read_profile(source: Source) -> Profile | None:
    """Samples of a run's window; None if nothing was recorded. Raises InputError."""
    path = source.run.table(source.window.role, "profile")
    if path is None or "profile" not in source.window.read:
        return None
    tree = read_call_tree(path.with_name("stacks.json"))
    weighted = tree.event == CYCLES
    # the norm is the root of the sum of squared cycles; a row's samples are taken as equal
    cycles_too = (
        ", sum(cycles::DOUBLE) AS cycles,"
        " sqrt(sum(cycles::DOUBLE * cycles::DOUBLE / samples::DOUBLE) FILTER (samples > 0)) AS norm"
    )
    query = (
        "SELECT role, stack::DOUBLE AS node, sum(samples::DOUBLE) AS samples"
        f"{cycles_too if weighted else ''} FROM t GROUP BY ALL ORDER BY role, node"
    )
    rows = source.store.fetch(path, query, between=_sampled(source, source.window.grids["profile"].ticks))
    samples, counts, cycles = {}, {}, {}
    for role, chosen in by_entity(rows, "role"):
        counts[role] = _by_node(path, tree, chosen, "samples")
        samples[role] = counts[role]
        if weighted:
            cycles[role] = _by_node(path, tree, chosen, "cycles")
            scale = math.fsum(cycles[role].values()) / (math.hypot(*chosen["norm"]) ** 2 or 1.0)
            samples[role] = {node: scale * weight for node, weight in cycles[role].items()}
    return Profile(tree, samples, counts, cycles)


def _sampled(source: Source, ticks: NDArray[Any]) -> list[tuple[int, int]]:
    """The ticks with samples between two of these in one segment: a row has those since the tick before."""
    segment = source.segments("profile", ticks)
    inside = ticks[segment >= 0]
    spans = zip(*edges(segment[segment >= 0]), strict=True)
    return [(int(inside[first]) + 1, int(inside[last])) for first, last in spans]


def _by_node(path: Path, tree: CallTree, rows: Columns, column: str) -> dict[int, float]:
    nodes, values = rows["node"], rows[column]
    valid = (nodes >= 0) & (nodes < len(tree.parents)) & (nodes == np.floor(nodes))
    if not valid.all():
        raise InputError(path, "column `stack` has nodes that are not in stacks.json", COPY_AGAIN)
    if not (values >= 0).all():
        raise InputError(path, f"column `{column}` is not a count in every row", COPY_AGAIN)
    return dict(zip(nodes.astype(int).tolist(), values.tolist(), strict=True))


def profile(source: Source) -> Profile | None:
    """CPU time by groups as `profile.<role>.<group>`, in cores. Returns the samples, None without any.

    `profiled.<role>` has `samples` (their effective number) and the share `lost`. In cores it has the time of
    all stacks that are `truncated` (without the start of their thread), and `not_sampled`: the CPU time in
    /proc minus all samples of the CPU clock. Of hardware cycles it has `hertz`, per second of CPU time, and
    `not_counted`: the CPU time minus that of the cycles at the nearest frequency of the server's CPUs.
    """
    read = read_profile(source)
    if read is None:
        source.out.mark_missing("profile", source.window.why_missing("profile"))
        source.out.mark_missing("profiled", source.window.why_missing("profile"))
        return None
    grouped = group_nodes(read.tree)
    for role, samples in read.samples.items():
        recorded = math.fsum(read.counts[role].values())
        source.out.entities["profile"].add((role,))
        source.out.put(f"profiled.{role}.lost", read.tree.lost / (read.tree.lost + recorded))
        add_role(source, role, read.tree, grouped, samples)
    for name in ("profile", "profiled"):
        source.out.mark_missing(name, "probe profile has no sample of these processes in the window")
    return read


def add_role(
    source: Source, role: str, tree: CallTree, grouped: Grouped, samples: Mapping[int, float]
) -> None:
    """Add the groups of one role, and what the samples do not contain."""
    out, total = source.out, math.fsum(samples.values())
    cpu, events = out.get(f"process.{role}.cpu"), _events(source, role, tree)
    if cpu is None or events is None or not total:
        reason = "no samples in the window" if cpu else out.why(f"process.{role}.cpu")
        out.mark_missing(f"profile.{role}.", reason)
        return
    if tree.event == CYCLES:
        error_of = partial(share, cpu.rate, total=total)
        if cpu.rate:
            out.put(f"profiled.{role}.hertz", events / cpu.rate)
        frequency, missed = _nearest(source, role, events / cpu.rate if cpu.rate else 0.0), "not_counted"
        out.mark_missing(f"profiled.{role}.not_sampled", NO_TIME if frequency else CANNOT_FAIL)
    else:
        frequency, missed = tree.frequency_hz, "not_sampled"
        error_of = partial(sampled, events / frequency / total)
    if frequency:
        every = sampled(events / frequency / total, total)
        out.values[f"profiled.{role}.{missed}"] = replace(every, rate=cpu.rate - every.rate)
    counts: dict[str, float] = {}
    for node, count in samples.items():
        counts[grouped.keys[node]] = counts.get(grouped.keys[node], 0.0) + count
    for key, count in counts.items():
        out.values[f"profile.{role}.{key}"] = error_of(count)
    out.absent[f"profile.{role}."] = error_of(0.0)
    out.put(f"profiled.{role}.samples", total)
    truncated = math.fsum(count for node, count in samples.items() if grouped.truncated[node])
    out.values[f"profiled.{role}.truncated"] = error_of(truncated)


def _nearest(source: Source, role: str, hertz: float) -> float | None:
    """The frequency nearest to this one between the lowest and the highest recorded of the server's CPUs.

    That of each sample is not known: an idle CPU may be slower. None of other roles, or if none was recorded.
    """
    least, most = (source.out.get(f"frequency.server.{which}_khz") for which in ("least", "most"))
    if role != "server" or least is None or most is None:
        return None
    return min(max(hertz, least.rate), most.rate)


def _events(source: Source, role: str, tree: CallTree) -> float | None:
    """Samples of the CPU clock or hardware cycles of a role per second.

    They are of the part of the window in which the role had processes: a load may start later.
    """
    path = source.run.table(source.window.role, "profile")
    lived = source.rows("process", f"SELECT DISTINCT tick FROM t WHERE role = {quote(role)}")
    if path is None or lived is None or not len(lived["tick"]):
        return None
    column = "cycles" if tree.event == CYCLES else "samples"
    rows = source.store.fetch(
        path,
        f"SELECT sum({column}::DOUBLE) AS events FROM t WHERE role = {quote(role)}",
        between=_sampled(source, lived["tick"]),
    )
    seconds = source.seconds("process", lived["tick"])
    return float(rows["events"][0]) / seconds if seconds > 0 else None


def sampled(period: float, count: float) -> Quantity:
    """The time of samples that stand for a `period` each, with its standard error.

    It is that of a Poisson count, an upper bound: a CPU is sampled at a fixed rate. Half a sample is added,
    or no sample would have no error (Jeffreys).
    """
    return Quantity(period * count, error=period * math.sqrt(count + 0.5))


def share(cpu: float, count: float, total: float) -> Quantity:
    """The time of `count` of `total` samples of a CPU time, with its binomial standard error.

    Half a sample is added to the share of the error, or none in a thousand would have no error (Jeffreys).
    """
    part = (count + 0.5) / (total + 1)
    return Quantity(cpu * count / total, error=cpu * math.sqrt(part * (1 - part) / total))
