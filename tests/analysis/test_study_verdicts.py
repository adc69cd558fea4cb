"""Verdicts of a study: direction and size apart, several pairs together, equivalence, zeros, void runs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from loadprint.__main__ import main
from loadprint.commands.study import study_page, study_text
from loadprint.commands.study.claim_verdicts import Judged, Verdict
from loadprint.commands.study.study import Report, judge
from loadprint.statistics.several import best_candidates, equivalence, holm, zero_bound
from loadprint.statistics.stats import Estimate
from recordings import Host, make_execution
from scipy import stats as scipy_stats
from test_time_ledger import host as with_states

Sides = dict[str, list[Host]]


def rates(**sides: list[int]) -> Sides:
    """Sides with these operations per second in each repeat."""
    return {name: [Host(seconds=4, events=each) for each in events] for name, events in sides.items()}


def judged(tmp_path: Path, sides: Sides, rule: str, claim: str = "", **execution: Any) -> Report:
    """Judge one claim on an execution of these sides."""
    tmp_path.mkdir(exist_ok=True)
    path = tmp_path / "mine.yml"
    path.write_text(
        "title: t\nsource: s\nclaims:\n"
        f"- {{id: a, text: t, place: p, published: '1', campaign: two, {claim}judge: {{{rule}}}}}\n",
        encoding="utf-8",
    )
    made = make_execution(tmp_path / "x", sides, next(iter(sides)), {}, {"name": "two", **execution})
    return judge(str(path), [made])


def only(report: Report) -> Judged:
    return report.findings[0].judged


def size_of(found: Judged) -> Verdict:
    assert found.size is not None
    return found.size


def test_a_ratio_of_25_against_836_holds_in_its_direction_and_differs_in_its_size(tmp_path: Path) -> None:
    sides = rates(a=[2500, 2570, 2640], b=[100, 100, 100])
    rule = "kind: ratio, row: operations, side: a, against: b, published: 836"
    report = judged(tmp_path, sides, rule, "scales: [published], ")
    found = only(report)
    assert found.direction == Verdict("holds")
    assert size_of(found).answer == "differs"
    assert size_of(found).figure.startswith("0.0307 [0.02")
    assert size_of(found).reason == "not measured as published: needs the scale published"
    row = next(line for line in study_page.page(report).splitlines() if line.startswith("| t (p) "))
    assert row.endswith("| holds | **differs**: 0.0307 [0.0287, 0.0329] × the published ratio |")
    assert "size: 1 differs" in study_text.text(report)


def test_an_open_claim_is_never_called_the_opposite(tmp_path: Path) -> None:
    sides = rates(a=[900, 1000, 1100], b=[950, 1000, 1060])
    report = judged(tmp_path, sides, "kind: between, row: operations, pairs: [[a, b]], low: 1")
    assert only(report).answer == "inconclusive"
    for shown in (study_page.page(report), study_text.text(report)):
        assert study_text.OPPOSITE not in shown
        assert study_text.OPEN in shown
        assert "would decide" not in shown, "the effect is below 1 %"


def test_repeats_are_planned_up_to_thirty_and_for_effects_of_a_percent(tmp_path: Path) -> None:
    rule = "kind: between, row: operations, pairs: [[a, b]], low: 1"
    few = only(judged(tmp_path / "few", rates(a=[1000, 1060, 1120], b=[1000, 1000, 1000]), rule))
    assert few.direction is not None
    assert 1 <= (few.direction.more or 0) <= 30
    many = only(judged(tmp_path / "many", rates(a=[700, 1020, 1400], b=[1000, 1000, 1000]), rule))
    assert many.direction == Verdict("inconclusive")
    small = only(judged(tmp_path / "small", rates(a=[1000, 1004, 1008], b=[1000, 1000, 1000]), rule))
    assert small.direction == Verdict("inconclusive")


def test_equal_within_the_bound_of_the_claim_is_a_verdict(tmp_path: Path) -> None:
    sides = rates(a=[10010, 10000, 9990], b=[10000, 10000, 10000])
    rule = "kind: between, row: operations, pairs: [[a, b]], low: 1"
    found = only(judged(tmp_path / "bound", sides, f"{rule}, bound: 0.01"))
    assert found.direction == Verdict("equivalent", figure="at most 0.25 % different")
    assert only(judged(tmp_path / "none", sides, rule)).answer == "inconclusive"
    significant = rates(a=[10021, 10020, 10019], b=[10000, 10000, 10000])
    found = only(judged(tmp_path / "significant", significant, f"{rule}, bound: 0.01"))
    assert found.answer == "equivalent", "although the interval excludes 1"
    equal = "kind: equivalent, row: operations, pairs: [[a, b]], bound: "
    assert only(judged(tmp_path / "holds", sides, equal + "0.01")).answer == "holds"
    assert only(judged(tmp_path / "open", sides, equal + "0.001")).answer == "inconclusive"
    unequal = rates(a=[10510, 10500, 10490], b=[10000, 10000, 10000])
    assert only(judged(tmp_path / "differs", unequal, equal + "0.01")).answer == "differs"


def test_equivalence_is_two_one_sided_tests() -> None:
    assert equivalence(Estimate(1.0, 0.996, 1.002), 0.01).equal
    assert equivalence(Estimate(1.0, 0.996, 1.002), 0.01).most == pytest.approx(1 / 0.996 - 1)
    assert equivalence(Estimate(1.05, 1.02, 1.08), 0.01).unequal
    undecided = equivalence(Estimate(1.01, 0.99, 1.03), 0.01)
    assert (undecided.equal, undecided.unequal) == (False, False)
    assert equivalence(Estimate(1.0), 0.01).most is None


# one pair of seven is below 1 with p = 0.03, as happens by chance in one of five such claims; six are equal
WEAK = rates(a=[981, 972, 963], b=[1000, 1000, 1000]) | {
    f"{name}{k}": [Host(seconds=4, events=each) for each in events]
    for k in range(6)
    for name, events in (("c", [1000, 1010, 1020]), ("d", [1001, 1008, 1021]))
}
PAIRS = "[a, b], " + ", ".join(f"[c{k}, d{k}]" for k in range(6))


def test_pairs_of_one_claim_are_tested_together(tmp_path: Path) -> None:
    alone = only(judged(tmp_path / "one", WEAK, "kind: between, row: operations, pairs: [[a, b]], low: 1"))
    assert alone.direction == Verdict("differs"), "the pair alone is significant"
    found = only(judged(tmp_path / "all", WEAK, f"kind: between, row: operations, pairs: [{PAIRS}], low: 1"))
    assert found.direction is not None
    assert found.direction.answer == "inconclusive"
    assert found.direction.reason.startswith("not decided: a / b, c0 / d0")
    assert found.direction.reason.endswith("c5 / d5, by Holm's test of 7 together")


def test_holm_is_that_of_its_paper() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == [True, False, False, True]
    assert holm([0.04, 0.04]) == [False, False]
    assert holm([0.02, 0.04]) == [True, True]
    assert holm([]) == []


def test_a_best_among_several_is_judged_by_simultaneous_bounds(tmp_path: Path) -> None:
    """`a` is below `b` by one test at 5 %, but not by seven at once."""
    sides = WEAK | rates(z=[500, 501, 502])
    rule = "kind: maximum, row: operations, at: [b], sides: "
    assert only(judged(tmp_path / "two", sides, rule + "[a, b, z]")).answer == "holds"
    many = only(judged(tmp_path / "many", sides, rule + "[a, b, z, d0, d1, d2, d3, d4, d5]"))
    assert many.answer == "inconclusive"
    assert "a" in many.measured


def test_the_best_side_is_kept_with_the_nominal_chance() -> None:
    p = {(0, 1): 0.02, (0, 2): 0.5, (1, 0): 0.98, (1, 2): 0.5, (2, 0): 0.5, (2, 1): 0.5}
    assert best_candidates(3, lambda one, other: p[one, other]) == [False, True, True]
    assert best_candidates(3, lambda one, other: None) == [True, True, True]
    assert best_candidates(1, lambda one, other: 0.0) == [True]


def test_zeros_in_a_few_windows_have_a_poisson_bound(tmp_path: Path) -> None:
    hosts = [Host(seconds=4, commits=0) for _ in range(3)]
    found = only(judged(tmp_path / "a", {"a": hosts}, "kind: level, row: commits, sides: [a], above: 0.1"))
    assert found.measured == "a 0 /s [0, 0.246]", "3.69 events in 15 seconds"
    assert size_of(found).answer == "inconclusive"
    found = only(judged(tmp_path / "b", {"a": hosts}, "kind: level, row: commits, sides: [a], above: 1"))
    assert size_of(found).answer == "differs"
    assert zero_bound(1.0) == pytest.approx(scipy_stats.chi2.ppf(0.975, 2) / 2)


def test_two_zeros_are_no_ratio(tmp_path: Path) -> None:
    hosts = [Host(seconds=4, commits=0) for _ in range(3)]
    rule = "kind: between, row: commits, pairs: [[a, b]], low: 1, bound: 0.5"
    found = only(judged(tmp_path, {"a": hosts, "b": hosts}, rule))
    assert found.direction == Verdict("inconclusive", "both are 0")


def test_a_claim_about_other_servers_is_not_comparable(tmp_path: Path) -> None:
    """The versions table is about 8.0.27 and 8.0.32; another pair that differs does not contradict it."""

    def hosts(version: str, events: list[int]) -> list[Host]:
        variables = {"version": version, "port": "3306"}
        return [Host(seconds=4, events=each, variables=variables) for each in events]

    slow, fast = [1000, 1001, 1002], [1500, 1501, 1502]
    pairs = "below: [new, old], above: [new, old]"
    claim = 'servers: {old: "8.0.27", new: "8.0.32"}, '
    rule = f"kind: sign change, row: operations, {pairs}"
    other = {"old": hosts("10.11.19-MariaDB", slow), "new": hosts("9.7.4", fast)}
    found = only(judged(tmp_path / "other", other, rule, claim))
    assert found.direction == Verdict(
        "not comparable", "about 8.0.27 and 8.0.32, measured on 10.11.19-MariaDB and 9.7.4"
    )
    same = {"old": hosts("8.0.27", slow), "new": hosts("8.0.32", fast)}
    assert only(judged(tmp_path / "same", same, rule, claim)).answer == "differs"


@pytest.mark.parametrize(
    ("few", "many", "answer"),
    [
        ([1500, 1501, 1502], [900, 901, 902], "holds"),
        ([900, 901, 902], [1500, 1501, 1502], "holds"),
        ([900, 901, 902], [800, 801, 802], "inconclusive"),
    ],
)
def test_that_an_order_can_change_is_shown_but_not_refuted(
    tmp_path: Path, few: list[int], many: list[int], answer: str
) -> None:
    sides = rates(old=[1000, 1000, 1001], few=few, many=many)
    rule = "kind: sign change, row: operations, below: [few, old], above: [many, old], either: true"
    assert only(judged(tmp_path, sides, rule)).answer == answer


def test_a_side_of_the_real_tool_is_preferred(tmp_path: Path) -> None:
    sides = rates(native=[2000, 2001, 2002], real=[500, 501, 502], b=[1000, 1001, 1002])
    rule = "kind: between, row: operations, pairs: [[real|native, b]], high: 1"
    assert only(judged(tmp_path / "both", sides, rule)).measured.startswith("real / b 0.5")
    del sides["real"]
    found = only(judged(tmp_path / "native", sides, rule, "generators: [sysbench], "))
    assert found.measured.startswith("native / b 2.00")
    assert found.direction is not None
    assert found.direction.reason == "not measured as published: native workloads in place of sysbench"


def test_kinds_of_claims_are_counted_apart(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "dynimize"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("  Dynimize, a commercial program, was not run")
    assert lines[-3:] == [
        "1 published: direction: 1 not comparable",
        "1 computed from the published figures: direction: 1 holds",
        "6 check of the method: direction: 6 not comparable",
    ]


@pytest.mark.parametrize(("arguments", "answer"), [([], "inconclusive"), (["--accept-disturbed"], "holds")])
def test_a_disturbed_run_supports_no_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], answer: str
) -> None:
    rule = "kind: between, row: operations, pairs: [[b, a]], low: 1"
    judged(tmp_path, rates(a=[100, 101, 102], b=[200, 201, 202]), rule)
    run = next(path for path in (tmp_path / "x").iterdir() if (path / "run.json").is_file())
    (run / "manifest.json").unlink()
    texts = [canary("before", 1_000_000, 1_000), canary("after", 1_200_000, 9_000)]
    (run / "server" / "canary.jsonl").write_text("\n".join(texts) + "\n", encoding="utf-8")
    words = ["study", str(tmp_path / "mine.yml"), str(tmp_path / "x"), "--format", "json", *arguments]
    assert main(words) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["claims"][0]["direction"]["answer"] == answer
    assert "disturbed according to the canary" in shown["no_verdict"][0]


def canary(label: str, slice_ns: int, at_s: int) -> str:
    part = {"name": "cpu", "lanes": [{"slices_ns": [slice_ns] * 8}]}
    stamps = {"begin_realtime_ns": at_s * 10**9, "begin_monotonic_ns": 0, "end_monotonic_ns": 10**9}
    return json.dumps({"label": label, "boot_id": "b", **stamps, "parts": [part]})


def test_reasons_of_void_runs_are_printed_once(tmp_path: Path) -> None:
    busy = {"0": {"user": 50, "idle": 50}, "1": {"user": 95, "idle": 5}}
    sides = rates(a=[100, 101, 102], b=[200, 201, 202])
    sides["a"] = [replace(each, cpus=busy) for each in sides["a"]]
    report = judged(tmp_path, sides, "kind: ratio, row: operations, side: b, against: a, published: 2")
    found = only(report)
    assert [each.reason for each in found.verdicts] == ["client-bound: a", "client-bound: a"]
    page = study_page.page(report)
    assert page.count("its CPUs 95 %") == 1
    assert "direction and size inconclusive: client-bound: a." in page


def test_the_largest_parts_of_the_latency_are_a_reason(tmp_path: Path) -> None:
    sides = rates(a=[1000, 1001, 1002], b=[1500, 1501, 1502], c=[100, 101, 102])
    rule = "kind: maximum, row: operations, sides: [a, b, c], at: [a]"
    (finding,) = judged(tmp_path / "none", sides, rule, "ledger: b, ").findings
    assert (finding.judged.answer, finding.explanation) == ("differs", ""), "no states were recorded"
    sides["b"] = [replace(with_states(), events=each.events) for each in sides["b"]]
    (finding,) = judged(tmp_path / "states", sides, rule, "ledger: b, ").findings
    assert finding.explanation.startswith("the time ledger of b: ")
    assert finding.explanation.count(" %") == 3
    (holds,) = judged(tmp_path / "holds", sides, rule.replace("at: [a]", "at: [b]"), "ledger: b, ").findings
    assert (holds.judged.answer, holds.explanation) == ("holds", "")
