"""Claims of published studies: the published figures hold, reversed ones differ, the rest has a reason."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from conftest import Golden
from damage import ask, refused
from loadprint.commands.study import computed, study_file, study_page, study_text
from loadprint.commands.study.claim_verdicts import Judged
from loadprint.commands.study.observations import Absent, Observations
from loadprint.commands.study.side_ratios import ratio_of
from loadprint.commands.study.study import StudyReport, judge
from loadprint.errors import InputError
from loadprint.rendering.printout import WIDTH
from published import arm_cells, inserts
from reads import known, table_of
from recordings import Host, change_json, make_execution, write_json, write_manifest

MYARM = "myarm-inserts"
RECORDINGS = Path(__file__).parents[1] / "recordings" / "v1"


def answers(report: StudyReport) -> dict[str, str]:
    return {finding.claim.id: finding.judged.answer for finding in report.findings}


def study_of(tmp_path: Path, *claims: str, head: str = "") -> str:
    """A study file with these claims."""
    path = tmp_path / "mine.yml"
    fixed = "text: t, place: p, published: '1'"
    listed = ", ".join(f"{{id: a{number}, {fixed}, {claim}}}" for number, claim in enumerate(claims))
    path.write_text(f"title: t\nsource: s\n{head}claims: [{listed}]\n", encoding="utf-8")
    return str(path)


def judged(tmp_path: Path, execution: Path, *claims: str) -> list[Judged]:
    """How each claim is judged; the execution is read once."""
    return [finding.judged for finding in judge(study_of(tmp_path, *claims), [execution]).findings]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six cells: 510 to 512 operations/s with one connection, 1,276 to 1,278 with four."""
    rates = {(1, "simple"): 510.0, (4, "simple"): 1276.0, (1, "parent"): 450.0, (1, "ctx1"): 401.0}
    return inserts(tmp_path_factory.mktemp("small") / "x", rates | {(1, "ctx20"): 163.0}, repeats=3)


