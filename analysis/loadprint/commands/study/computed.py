"""Checks statements by arithmetic alone, on docs/published or on the constants of TPC-C."""

from __future__ import annotations

import csv
import math
import statistics
from collections.abc import Callable, Sequence
from typing import Literal

from loadprint import numbers
from loadprint.commands.ab import ab_published
from loadprint.commands.study.campaign_claims import beyond
from loadprint.commands.study.claim_verdicts import Answer, ClaimVerdict, Judged
from loadprint.commands.study.side_ratios import with_interval
from loadprint.commands.usl.fit import fit
from loadprint.configuration.checkout import CHECKOUT
from loadprint.configuration.field_types import Line, Strict
from loadprint.errors import InputError
from loadprint.importing import printed_table
from loadprint.reading import bounds
from loadprint.statistics import stats
from loadprint.statistics.several import best_candidates

PUBLISHED = CHECKOUT / "docs" / "published"
FROM_FIGURES = "computed from the published figures"
FROM_TPC_C = "computed from the constants of TPC-C"
FAR = 1000.0
COUNTS = ("1", "4", "8", "12", "16")  # connections in MyARM's tables
PAYMENT = NEW_ORDER = 10 / 23  # of TPROC-C's transactions; one each are of three other types, always at home
REMOTE_CUSTOMER, REMOTE_LINE = 0.15, 0.01  # TPC-C 2.5.1.2 and 2.4.1.5
ORDER_LINES = range(5, 16)  # TPC-C 2.4.1.3


def published(name: str) -> list[dict[str, str]]:
    """Read a table of docs/published: one mapping from column to text for each line. Raises InputError."""
    text = bounds.read_text(PUBLISHED / name, bounds.TABLE, "restore it from the repository")
    return list(csv.DictReader(text.splitlines()))


def printed_ratios() -> Judged:
    """The blog's SAR table: each printed ratio follows from its cells, within their rounding."""
    rows = printed_table.read(PUBLISHED / "hammerdb_blog_sar.csv").rows
    agree = sum(row.verdict == printed_table.AGREES for row in rows)
    return _computed(
        "holds" if agree == len(rows) else "differs", f"{agree} of {len(rows)} agree within rounding"
    )


def mean_of_builds() -> Judged:
    """MyARM's table 1 is the mean of the ten builds of tables 2 to 6, rounded to an integer."""
    builds, average = published("myarm_builds_tps.csv"), published("myarm_average_tps.csv")
    cells = agree = 0
    for row in average:
        of_count = [build for build in builds if build["connections"] == row["connections"]]
        for scenario in list(row)[1:]:
            mean = sum(float(build[scenario]) for build in of_count) / len(of_count)
            cells += 1
            agree += abs(mean - float(row[scenario])) <= 1
    return _computed("holds" if agree == cells else "differs", f"{agree} of {cells} cells agree within 1/s")


def best_connections() -> Judged:
    """MyARM: 12 connections are best, by the ten builds of each count, paired.

    Which scenario this is about is not printed: all of them together decide, by their geometric mean.
    """
    builds = _builds()
    best = _possible_best(_together(builds))
    alone = ", ".join(f"{name} {' or '.join(_possible_best(of))}" for name, of in builds.items())
    text = f"all scenarios together best at {' or '.join(best)} connections; each alone: {alone}"
    if "12" not in best:
        return _computed("differs", text, "12 is significantly below the best")
    others = " and ".join(count for count in best if count != "12")
    reason = f"not distinguishable from {others}" if others else ""
    return _computed("undecided" if others else "holds", text, reason)


def _possible_best(builds: Sequence[Sequence[float]]) -> list[str]:
    """The numbers of connections that can have the highest rate."""

    def below(one: int, other: int) -> float | None:
        tested = stats.ratio(builds[one], builds[other], paired=True)
        return None if tested.p is None else tested.p / 2 if tested.centre < 1 else 1 - tested.p / 2

    return [COUNTS[place] for place, can in enumerate(best_candidates(len(COUNTS), below)) if can]


def decrease_above() -> Judged:
    """MyARM: above 10 to 14 connections the rate decreases: 16 / 12 connections, paired over ten builds.

    All scenarios together decide, as in `best_connections`.
    """
    builds = _builds()
    whole, *ratios = (stats.ratio(of[4], of[3], paired=True) for of in (_together(builds), *builds.values()))
    alone = ", ".join(f"{name} {with_interval(ratio)}" for name, ratio in zip(builds, ratios, strict=True))
    text = f"all scenarios together {with_interval(whole)}; each alone: {alone}"
    return _computed(beyond(whole, 1.0, -1), text)


