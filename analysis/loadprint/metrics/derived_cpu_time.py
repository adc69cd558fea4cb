"""Declares the rows of *Where CPU time goes*: CPU time by groups of code, per unit of work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from loadprint.metrics.costs import Denominator
from loadprint.metrics.derived import Metric, View

PREFIX = "cputime_"
ALL = "all"
NOT_SAMPLED, ALL_TRUNCATED = "not_sampled", "all_truncated"


@dataclass(frozen=True)
class CpuTime:
    """The CPU time of a role's processes per unit of work."""

    role: str
    work: Denominator

    def of(self, key: str, label: str, parts: Sequence[str], view: View) -> Metric:
        """Row of the groups `parts` together."""
        needs = (*(f"profile.{self.role}.{part}" for part in parts), self.work.quantity)
        return Metric(
            self.key(key),
            label,
            "s",
            "µs",
            needs,
            _per,
            f"samples of {' + '.join(parts)} / sampling frequency / {self.work.quantity}; "
            f"of hardware cycles: process.{self.role}.cpu × their share / {self.work.quantity}",
            better="lower",
            per_operation=self.work.per == "operation",
            view=view,
            sampled=len(parts),
        )

    def not_sampled(self, view: View) -> Metric:
        """Row of the CPU time that the samples do not contain: the error of the sum of the others."""
        return replace(
            self.of(NOT_SAMPLED, "not sampled", ["not_sampled"], view),
            needs=(f"profiled.{self.role}.not_sampled", self.work.quantity),
            formula=f"(process.{self.role}.cpu − all samples / sampling frequency) / {self.work.quantity}",
            better="neither",
        )

    def truncated(self, view: View) -> Metric:
        """Row of all truncated stacks, most of which have a group by their innermost frames."""
        return replace(
            self.of(ALL_TRUNCATED, "all truncated stacks", ["truncated"], view),
            needs=(f"profiled.{self.role}.truncated", self.work.quantity),
            footnote="without the start of their thread; most have a group by their innermost frames",
            part=True,
        )

    def total(self, view: View, footnote: str) -> Metric:
        """Row of all groups, which is measured in /proc; n/a without samples."""
        needs = (f"process.{self.role}.cpu", f"profiled.{self.role}.samples", self.work.quantity)
        return Metric(
            self.key(ALL),
            "all of it, by /proc",
            "s",
            "µs",
            needs,
            lambda cpu, _, work: cpu / work,
            f"process.{self.role}.cpu / {self.work.quantity}",
            better="lower",
            per_operation=self.work.per == "operation",
            footnote=footnote,
            view=view,
        )

    def key(self, group: str) -> str:
        """Key of the row of a group."""
        return f"{PREFIX}{self.role}_{group}_per_{self.work.per}"


def _per(*values: float) -> float:
    return sum(values[:-1]) / values[-1]
