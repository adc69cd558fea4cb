"""Claims are what the publications print: numbers of their tables, and rows of what their words are about."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from loadprint.commands.study import study_file
from loadprint.commands.study.campaign_claims import Between, Maximum, Order, Rank, RatioClaim
from loadprint.commands.study.computed import published as table
from loadprint.commands.study.study import judge
from loadprint.commands.study.study_file import Claim
from loadprint.configuration.checkout import CHECKOUT
from published import arm_cells
from recordings import Host, make_execution, of_mysql

PAGES = set((CHECKOUT / "docs" / "studies").glob("*.md")) - {CHECKOUT / "docs" / "studies" / "README.md"}
LABELS = {"parent": "parent correlator", "ctx20": "20 context values"}


def claims(study: str) -> dict[str, Claim]:
    return {claim.id: claim for claim in study_file.read(study).claims}


def printed(study: str, expected: dict[str, str]) -> None:
    """Each claim, by id, prints this published figure."""
    known = claims(study)
    assert {name: known[name].published for name in expected} == expected


def test_myarm() -> None:
    cells, known = arm_cells(), claims("myarm-inserts")
    rises = {name: cells[4, name] / cells[1, name] for _, name in cells}
    least, most = min(rises, key=rises.__getitem__), max(rises, key=rises.__getitem__)
    ends = [f"{rises[name]:.2f} ({LABELS.get(name, name)})" for name in (least, most)]
    at_12 = {name: rate for (count, name), rate in cells.items() if count == 12}
    contexts = {int(name.removeprefix("ctx")): 1e6 / at_12[name] for name in at_12 if name.startswith("ctx")}
    slope, _ = np.polyfit(list(contexts), list(contexts.values()), 1)
    metrics, parent = at_12["metrics"] / at_12["ctx1"], at_12["simple"] / at_12["parent"]
    printed(
        "myarm-inserts",
        {
            "connections-matter": " to ".join(ends),
            "order": " > ".join(f"{rate:,.0f}" for rate in sorted(at_12.values(), reverse=True)),
            "context-against-metrics": f"rates {1 / metrics:.2f}, so time per record {metrics:.3f}",
            "parent-correlator": f"rates {1 / parent:.3f}, so time per record {parent:.2f}",
            "cost-per-value": f"{slope:.1f} µs per value",
            "mean-of-builds": f"{len(cells)} cells",
        },
    )
    order, shape, ratio = (known[name].judge for name in ("order", "shape", "context-against-metrics"))
    assert isinstance(order, Order)
    assert order.sides == [f"{name}-t12" for name in sorted(at_12, key=at_12.__getitem__, reverse=True)]
    assert isinstance(shape, Rank)
    assert shape.cells == {f"{name}-t{count}": rate for (count, name), rate in cells.items()}
    assert isinstance(ratio, RatioClaim)
    assert ratio.published == pytest.approx(metrics, abs=0.0005)


def test_go_lookups() -> None:
    known = claims("go-lookups")
    rows = table("go_vs_sysbench_qps.csv")
    threads = [4 if row["threads"] == "5" else int(row["threads"]) for row in rows]
    go, rates = ([float(row[f"{name}_qps"]) for row in rows] for name in ("go_mysql", "sysbench"))
    ratios = [one / rate for one, rate in zip(go, rates, strict=True)]
    printed(
        "go-lookups",
        {
            "scales": f"{rates[0]:,.0f} to {rates[-1]:,.0f} queries/s",
            "go-scales": f"{go[0]:,.0f} to {go[-1]:,.0f} queries/s",
            "go-against-sysbench": f"{min(ratios):.3f} to {max(ratios):.3f}",
        },
    )
    for name, client in (("scales", "sysbench"), ("go-scales", "go")):
        scales = known[name].judge
        assert isinstance(scales, Maximum)
        assert scales.sides == [f"{client}-t{count}" for count in threads]
    between = known["go-against-sysbench"].judge
    assert isinstance(between, Between)
    assert between.pairs == [(f"go-t{count}", f"sysbench-t{count}") for count in threads]
    assert between.low is not None
    assert between.high is not None
    assert between.low <= min(ratios)
    assert max(ratios) <= between.high
    assert f"{min(ratios):.2f} to {max(ratios):.2f} " in known["go-against-sysbench"].text


SAR = {
    "cpu-utilisation": "cpu_utilization_%",
    "kernel-mode": "cpu_utilization_%_in_kernel_mode",
    "usr": "%usr",
    "sys": "%sys",
    "iowait": "%iowait",
    "idle": "%idle",
    "await": "sysstat_io_nvme0n1_avg_wait_ms",
    "disk-read": "sysstat_io_nvme0n1_read_kB/s",
    "disk-written": "sysstat_io_nvme0n1_write_kB/s",
    "received": "sysstat_net_ens260f1_rx_kB/s",
    "sent": "sysstat_net_ens260f1_tx_kB/s",
    "switches": "average context switches/sec",
    "interrupts": "avg interrupts/sec",
}


def test_hammerdb_blog() -> None:
    known, rows = claims("hammerdb-blog"), {row["metric"]: row for row in table("hammerdb_blog_sar.csv")}
    ratios = {name: rows[metric]["printed_ratio"] for name, metric in SAR.items()}
    assert {name for name, claim in known.items() if isinstance(claim.judge, RatioClaim)} == set(ratios)
    assert {name: known[name].judge.model_dump()["published"] for name in ratios} == {
        name: float(ratio) for name, ratio in ratios.items()
    }
    few, many = (f"{row['mysql_8_0_32']} at {row['virtual_users']}" for row in table("hammerdb_versions.csv"))
    versions = f"{few}, {many} virtual users"
    user = rows["%usr"]
    printed(
        "hammerdb-blog",
        ratios
        | {
            "printed-ratios": f"{len(rows)} ratios",
            "saturates": rows["cpu_utilization_%"]["hammerdb"],
            "engine": f"%usr {user['hammerdb']} against {user['sysbench']}",
            "storage-and-network": f"wait {float(ratios['await']):.0f} ×, sent {float(ratios['sent']):.0f} ×",
            "versions": versions,
            "order-of-servers": versions,
        },
    )


def test_the_contradiction_of_the_blogs_table_is_that_of_its_columns() -> None:
    rows = {row["metric"]: row for row in table("hammerdb_blog_sar.csv")}
    note = next(note for note in study_file.read("hammerdb-blog").notes if "contradicts itself" in note)
    for tool in ("sysbench", "hammerdb"):
        idle, waiting, user = (float(rows[name][tool]) for name in ("%idle", "%iowait", "%usr"))
        for name, by_columns in (
            ("cpu_utilization_%", 100 - idle - waiting),
            ("cpu_utilization_%_in_kernel_mode", 100 - idle - waiting - user),
        ):
            cell = rows[name][tool]
            assert abs(float(cell) - by_columns) > 0.5
            assert {cell, f"{by_columns:.2f}", rows[name]["printed_ratio"]} <= set(
                re.findall(r"[\d.]+\d", note)
            )
    busy = [
        100 - float(rows["%idle"][tool]) - float(rows["%iowait"][tool]) for tool in ("sysbench", "hammerdb")
    ]
    kernel = [
        all_ - float(rows["%usr"][tool]) for all_, tool in zip(busy, ("sysbench", "hammerdb"), strict=True)
    ]
    assert f"{busy[0] / busy[1]:.2f} and {kernel[0] / kernel[1]:.2f}" in note


def test_dynimize() -> None:
    factors = [row["printed_ratio"] for row in table("dynimize_sample.csv")]
    queries, cpu, combined = map(float, factors)
    printed(
        "dynimize",
        {
            "factors": ", ".join(factors),
            "saturated": f"{queries:.2f} ×",
            "one-factor": f"{combined:.2f} × in the sample",
        },
    )
    text = f"queries {queries:.3f} ×, CPU {cpu:.3f} ×, queries per CPU time {combined:.3f} ×"
    assert text in claims("dynimize")["factors"].text


def measured(path: Path, campaign: str, study: str, sides: dict[str, list[Host]]) -> dict[str, str]:
    """The answer on each claim that this execution measures, on its size if it is about one."""
    execution = make_execution(path, sides, next(iter(sides)), {}, {"name": campaign})
    found = judge(study, [execution]).findings
    return {
        finding.claim.id: finding.judged.verdicts[-1].answer for finding in found if finding.judged.repeats
    }


def test_response_times_are_judged_by_latency_at_the_same_throughput(tmp_path: Path) -> None:
    latencies = {"d90-p250m@50": 10, "d90-p250m@70": 30, "d20-p640m@70": 10}
    sides = {
        side: [Host(seconds=4, latency_ms=latency + repeat / 10) for repeat in range(3)]
        for side, latency in latencies.items()
    }
    answers = measured(tmp_path / "x", "checkpoint-spikes", "specjappserver", sides)
    assert answers == {"checkpoint-spikes": "holds", "both-settings": "holds"}


@pytest.mark.parametrize(("hits", "answer"), [(0, "holds"), (50, "differs")])
def test_a_query_cache_without_hits_is_one_whose_counter_stands_still(
    tmp_path: Path, hits: int, answer: str
) -> None:
    def host(per_second: int, repeat: int) -> Host:
        grow = {"Qcache_hits": per_second, "Qcache_inserts": 100 + repeat, "Qcache_not_cached": 0}
        return Host(seconds=4, more=of_mysql(grow))

    sides = {
        side: [host(rate, repeat) for repeat in range(3)]
        for side, rate in (("disabled", 0), ("misses", hits), ("hits", 5000))
    }
    assert measured(tmp_path / "x", "query-cache", "specjappserver", sides)["no-hits"] == answer


@pytest.mark.parametrize("page", sorted(PAGES), ids=lambda page: page.stem)
def test_a_page_begins_with_the_commit_and_the_date_that_it_is_from(page: Path) -> None:
    first = page.read_text(encoding="utf-8").splitlines()[2]
    assert re.match(
        r"Made at commit `[0-9a-f]{8}` \(\d{4}-\d\d-\d\d\)[,;].* (alternated|not alternating)", first
    )
