"""The rates of mode `equal-load`: a fraction of what the slower side reached at saturation.

Sides are held to one rate only where they count the same operation: new orders and point selects have no
common rate. The maximum is found once, when the first open-loop run asks, and kept in execution.json: all
repeats of all sides are driven at the same rates, also when the execution is interrupted and goes on.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from loadprint.commands.campaign.execution import write
from loadprint.configuration.document import DocumentError

AGAIN = "the same command runs what is missing again"


def resolve(directory: Path, run_id: str) -> dict[str, Any]:
    """Say how a run is driven: `rate` (transactions a second, None in a closed loop) and where it comes from.

    Raises DocumentError where the saturation runs it needs are not complete.
    """
    document = _read(directory / "execution.json")
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
    found = maxima[group]
    rate = _rounded(side["fraction"] * found["rate"])
    return {
        "rate": rate,
        "arguments": _arguments(rate),
        "fraction": side["fraction"],
        "maximum": found["rate"],
        "slowest": found["side"],
        "saturated": found["sides"],
    }


def _arguments(rate: float | None) -> list[str]:
    return [f"--rate={rate:g}"] if rate else []


def _rounded(rate: float) -> float:
    """Three significant digits at least, and whole numbers from 100 on."""
    if rate >= 100:
        return float(round(rate))
    return round(rate, max(0, 2 - math.floor(math.log10(rate)))) if rate > 0 else rate


def _group(side: dict[str, Any]) -> str:
    """What sides must share to be driven at one rate."""
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
                f"{directory}: no saturation run of {name} is complete ({', '.join(ids)}); {AGAIN}"
            )
        reached[name] = math.fsum(rates) / len(rates)
    slowest = min(reached, key=lambda name: reached[name])
    if not reached[slowest] > 0:
        raise DocumentError(
            f"{directory}: {slowest} did nothing at saturation; there is no load to be a fraction of"
        )
    return {"rate": reached[slowest], "side": slowest, "sides": reached}


def _saturated(run: Path) -> float | None:
    """Transactions a second of a complete run, of all types; None where it is not complete."""
    try:
        if json.loads((run / "run.json").read_text(encoding="utf-8"))["status"] != "complete":
            return None
        result = json.loads((run / "load" / "result.json").read_text(encoding="utf-8"))
        counted = sum(kind["count"] for kind in (result.get("transactions") or {}).values())
        return float(counted or result["events"]) / float(result["seconds"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ArithmeticError):
        return None


def _read(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise DocumentError(f"{path.parent}: no execution here (no readable execution.json)") from None
    if not isinstance(document, dict) or not {"runs", "sides"} <= document.keys():
        raise DocumentError(f"{path}: does not list `sides` and `runs`; copy the execution again")
    return document
