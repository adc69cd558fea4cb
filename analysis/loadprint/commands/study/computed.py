"""Checks statements on the published figures alone, by arithmetic on docs/published."""

from __future__ import annotations

from collections.abc import Callable

from loadprint import numbers
from loadprint.commands.study import published
from loadprint.commands.study.judgements import DIFFERS, HOLDS, INCONCLUSIVE, Judged
from loadprint.commands.usl.fit import fit
from loadprint.errors import InputError
from loadprint.importing import printed_table

FACTORS = 1e-4  # relative error of a printed factor of six digits
FAR = 1000.0


def printed_ratios() -> Judged:
    """The blog's SAR table: each printed ratio follows from its cells, within their rounding."""
    rows = printed_table.read(published.PUBLISHED / "hammerdb_blog_sar.csv").rows
    agree = sum(row.verdict == printed_table.AGREES for row in rows)
    return Judged(HOLDS if agree == len(rows) else DIFFERS, f"{agree} of {len(rows)} agree within rounding")


def mean_of_builds() -> Judged:
    """MyARM's table 1 is the mean of the ten builds of tables 2 to 6, rounded to an integer."""
    builds, average = published.rows("myarm_builds_tps.csv"), published.rows("myarm_average_tps.csv")
    cells = agree = 0
    for row in average:
        of_count = [build for build in builds if build["connections"] == row["connections"]]
        for scenario in list(row)[1:]:
            mean = sum(float(build[scenario]) for build in of_count) / len(of_count)
            cells += 1
            agree += abs(mean - float(row[scenario])) <= 1
    return Judged(HOLDS if agree == cells else DIFFERS, f"{agree} of {cells} cells agree within 1/s")


def best_connections() -> Judged:
    """By MyARM's text every scenario is best near the number of cores, 12; table 1 has other maxima."""
    table = published.rows("myarm_average_tps.csv")
    scenarios = list(table[0])[1:]
    best = {each: max(table, key=lambda row: float(row[each]))["connections"] for each in scenarios}
    text = ", ".join(f"{scenario} {count}" for scenario, count in best.items())
    return Judged(HOLDS if set(best.values()) == {"12"} else DIFFERS, f"largest at {text} connections")


def dynimize_factors() -> Judged:
    """The three printed factors follow from the printed rates and CPU shares."""
    rows = {row["quantity"]: row for row in published.rows("dynimize_sample.csv")}
    queries, cpu = rows["qps"], rows["cpu_percent"]
    faster = float(queries["with"]) / float(queries["without"])
    busier = float(cpu["with"]) / float(cpu["without"])
    computed = {"qps": faster, "cpu_percent": busier, "combined_improvement_factor": faster / busier}
    wrong = [
        name
        for name, value in computed.items()
        if abs(value / float(rows[name]["printed_ratio"]) - 1) > FACTORS
    ]
    text = ", ".join(f"{name} {numbers.significant(value, 6)}" for name, value in computed.items())
    return Judged(DIFFERS if wrong else HOLDS, text)


def prediction_at_1000() -> Judged:
    """What 1 to 64 threads predict for 1,000: a prediction needs models that agree, at least within 2 ×."""
    rows = published.rows("go_vs_sysbench_qps.csv")
    threads = [4.0 if row["threads"] == "5" else float(row["threads"]) for row in rows]
    texts, agree = [], True
    for column in ("go_mysql_qps", "sysbench_qps"):
        result = fit(threads, [float(row[column]) for row in rows], predict=(FAR,))
        values = {each.label: each.predictions[0].value for each in result.models if each.predictions}
        agree &= max(values.values()) < 2 * min(values.values())
        listed = ", ".join(f"{label} {value:,.0f}" for label, value in values.items())
        texts.append(f"{column.removesuffix('_qps')}: {listed}")
    return Judged(HOLDS if agree else INCONCLUSIVE, "; ".join(texts))


CHECKS: dict[str, Callable[[], Judged]] = {
    each.__name__: each
    for each in (printed_ratios, mean_of_builds, best_connections, dynimize_factors, prediction_at_1000)
}


def check(name: str) -> Judged:
    """Run the check of this name. Raises InputError if there is none."""
    if name not in CHECKS:
        raise InputError(f"check: {name}", "no such calculation", f"name one of {', '.join(CHECKS)}")
    return CHECKS[name]()