@pytest.fixture(scope="module")
def on_one_core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three cells; two connections have the highest rate. The server has one core of two."""
    rates = {(1, "simple"): 510.0, (2, "simple"): 1276.0, (4, "simple"): 450.0}
    execution = inserts(tmp_path_factory.mktemp("cores") / "x", rates, repeats=3)
    for run in execution.glob("b*"):
        placed(run, ("0", "1"), "0")
    return execution


def test_every_study_is_valid_and_names_campaigns_checks_and_rows_that_exist() -> None:
    studies = {name: study_file.read(name) for name in study_file.names()}
    assert len(studies) == 5
    assert sum(len(study.claims) for study in studies.values()) >= 35
    for name, study in studies.items():
        for claim in study.claims:
            assert claim.published, f"{name} {claim.id}"
            if isinstance(claim.judge, computed.Computed):
                assert claim.judge.check in computed.CHECKS


def test_texts_of_a_study_are_one_line_each(tmp_path: Path) -> None:
    text = (study_file.STUDIES / "dynimize.yml").read_text(encoding="utf-8")
    path = tmp_path / "a.yml"
    path.write_text(text.replace("title: ", 'title: "A\\n\\tB" #', 1), encoding="utf-8")
    assert ask("study", path).out.splitlines()[0].endswith(": A B")


def test_the_published_table_supports_its_own_claims_in_every_format(tmp_path: Path) -> None:
    """At 1, 4 and 12 connections, three repeats."""
    cells = {place: rate for place, rate in arm_cells().items() if place[0] in {1, 4, 12}}
    report = judge(MYARM, [inserts(tmp_path / "x", cells, repeats=3)])
    expected = {"prefer-context-tables": "differs"}
    expected |= dict.fromkeys(("twelve-connections", "decrease-above"), "undecided")
    missing = ("best-connections", "ten-to-fourteen", "shape", "prefer-context")
    expected |= dict.fromkeys(missing, "not comparable")
    found = answers(report)
    assert found == dict.fromkeys(found, "holds") | expected
    text = study_text.text(report)
    assert max(map(len, text.splitlines())) <= WIDTH
    assert text.endswith(
        "3 published: direction: 1 holds, 2 not comparable\n"
        "3 computed from the published figures: direction: 1 holds, 2 undecided\n"
        "7 our reading: direction: 2 holds, 1 differs, 2 not comparable; size: 3 holds\n"
    )
    listed = json.loads(study_text.as_json(report))["claims"]
    directions = [verdict["direction"]["answer"] for verdict in listed if verdict["direction"]]
    assert directions.count("holds") == 4
    assert study_page.page(report).count("\n| ") == len(listed) + 3


def test_a_table_upside_down_contradicts_them(tmp_path: Path) -> None:
    cells = {place: 1e7 / rate for place, rate in arm_cells().items() if place[0] in {1, 4, 12}}
    judged = answers(judge(MYARM, [inserts(tmp_path / "x", cells, repeats=3)]))
    for claim in ("connections-matter", "order", "context-against-metrics"):
        assert judged[claim] == "differs", claim


KINDS = {
    "kind: rank, least: 0.9, cells: {simple-t1: 9, parent-t1: 8, ctx1-t1: 7, ctx20-t1: 1}": "holds",
    "kind: rank, least: 0.9, cells: {simple-t1: 1, parent-t1: 7, ctx1-t1: 8, ctx20-t1: 9}": "differs",
    "kind: maximum, sides: [simple-t1, simple-t4, ctx1-t1], at: [simple-t4]": "holds",
    "kind: maximum, sides: [simple-t1, simple-t4, ctx1-t1], at: [ctx1-t1]": "differs",
    'kind: maximum, sides: [simple-t1, simple-t4, ctx1-t1], at: ["simple-t{max}"]': "holds",
    'kind: between, pairs: [["simple-t{max}", "simple-t{min}"]], low: 2.4, high: 2.6': "holds",
    "kind: level, sides: [simple-t1, simple-t4], above: 400": "holds",
    "kind: level, sides: [simple-t1, simple-t4], below: 600": "differs",
    "kind: level, sides: [simple-t1], above: 511": "undecided",
    "kind: sign change, below: [ctx1-t1, simple-t1], above: [simple-t4, ctx1-t1]": "holds",
    "kind: sign change, below: [simple-t1, ctx1-t1], above: [simple-t4, ctx1-t1]": "differs",
    "kind: linear, least: 0.98, at: {simple-t1: 0, ctx1-t1: 20, ctx20-t1: 1}": "differs",
    "kind: linear, least: 0.98, at: {simple-t1: 0, parent-t1: 60, ctx1-t1: 109, ctx20-t1: 347}": "differs",
    "kind: linear, least: 0.98, at: {simple-t1: 347, parent-t1: 287, ctx1-t1: 238, ctx20-t1: 0}": "holds",
    "kind: between, pairs: [[simple-t4, simple-t1]], low: 2.4, high: 2.6": "holds",
    "kind: between, pairs: [[simple-t4, simple-t1]], high: 2.5": "undecided",
    "kind: order, sides: [simple-t4, simple-t1, ctx1-t1]": "holds",
}


def test_kinds_of_judgement(small: Path, tmp_path: Path) -> None:
    claims = [f"campaign: insert-scaling, judge: {{row: operations, {rule}}}" for rule in KINDS]
    answers = [claim.answer for claim in judged(tmp_path, small, *claims)]
    assert dict(zip(KINDS, answers, strict=True)) == KINDS


OF_EXPERIMENT = {
    "judge: {kind: effect, quantity: cpu, change: rises}": "holds",
    "judge: {kind: effect, quantity: cpu, change: falls}": "differs",
    "judge: {kind: effect, quantity: queries, change: stays, bound: 0.5}": "holds",
    "judge: {kind: effect, quantity: queries, change: falls, bound: 0.5}": "equivalent",
    "judge: {kind: undone, seconds: 60}": "holds",
    "judge: {kind: undone, seconds: 0.000001}": "differs",
    "judge: {kind: restored}": "holds",
    # a case in which it is not so does not refute a possibility
    "possible: true, judge: {kind: effect, quantity: cpu, change: rises}": "holds",
    "possible: true, judge: {kind: effect, quantity: cpu, change: falls}": "undecided",
}


def test_an_ab_experiment_is_judged(tmp_path: Path) -> None:
    """The kept experiment on a live server: an index was hidden at a fixed arrival rate."""
    claims = [f"experiment: hidden-index, {rule}" for rule in OF_EXPERIMENT]
    answers = [claim.answer for claim in judged(tmp_path, RECORDINGS / "hidden-index", *claims)]
    assert dict(zip(OF_EXPERIMENT, answers, strict=True)) == OF_EXPERIMENT


def test_only_a_direction_has_an_opposite(tmp_path: Path) -> None:
    reasons = {
        "effect, quantity: cpu, change: falls": "direction: differs; the interval supports the opposite",
        "effect, quantity: cpu, change: stays, bound: 0.01": "size: differs; the whole interval is beyond",
        "undone, seconds: 0.000001": "size: differs; over 1e-06 s",
    }
    study = study_of(tmp_path, *(f"experiment: hidden-index, judge: {{kind: {rule}}}" for rule in reasons))
    text = study_text.text(judge(study, [RECORDINGS / "hidden-index"]))
    assert all(reason in text for reason in reasons.values())
    assert text.count("opposite") == 1


def test_a_study_with_a_stand_in_has_no_published_verdict(tmp_path: Path) -> None:
    """The product did not run: its verdict is one on the method, in every format and on every figure."""
    drawn = "figures: [{kind: windows, title: Rates, experiment: hidden-index, quantity: queries}]\n"
    rule = "experiment: hidden-index, judge: {kind: effect, quantity: cpu, change: falls}"
    study = study_of(tmp_path, rule, head=f"stand_in: an index was hidden in its place\n{drawn}")
    report = judge(study, [RECORDINGS / "hidden-index"])
    text, shown = study_text.text(report), json.loads(study_text.as_json(report))
    assert text.splitlines()[1] == "  an index was hidden in its place"
    assert "\ncheck of the method: differs: t\n" in text
    assert "direction: check of the method: differs; the interval" in text
    assert text.endswith("\n1 check of the method: direction: 1 differs\n")
    assert (shown["stand_in"], shown["claims"][0]["basis"]) == (
        text.splitlines()[1].strip(),
        study_file.CHECK,
    )
    page = written(tmp_path / "page.md", study, RECORDINGS / "hidden-index")
    assert "| **check of the method: differs** | – |" in page
    assert "published: direction" not in page
    assert "Rates (check of the method)" in (tmp_path / "page-1.svg").read_text(encoding="utf-8")
    ratios = "figures: [{kind: ratios, title: t, campaign: two}]\n"
    with pytest.raises(InputError, match="no published figures are drawn"):
        study_file.read(study_of(tmp_path, rule, head=f"stand_in: x\n{ratios}"))


def test_the_best_number_of_connections_by_cores(on_one_core: Path, tmp_path: Path) -> None:
    """Two connections are best, for a server on one core of a host with two."""
    answers = {
        "per_core: [1.0, 1.4]": "differs",
        'at: ["simple-t{cores}"]': "differs",
        "per_core: [2, 2.8]": "holds",
        "per_core: [5, 7]": "no compared side has 5 to 7 connections per core of 1 core",
        'at: ["simple-t{cores}", simple-t3]': "simple-t3 is not one of the compared sides",
    }
    sides = "kind: maximum, row: operations, sides: [simple-t1, simple-t2, simple-t4]"
    claims = [f"campaign: insert-scaling, judge: {{{sides}, {rule}}}" for rule in answers]
    for claim, answer in zip(judged(tmp_path, on_one_core, *claims), answers.values(), strict=True):
        verdict = claim.verdicts[0]
        assert answer in (verdict.answer, verdict.reason)


APART, SIBLINGS = ("0", "1", "2", "3"), ("0-1", "0-1", "2-3", "2-3")


@pytest.mark.parametrize(
    ("threads", "cpus", "cores"),
    [
        (APART, "0", 1),
        (APART, "0-1", 2),
        (SIBLINGS, "0-1", 1),
        (SIBLINGS, "0,2", 2),
        (SIBLINGS, None, 2),
        ((None,) * 4, "0", None),
    ],
)
def test_cores_are_those_of_the_servers_cpus(
    tmp_path: Path, threads: tuple[str | None, ...], cpus: str | None, cores: int | None
) -> None:
    execution = make_execution(tmp_path / "x", {"t1": [Host(seconds=4)], "t2": [Host(seconds=4)]}, "t1")
    for run in execution.glob("b*"):
        placed(run, threads, cpus)
    seen = Observations(execution)
    assert (seen.cores, "10 cores" in seen.hardware) == (cores, False)
    assert seen.resolved("t{cores}") == f"t{cores or '{cores}'}"
    if cores is None:
        with pytest.raises(
            Absent, match=r"no side t\{cores\}; the cores of the server's CPUs were not recorded"
        ):
            seen.values("operations", "t{cores}")


def placed(run: Path, threads: Sequence[str | None], cpus: str | None) -> None:
    """Give the host of a run CPUs with these sibling lists, and the server some of them, or all."""
    (run / "manifest.json").unlink()
    change_json(run / "run.json", roles={"server": {"host": "db1", **({"cpus": cpus} if cpus else {})}})
    listed = [{"cpu": cpu, "siblings": siblings} for cpu, siblings in enumerate(threads)]
    described = {"cores": 10, "list": listed}
    change_json(run / "server" / "fingerprint.json", cpus=described, cpusets={})


def test_few_repeats_decide_nothing_and_more_are_planned(tmp_path: Path) -> None:
    cells = {place: rate for place, rate in arm_cells().items() if place[0] == 12}
    report = judge(MYARM, [inserts(tmp_path / "x", cells, repeats=2)])
    judged = {finding.claim.id: finding.judged for finding in report.findings}
    assert judged["parent-correlator"].answer == "undecided"
    assert judged["context-against-metrics"].answer == "undecided"
    assert judged["context-against-metrics"].verdicts[0].more == 1


def test_a_missing_side_has_its_reason(tmp_path: Path) -> None:
    cells = {place: rate for place, rate in arm_cells().items() if place[0] == 12 and place[1] != "ctx20"}
    report = judge(MYARM, [inserts(tmp_path / "x", cells, repeats=3)])
    order = next(finding.judged for finding in report.findings if finding.claim.id == "order")
    assert order.verdicts[0].reason == "the execution has no side ctx20-t12"
    assert order.answer == "not comparable"


# The SAR table of the blog: percent of CPU, kB/s of disk and network and switches per second in hundredths.
BLOG = {
    "oltp": ({"user": 38, "system": 10, "iowait": 37, "idle": 15}, (50_707, 18_088), (764, 13_518), 161),
    "tproc_c": ({"user": 92, "system": 3, "softirq": 1, "idle": 4}, (285, 4_961), (454, 694), 32),
}


def blog(path: Path) -> Path:
    sides = {}
    for name, (cpu, (read, written), (received, sent), switches) in BLOG.items():
        disk = {"reads": read // 32, "read_sectors": read * 2, "read_ms": read, "writes": written // 32}
        disk |= {
            "write_sectors": written * 2,
            "write_ms": written,
            "io_ms": 900,
            "weighted_ms": read + written,
        }
        nic = {"rx_bytes": received * 1024, "rx_packets": 900, "tx_bytes": sent * 1024, "tx_packets": 900}
        ticks = {"utime": cpu["user"], "stime": cpu["system"]}
        sides[name] = [
            Host(
                cpus={"0": cpu, "1": {"idle": 100}},
                disks={"vda": {**disk, "writes": disk["writes"] + repeat}},
                nics={"veth0": nic, "lo": {}},
                server_ticks=ticks,
                switches=switches * 100,
            )
            for repeat in range(3)
        ]
    return make_execution(path, sides, "tproc_c", {}, {"name": "hammerdb-vs-sysbench"})


def test_the_published_sar_rows_lead_to_both_conclusions_of_the_blog(tmp_path: Path) -> None:
    report = judge("hammerdb-blog", [blog(tmp_path / "x")])
    judged = {finding.claim.id: finding.judged for finding in report.findings}
    assert judged["engine"].answer == "holds", judged["engine"]
    assert judged["saturates"].answer == "holds", judged["saturates"]
    assert judged["storage-and-network"].answer == "holds", judged["storage-and-network"]
    for claim in ("usr", "sys", "idle", "kernel-mode", "sent", "disk-read", "disk-written"):
        assert judged[claim].answer == "holds", claim
        size = known(judged[claim].size)
        assert "needs the scale published" in size.reason
        assert "native workloads in place of sysbench and hammerdb" in size.reason
    # neither tool ran
    kinds = {
        finding.claim.kind
        for finding in report.findings
        if finding.claim.generators and finding.judged.measured
    }
    assert kinds == {study_file.CHECK}
    assert judged["versions"].needs == "./characterize -e campaign=versions"


def test_executions_that_the_study_does_not_use_are_refused(small: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is an execution of insert-scaling; go-lookups uses"):
        judge("go-lookups", [small])
    with pytest.raises(InputError, match=r"is a second execution of insert-scaling"):
        judge(MYARM, [small, small])
    with pytest.raises(InputError, match=r"contains no execution\.json"):
        judge(MYARM, [tmp_path])
    with pytest.raises(InputError, match=r"is not a study; give one of dynimize, go-lookups"):
        judge("no-study", [])


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("judge: {kind: ratios, row: operations}", "judge: unknown kind \"ratios\"; use one of 'ratio'"),
        ("judge: {row: operations}", "claims.0.judge: key 'kind' is missing"),
        ("judge: {kind: restored, seconds: 1}", "claims.0.judge.restored; valid keys: kind"),
        ("basis: ours\n    judge: {kind: restored}", "claims.0.basis: Input should be 'published'"),
        ("judge: {kind: between, row: operations, pairs: [[a, b]]}", "give `low`, `high`, or both"),
        ("judge: {kind: ratio, row: operations, side: a, against: b, published: 1}", "has no direction"),
        ("judge: {kind: maximum, row: operations, sides: [a, b, c]}", "give one of `at` and `per_core`"),
        ("judge: {kind: effect, quantity: cpu, change: stays}", "give `bound`"),
        ("judge: {kind: level, row: operations, sides: [a]}", "give one of `above` and `below`"),
        ("judge: {kind: computed, check: mean_of_builds}\n    campaign: quick", "only for such a claim"),
    ],
)
def test_a_wrong_study_file_is_one_line(tmp_path: Path, line: str, text: str) -> None:
    path = tmp_path / "mine.yml"
    claim = f"- id: a\n    text: t\n    place: p\n    published: '1'\n    {line}\n"
    path.write_text(f"title: t\nsource: s\nclaims:\n  {claim}")
    message = refused("study", path)
    assert f"{path}:" in message
    assert text in message


def test_the_command() -> None:
    assert "claims in 5 studies" in ask("study", "--list").out
    assert "holds" in ask("study", "dynimize").out


def written(page: Path, study: str, execution: Path) -> str:
    """The page of a study, with its figures next to it."""
    assert ask("study", study, execution, "--page", page).out == ""
    return page.read_text(encoding="utf-8")


def test_a_page_of_a_kept_execution_of_the_real_tools(tmp_path: Path, golden: Golden) -> None:
    golden("study.md", written(tmp_path / "hammerdb-blog.md", "hammerdb-blog", RECORDINGS / "external"))
    figure = (tmp_path / "hammerdb-blog-1.svg").read_text(encoding="utf-8")
    assert "iowait" in figure
    assert "published" in figure
    assert not (tmp_path / "hammerdb-blog-2.svg").exists(), "no execution of versions was given"


def test_figures_have_lines_of_all_sides_but_those_without_threads(small: Path, tmp_path: Path) -> None:
    """Next to the published lines."""
    execution = Path(shutil.copytree(small, tmp_path / "x"))
    document = json.loads((execution / "execution.json").read_text(encoding="utf-8"))
    del next(iter(document["sides"].values()))["threads"]
    write_json(execution / "execution.json", document)
    assert "](page-1.svg)" in written(tmp_path / "page.md", MYARM, execution)
    figure = (tmp_path / "page-1.svg").read_text(encoding="utf-8")
    assert all(name in figure for name in ("measured here", "published", "ctx20", "parent"))


def test_an_experiment_has_bars(tmp_path: Path) -> None:
    drawn = "figures: [{kind: windows, title: Rates, experiment: hidden-index, quantity: efficiency}]\n"
    study = study_of(tmp_path, "experiment: hidden-index, judge: {kind: restored}", head=drawn)
    written(tmp_path / "page.md", study, RECORDINGS / "hidden-index")
    figure = (tmp_path / "page-1.svg").read_text(encoding="utf-8")
    assert "queries per CPU-second" in figure


def test_unusable_input_is_one_line(tmp_path: Path) -> None:
    unknown = study_of(tmp_path, "judge: {kind: computed, check: nothing}")
    for words, text in (
        ([], "no study given"),
        (["dynimize", "--page", tmp_path / "no" / "page.md"], "/no: No such file or directory"),
        ([unknown], "no such calculation; name one of printed_ratios"),
    ):
        assert text in refused("study", *words)


def test_repeats_are_paired_only_if_no_one_lacks_the_row(tmp_path: Path) -> None:
    """Else the values of different blocks are compared, because both sides can have the same number."""
    execution = make_execution(tmp_path / "x", {"a": [Host()] * 4, "b": [Host()] * 4}, "a")
    assert ratio_of(Observations(execution), "commits", "b", "a").paired
    for run in ("b2-a-r2", "b3-b-r3"):
        change_json(execution / run / "load/result.json", commits=None)
        write_manifest(execution / run)
    assert not ratio_of(Observations(execution), "commits", "b", "a").paired


def test_intervals_of_a_campaign_by_precision_are_as_wide_as_in_the_table(tmp_path: Path) -> None:
    """Six starts, of which a precision decided on the last: the interval is that of compare."""
    sides = {
        name: [Host(events=base + 3 * k % 7) for k in range(6)] for name, base in (("a", 500), ("b", 520))
    }
    execution = make_execution(tmp_path / "x", sides, "a", campaign={"precision": 0.05})
    row = known(table_of(execution).row("operations"))
    ratio = known(ratio_of(Observations(execution), "operations", "b", "a").value)
    versus = known(row.versus[1])
    assert (ratio.centre, ratio.low, ratio.high) == pytest.approx((versus.centre, versus.low, versus.high))
