"""Renders a plan as text or JSON: windows with their times, flips, smallest p, guards."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from loadprint.commands.ab.experiment import Experiment
from loadprint.commands.ab.schedule import WindowPlan, deadline
from loadprint.numbers import brief
from loadprint.reading.documents import FORMAT_VERSION


def text(experiment: Experiment, plan: WindowPlan) -> str:
    """Render for a terminal."""
    schedule = experiment.schedule
    lines = [f"{experiment.name}: {experiment.title}" if experiment.title else experiment.name]
    lines += [
        f"  schedule  {schedule.order}, {schedule.blocks} blocks, {len(plan.slots)} windows of "
        f"{schedule.window:g} s, {plan.flips} flips",
        f"  time      {_clock(plan.seconds)}, plus the time of the commands",
        f"  reverted  after {_clock(deadline(experiment, plan))} at the latest, or "
        f"{experiment.lease:g} s after its caller is lost",
        f"  smallest  p of a sign-flip test over {schedule.blocks} blocks: {brief(plan.smallest_p, 3)}",
        f"  apply     {experiment.treatment.apply}",
        f"  revert    {experiment.treatment.revert}",
    ]
    limits = experiment.guards.model_dump(exclude_none=True, exclude={"commands", "replication_lag"})
    guards = ", ".join(f"{name} {value:g}" for name, value in limits.items())
    lines += textwrap.wrap(guards, 100, initial_indent="  guards    ", subsequent_indent=" " * 12)
    commands = [
        *(["replication_lag"] if experiment.guards.replication_lag else []),
        *experiment.guards.commands,
    ]
    if commands:
        lines.append(f"  commands  {', '.join(commands)}")
    lines += [f"  warning   {warning}" for warning in plan.warnings]
    lines += ["", "window  block  variant    before it       from      to"]
    for slot in plan.slots:
        before = (
            f"{slot.flip} + {slot.settle_s:g} s"
            if slot.flip
            else f"{slot.settle_s:g} s"
            if slot.settle_s
            else ""
        )
        lines.append(
            f"{slot.number:>6}  {slot.block:>5}  {slot.variant:<9}  {before:<12}  {_clock(slot.begin_s):>6}  "
            f"{_clock(slot.end_s):>6}"
        )
    return "\n".join(lines) + "\n"


def document(experiment: Experiment, plan: WindowPlan) -> dict[str, Any]:
    """Return what `conduct` carries out: the experiment with its defaults, and its plan."""
    return {
        "format_version": FORMAT_VERSION,
        "experiment": experiment.model_dump(mode="json"),
        "plan": asdict(plan) | {"deadline_s": deadline(experiment, plan)},
    }


def as_json(experiment: Experiment, plan: WindowPlan) -> str:
    """Render `document`."""
    return json.dumps(document(experiment, plan), indent=1, ensure_ascii=False) + "\n"


RENDERERS: dict[str, Callable[[Experiment, WindowPlan], str]] = {"text": text, "json": as_json}


def _clock(seconds: float) -> str:
    whole = round(seconds)
    return (
        f"{whole // 60}:{whole % 60:02}"
        if whole < 3600
        else f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"
    )
