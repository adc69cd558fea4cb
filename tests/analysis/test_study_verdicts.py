"""Verdicts of a study: direction and size apart, several pairs together, equivalence, zeros, void runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from conftest import Golden
from damage import ask
from loadprint.commands.study import study_page, study_text
from loadprint.commands.study.observations import Observations
from loadprint.commands.study.study import StudyReport, judge
from loadprint.metrics import ledger_rows
from loadprint.statistics.several import best_candidates, equivalence, holm, zero_bound
from loadprint.statistics.stats import Estimate
from recordings import Host, make_execution
from scipy import stats as scipy_stats
from test_canary import line as canary_line
from test_study import study_of
from test_time_ledger import STATES as OF_SERVER
from test_time_ledger import host as with_states

Sides = dict[str, list[Host]]
BUSY_LOAD = {"0": {"user": 50, "idle": 50}, "1": {"user": 95, "idle": 5}}


def rates(**sides: list[int]) -> Sides:
    """Sides with these operations per second in each repeat."""
    return {name: [Host(seconds=4, events=event) for event in events] for name, events in sides.items()}


def judged(tmp_path: Path, sides: Sides, *rules: tuple[str, str]) -> list[StudyReport]:
    """Judge claims, each a rule and further keys, on one execution of these sides; a report for each."""
    tmp_path.mkdir(exist_ok=True)
    study = study_of(tmp_path, *(f"campaign: two, {claim}judge: {{{rule}}}" for rule, claim in rules))
    made = make_execution(tmp_path / "x", sides, next(iter(sides)), {}, {"name": "two"})
    report = judge(study, [made])
    return [replace(report, findings=(finding,)) for finding in report.findings]


def hosts(version: str, events: list[int]) -> list[Host]:
    variables = {"version": version, "port": "3306"}
    return [Host(seconds=4, events=event, variables=variables) for event in events]


# one pair of seven is below 1 with p = 0.03, as happens by chance in one of five such claims; six are equal
WEAK = rates(a=[981, 972, 963], b=[1000, 1000, 1000]) | {
    f"{name}{k}": [Host(seconds=4, events=event) for event in events]
    for k in range(6)
    for name, events in (("c", [1000, 1010, 1020]), ("d", [1001, 1008, 1021]))
}
WEAK |= rates(z=[500, 501, 502])
PAIRS = "[a, b], " + ", ".join(f"[c{k}, d{k}]" for k in range(6))
BETWEEN = "kind: between, row: operations, pairs: [[a, b]], low: 1"
RATIO = "kind: ratio, row: operations, side: b, against: a, published: "
EQUAL = "kind: equivalent, row: operations, pairs: [[a, b]], bound: "
CHANGE = "kind: sign change, row: operations, "
MAXIMUM = "kind: maximum, row: operations, at: [b], sides: "
ALL_BUT_Z = "[a, b, z, d0, d1, d2, d3, d4, d5]"
REAL = "kind: between, row: operations, pairs: [[real|native, b]], high: 1"
CLOSE = rates(a=[10010, 10000, 9990], b=[10000, 10000, 10000])
TWICE = rates(a=[100, 101, 102], b=[200, 201, 202])
BUSY = TWICE | {"a": [replace(run, cpus=BUSY_LOAD) for run in TWICE["a"]]}
NONE = {side: [Host(seconds=4, commits=0) for _ in range(3)] for side in ("a", "b")}
NATIVE = rates(native=[2000, 2001, 2002], b=[1000, 1001, 1002])
LATENCY = rates(a=[1000, 1001, 1002], b=[1500, 1501, 1502], c=[100, 101, 102])
STATES = LATENCY | {"b": [replace(with_states(), events=run.events) for run in LATENCY["b"]]}
OTHER = CHANGE + "below: [new, old], above: [new, old]"
SLOW, FAST = [1000, 1001, 1002], [1500, 1501, 1502]
EITHER = CHANGE + "below: [few, old], above: [many, old], either: true"
OLD = rates(old=[1000, 1000, 1001])
VERSIONS = 'servers: {old: "8.0.27", new: "8.0.32"}, '
CASES: dict[str, tuple[Sides, str, str]] = {
    "a ratio may hold in its direction and differ in its size": (
        rates(a=[100, 100, 100], b=[2500, 2570, 2640]),
        RATIO + "836",
        "scales: [published], ",
    ),
    "an effect in the other direction does not have the published size": (
        rates(a=[1000, 1001, 1002], b=[1110, 1111, 1112]),
        RATIO + "0.68",
        "",
    ),
    "nor does one whose interval contains 1": (
        rates(a=[1000, 1000, 1000], b=[1000, 960, 1010]),
        RATIO + "0.68",
        "",
    ),
    "an open claim is not the opposite": (rates(a=[900, 1000, 1100], b=[950, 1000, 1060]), BETWEEN, ""),
    "some more repeats decide": (rates(a=[1000, 1060, 1120], b=[1000, 1000, 1000]), BETWEEN, ""),
    "over 30 repeats are no plan": (rates(a=[700, 1020, 1400], b=[1000, 1000, 1000]), BETWEEN, ""),
    "an effect under 1 % has no plan": (rates(a=[1000, 1004, 1008], b=[1000, 1000, 1000]), BETWEEN, ""),
    "equivalent within the bound": (CLOSE, BETWEEN + ", bound: 0.01", ""),
    "no bound": (CLOSE, BETWEEN, ""),
    "equivalent although the interval excludes 1": (
        rates(a=[10021, 10020, 10019], b=[10000, 10000, 10000]),
        BETWEEN + ", bound: 0.01",
        "",
    ),
    "equivalence is claimed": (CLOSE, EQUAL + "0.01", ""),
    "equivalence is open": (CLOSE, EQUAL + "0.001", ""),
    "not equivalent": (rates(a=[10510, 10500, 10490], b=[10000, 10000, 10000]), EQUAL + "0.01", ""),
    "a pair alone": (WEAK, BETWEEN, ""),
    "the same pair and six others": (WEAK, f"kind: between, row: operations, pairs: [{PAIRS}], low: 1", ""),
    "the best of three": (WEAK, MAXIMUM + "[a, b, z]", ""),
    "the best of nine, by simultaneous bounds": (WEAK, MAXIMUM + ALL_BUT_Z, ""),
    "zeros have a Poisson bound": (NONE, "kind: level, row: commits, sides: [a], above: 0.1", ""),
    "zeros are below 1 /s": (NONE, "kind: level, row: commits, sides: [a], above: 1", ""),
    "two zeros are no ratio": (
        NONE,
        "kind: between, row: commits, pairs: [[a, b]], low: 1, bound: 0.5",
        "",
    ),
    "other servers": (
        {"old": hosts("10.11.19-MariaDB", SLOW), "new": hosts("9.7.4", FAST)},
        OTHER,
        VERSIONS,
    ),
    "the servers of the claim": (
        {"old": hosts("8.0.27", SLOW), "new": hosts("8.0.32", FAST)},
        OTHER,
        VERSIONS,
    ),
    "an order changes": (OLD | rates(few=[1500, 1501, 1502], many=[900, 901, 902]), EITHER, ""),
    "an order changes the other way around": (
        OLD | rates(few=[900, 901, 902], many=[1500, 1501, 1502]),
        EITHER,
        "",
    ),
    "no change of order": (OLD | rates(few=[900, 901, 902], many=[800, 801, 802]), EITHER, ""),
    "the side of the real tool": (NATIVE | rates(real=[500, 501, 502]), REAL, ""),
    "its native replacement": (NATIVE, REAL, "generators: [sysbench], "),
    "a client-bound side": (BUSY, RATIO + "2", ""),
    "a claim for which this does not matter": (BUSY, RATIO + "2", "despite: [client-bound], "),
    "a ledger without states": (LATENCY, MAXIMUM.replace("b", "a", 1) + "[a, b, c]", "ledger: b, "),
    "a ledger explains": (STATES, MAXIMUM.replace("b", "a", 1) + "[a, b, c]", "ledger: b, "),
    "nothing to explain": (STATES, MAXIMUM + "[a, b, c]", "ledger: b, "),
}


def test_verdicts(tmp_path: Path, golden: Golden) -> None:
    """The golden file has each claim as text, and its row and its reasons as on a page."""
    reports: dict[str, StudyReport] = {}
    for number, sides in {id(sides): sides for sides, _, _ in CASES.values()}.items():
        rules = {name: (rule, claim) for name, (of, rule, claim) in CASES.items() if of is sides}
        reports |= zip(rules, judged(tmp_path / str(number), sides, *rules.values()), strict=True)
    shown = []
    for name in CASES:
        report = reports[name]
        text = study_text.text(report).split("\n\n")
        page = [
            line for line in study_page.page(report).splitlines() if line.startswith(("| t (p)", "- *t*"))
        ]
        shown.append("\n".join([f"# {name}", *text[2:3], *page]))
    golden("study_verdicts.txt", "\n\n".join(shown) + "\n")


def test_equivalence_is_two_one_sided_tests() -> None:
    assert equivalence(Estimate(1.0, 0.996, 1.002), 0.01).equal
    assert equivalence(Estimate(1.0, 0.996, 1.002), 0.01).most == pytest.approx(1 / 0.996 - 1)
    assert equivalence(Estimate(1.05, 1.02, 1.08), 0.01).unequal
    undecided = equivalence(Estimate(1.01, 0.99, 1.03), 0.01)
    assert (undecided.equal, undecided.unequal) == (False, False)
    assert equivalence(Estimate(1.0), 0.01).most is None


def test_holm_is_that_of_its_paper() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == [True, False, False, True]
    assert holm([0.04, 0.04]) == [False, False]
    assert holm([0.02, 0.04]) == [True, True]
    assert holm([]) == []


def test_the_best_side_is_kept_with_the_nominal_chance() -> None:
    p = {(0, 1): 0.02, (0, 2): 0.5, (1, 0): 0.98, (1, 2): 0.5, (2, 0): 0.5, (2, 1): 0.5}
    assert best_candidates(3, lambda one, other: p[one, other]) == [False, True, True]
    assert best_candidates(3, lambda one, other: None) == [True, True, True]
    assert best_candidates(1, lambda one, other: 0.0) == [True]
    assert zero_bound(1.0) == pytest.approx(scipy_stats.chi2.ppf(0.975, 2) / 2)


def test_kinds_of_claims_are_counted_apart() -> None:
    lines = ask("study", "dynimize").out.splitlines()
    assert lines[1].startswith("  Dynimize, a commercial program, was not run")
    assert lines[-3:] == [
        "1 published: direction: 1 not comparable",
        "8 check of the method: direction: 8 not comparable",
        "1 computed from the published figures: direction: 1 holds",
    ]


def test_a_disturbed_run_supports_no_verdict_unless_it_is_accepted(tmp_path: Path) -> None:
    rule = "kind: between, row: operations, pairs: [[b, a]], low: 1"
    judged(tmp_path, TWICE, (rule, ""))
    run = next(path for path in (tmp_path / "x").iterdir() if (path / "run.json").is_file())
    (run / "manifest.json").unlink()
    texts = canary_line("before", 1_000, cpu=1_000_000) + canary_line("after", 9_000, cpu=1_200_000)
    (run / "server" / "canary.jsonl").write_text(texts, encoding="utf-8")
    for arguments, answer in (((), "undecided"), (("--accept-disturbed",), "holds")):
        shown = ask("study", tmp_path / "mine.yml", tmp_path / "x", "--format", "json", *arguments).document
        assert shown["claims"][0]["direction"]["answer"] == answer
        assert "disturbed according to the canary" in shown["no_verdict"][0]


def test_reasons_of_void_runs_are_printed_once(tmp_path: Path) -> None:
    (report,) = judged(tmp_path, BUSY, (RATIO + "2", ""))
    assert study_page.page(report).count("its CPUs 95 %") == 1


LARGEST = "on CPU, user 17 %, network 14 %, run queue 14 % of the latency"


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (with_states(), LARGEST),
        (
            # 0.7 of the 3.5 operations in progress
            with_states(
                {name: of for name, of in OF_SERVER.items() if name not in ("lock", "flush redo log")}
            ),
            f"{LARGEST}; does not close: 20 % unexplained, between the ends",
        ),
        (
            # other clients have connections
            with_states(OF_SERVER | {"client": 2.0}),
            f"{LARGEST}; does not close: -20 % thread time not recorded",
        ),
    ],
)
def test_a_ledger_has_no_sum_next_to_its_parts_and_what_does_not_close(
    tmp_path: Path, made: Host, text: str
) -> None:
    path = make_execution(tmp_path / "x", {"a": [made], "b": [with_states()]}, "a")
    assert Observations(path).ledger("a") == f"the time ledger of a: {text}"


def test_a_ledger_keeps_the_footnotes_of_its_rows(tmp_path: Path) -> None:
    path = make_execution(tmp_path / "x", {"a": [with_states(), Host()]}, "a")
    marked = (
        "user 17 %¹, network 14 %², run queue 14 %¹ of the latency; ¹ missing in b2-a-r2, 1 of 2 repeats: "
    )
    assert marked in Observations(path).ledger("a")


@pytest.mark.parametrize(
    ("recorded", "found"),
    [
        (
            {"latency", "client_cpu", "waiting", "user", "unexplained", "not_recorded"},
            {"user", "unexplained"},
        ),
        ({"latency", "client_cpu", "waiting", "user", "disk_flush"}, {"waiting"}),
        ({"latency", "client_cpu", "user", "network"}, {"user", "network"}),
    ],
)
def test_terms_of_a_ledger_are_the_wait_or_its_parts(recorded: set[str], found: set[str]) -> None:
    assert ledger_rows.terms(recorded) == found | {"client_cpu"}
