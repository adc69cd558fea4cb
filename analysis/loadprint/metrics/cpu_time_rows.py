"""Declares the rows of *Where CPU time goes*: CPU time by groups of code, per unit of work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from loadprint.catalogue.files import Work
from loadprint.catalogue.formula import Formula, Name, total
from loadprint.catalogue.metric import Metric, View

PREFIX = "cputime_"
ALL = "all"
NOT_SAMPLED, ALL_TRUNCATED = "not_sampled", "all_truncated"


@dataclass(frozen=True)
class CpuTime:
    """The CPU time of a role's processes per unit of work."""

    role: str
    work: Work

    def of(self, key: str, label: str, parts: Sequence[str], view: View) -> Metric:
        """Row of the groups `parts` together."""
        return Metric(
            self.key(key),
            label,
            "µs",
            total([Formula(Name(f"profile.{self.role}.{part}")) for part in parts]).per(self.work.formula),
            better="lower",
            per_operation=self.work.per == "operation",
            view=view,
            sampled=len(parts),
            computed=f"samples of {' + '.join(parts)} / sampling frequency / {self.work.quantity}; "
            f"of hardware cycles: process.{self.role}.cpu × their share / {self.work.quantity}",
        )

    def not_sampled(self, view: View) -> Metric:
        """Row of the CPU time that the samples do not contain: the error of the sum of the others."""
        return replace(
            self.of(NOT_SAMPLED, "not sampled", ["not_sampled"], view),
            formula=self._of("not_sampled"),
            computed=f"(process.{self.role}.cpu − all samples / sampling frequency) / {self.work.quantity}",
            better="neither",
        )

    def truncated(self, view: View) -> Metric:
        """Row of all truncated stacks, most of which have a group by their innermost frames."""
        return replace(
            self.of(ALL_TRUNCATED, "all truncated stacks", ["truncated"], view),
            formula=self._of("truncated"),
            footnote="without the start of their thread; most have a group by their innermost frames",
            part=True,
        )

    def total(self, view: View, footnote: str) -> Metric:
        """Row of all groups, which is measured in /proc; n/a without samples."""
        return Metric(
            self.key(ALL),
            "all of it, by /proc",
            "µs",
            # 0 × the samples: it is missing without them
            Formula.parse(f"process.{self.role}.cpu + 0 * profiled.{self.role}.samples").per(
                self.work.formula
            ),
            better="lower",
            per_operation=self.work.per == "operation",
            footnote=footnote,
            view=view,
            computed=f"process.{self.role}.cpu / {self.work.quantity}",
        )

    def _of(self, what: str) -> Formula:
        return Formula(Name(f"profiled.{self.role}.{what}")).per(self.work.formula)

    def key(self, group: str) -> str:
        """Key of the row of a group."""
        return f"{PREFIX}{self.role}_{group}_per_{self.work.per}"
