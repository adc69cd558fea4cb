"""Computes the rates of mode `equal-load`: fractions of the slower side's throughput at saturation.

Only sides with the same operation share a rate: new orders and point selects have no common rate.
The first open-loop run computes the maximum and stores it in execution.json, so that all repeats of
all sides have the same rates, also after the execution is interrupted and resumed.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from loadprint.commands.campaign.execution import require, run_status, write
from loadprint.configuration.document import DocumentError
from loadprint.errors import InputError
from loadprint.reading.documents import read
from loadprint.reading.run_documents import LoadResult

RESUME = "run the same command again: it runs the missing runs"


def resolve(directory: Path, run_id: str) -> dict[str, Any]:
    """Return the `rate` of a run (operations per second, None in a closed loop) and how it was computed.

    Raises DocumentError if the saturation runs that it needs are not complete.
    """
    document = require(directory).document
    run = next((run for run in document["runs"] if run["id"] == run_id), None)
    if run is None:
        raise DocumentError(f"{directory}: the plan has no run {run_id}")
    side = document["sides"][run["side"]]
    if "fraction" not in side:
        return {"rate": side.get("rate"), "arguments": _arguments(side.get("rate"))}
    maxima = document.setdefault("maxima", {})
    group = _group(side)
    if group not in maxima:
        maxima[group] = _maximum(directory, document, group)
        write(directory, document)
    maximum = maxima[group]
    rate = _rounded(side["fraction"] * maximum["rate"])
    return {
        "rate": rate,
        "arguments": _arguments(rate),
        "fraction": side["fraction"],
        "maximum": maximum["rate"],
        "slowest": maximum["side"],
        "saturated": maximum["sides"],
    }


def _arguments(rate: float | None) -> list[str]:
    return [f"--rate={rate:g}"] if rate else []


def _rounded(rate: float) -> float:
    """Round to three significant digits, from 100 on to a whole number."""
    if rate >= 100:
        return float(round(rate))
    return round(rate, max(0, 2 - math.floor(math.log10(rate)))) if rate > 0 else rate


def _group(side: dict[str, Any]) -> str:
    """Return the operation of a side: only sides of one group have a common rate."""
    return str(side.get("operation") or side["workload"])


def _maximum(directory: Path, document: dict[str, Any], group: str) -> dict[str, Any]:
    reached: dict[str, float] = {}
    for name, side in document["sides"].items():
        if "fraction" in side or _group(side) != group:
            continue
        ids = [run["id"] for run in document["runs"] if run["side"] == name]
        rates = [rate for run in ids if (rate := _saturated(directory / run)) is not None]
        if not rates:
            raise DocumentError(
                f"{directory}: no saturation run of {name} is complete ({', '.join(ids)}); {RESUME}"
            )
        reached[name] = math.fsum(rates) / len(rates)
    slowest = min(reached, key=lambda name: reached[name])
    if not reached[slowest] > 0:
        raise DocumentError(
            f"{directory}: {slowest} completed no operations at saturation; no rate can be computed"
        )
    return {"rate": reached[slowest], "side": slowest, "sides": reached}


def _saturated(run: Path) -> float | None:
    """Return the operations per second of a complete run, which `--rate` also counts, else None."""
    try:
        if run_status(run) != "complete":
            return None
        result = read(run / "load/result.json", LoadResult)
    except InputError:
        return None
    return result.events / result.seconds if result.events and result.seconds else None