def _together(builds: dict[str, list[list[float]]]) -> list[list[float]]:
    """The geometric mean of all scenarios, of each number of connections and build."""
    return [
        [statistics.geometric_mean(build) for build in zip(*of_count, strict=True)]
        for of_count in zip(*builds.values(), strict=True)
    ]


def context_against_metric() -> Judged:
    """MyARM's advice: cost of a context value / one of three metrics, at 12 connections, paired by build."""
    of = _builds()
    simple, metrics, context = (of[name][3] for name in ("simple", "metrics", "context_1"))
    costs = [((1 / c - 1 / s), (1 / m - 1 / s) / 3) for s, m, c in zip(simple, metrics, context, strict=True)]
    ratio = stats.ratio([cost[0] for cost in costs], [cost[1] for cost in costs], paired=True)
    context_us, metric_us = (1e6 * sum(cost[side] for cost in costs) / len(costs) for side in (0, 1))
    text = f"one context value {context_us:.1f} µs, one metric {metric_us:.1f} µs, {with_interval(ratio)} ×"
    return _computed(beyond(ratio, 1.0, -1), text)


def _builds() -> dict[str, list[list[float]]]:
    """MyARM's tables 2 to 6: scenario → the ten builds of each number of connections, in one order."""
    rows = sorted(published("myarm_builds_tps.csv"), key=lambda row: row["build"])
    return {
        scenario: [[float(row[scenario]) for row in rows if row["connections"] == count] for count in COUNTS]
        for scenario in list(rows[0])[2:]
    }


def home_share() -> Judged:
    """Share of TPROC-C's transactions that use the home warehouse alone, by its specification."""
    lines = sum((1 - REMOTE_LINE) ** count for count in ORDER_LINES) / len(ORDER_LINES)
    share = 1 - NEW_ORDER * (1 - lines) - PAYMENT * REMOTE_CUSTOMER
    answer: Answer = "holds" if math.isclose(share, 0.9, abs_tol=0.02) else "differs"
    return _computed(answer, f"{100 * share:.1f} % of the transactions use no other warehouse")


def dynimize_factors() -> Judged:
    """The three printed factors follow from the printed rates and CPU shares."""
    table = ab_published.read(PUBLISHED / "dynimize_sample.csv")
    wrong = any(check.name.startswith("ratio of") and check.state == "failed" for check in table.checks)
    ratios = {effect.key: effect.ratio for effect in table.effects if effect.ratio}
    texts = (f"{name} {numbers.significant(ratios[key], 6)}" for name, key in ab_published.QUANTITIES.items())
    return _computed("differs" if wrong else "holds", ", ".join(texts))


def prediction_at_1000() -> Judged:
    """What 1 to 64 threads predict for 1,000: a prediction needs models that agree, at least within 2 ×."""
    rows = published("go_vs_sysbench_qps.csv")
    threads = [4.0 if row["threads"] == "5" else float(row["threads"]) for row in rows]
    texts, agree = [], True
    for column in ("go_mysql_qps", "sysbench_qps"):
        result = fit(threads, [float(row[column]) for row in rows], predict=(FAR,))
        values = {model.label: model.predictions[0].value for model in result.models if model.predictions}
        agree &= max(values.values()) < 2 * min(values.values())
        amounts = ", ".join(f"{label} {value:,.0f}" for label, value in values.items())
        texts.append(f"{column.removesuffix('_qps')}: {amounts}")
    reason = "" if agree else "the models differ by 2 × or more"
    return _computed("holds" if agree else "undecided", "; ".join(texts), reason)


def _computed(answer: Answer, text: str, reason: str = "") -> Judged:
    return Judged(text, ClaimVerdict(answer, reason))


CHECKS: dict[str, Callable[[], Judged]] = {
    check.__name__: check
    for check in (
        printed_ratios,
        mean_of_builds,
        best_connections,
        decrease_above,
        context_against_metric,
        home_share,
        dynimize_factors,
        prediction_at_1000,
    )
}


class Computed(Strict):
    """A statement that needs no execution: `check` names a function of this module."""

    kind: Literal["computed"]
    check: Line

    @property
    def source(self) -> str:
        """What it is computed from."""
        return FROM_TPC_C if self.check == home_share.__name__ else FROM_FIGURES

    def judged(self) -> Judged:
        """Run the check. Raises InputError if there is none of this name."""
        if self.check not in CHECKS:
            fix = f"name one of {', '.join(CHECKS)}"
            raise InputError(f"check: {self.check}", "no such calculation", fix)
        return CHECKS[self.check]()
