"""A/B figures: the published sample, a kept experiment, known truths by simulation, gates, what TB hides."""

from __future__ import annotations

import csv
import io
import json
import math
import shutil
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from damage import ask
from loadprint.commands.ab import ab_published, ab_text, conduct, show
from loadprint.commands.ab.analysis import analyse
from loadprint.commands.ab.experiment import Gates
from loadprint.commands.ab.gates import mix_distance
from loadprint.commands.ab.inference import carry_over, drift, sign_flip
from loadprint.commands.ab.result import AbWindow, Result
from loadprint.commands.ab.schedule import smallest_p
from loadprint.commands.study.experiments import OneFactor, StudyExperiment
from loadprint.reading.names import BASELINE, TREATMENT
from reads import known
from recordings import change_lines
from scipy.stats import permutation_test

SAMPLE = Path(__file__).parents[2] / "docs" / "published" / "dynimize_sample.csv"
ABBA = "BTTB"


def windows(
    cpu: Sequence[float], order: str = ABBA, *, kinds: dict[str, float] | None = None, busy: float = 0.5
) -> list[AbWindow]:
    """Windows at 1000 queries/s that used `cpu` cores; letters of `order` repeat block by block."""
    variants = [TREATMENT if order[n % len(order)] == "T" else BASELINE for n in range(len(cpu))]
    before = [None, *variants]
    return [
        AbWindow(
            n + 1,
            n // len(order) + 1,
            variants[n],
            before[n],
            35.0 * n,
            35.0 * n + 30,
            1000.0,
            used,
            commits=50.0,
            rows=9000.0,
            host_busy=busy,
            connections=40.0,
            kinds=kinds or {"Com_select": 27_000.0, "Com_update": 3000.0},
        )
        for n, used in enumerate(cpu)
    ]


def analysed(given: Sequence[AbWindow], limits: Gates | None = None, schedule: str = "ABBA") -> Result:
    return analyse(given, limits or Gates(), Result("x", "", schedule))


def test_the_published_sample_is_worked_out_anew_and_says_what_it_cannot() -> None:
    result = ab_published.read(SAMPLE)
    ratios = {effect.key: effect.ratio for effect in result.effects}
    assert ratios["queries"] == pytest.approx(1.38471, abs=5e-6)
    assert ratios["cpu"] == pytest.approx(0.987822, abs=5e-7)
    assert ratios["queries_per_cpu_second"] == pytest.approx(1.40178, abs=5e-6)
    assert result.schedule == "TB"
    assert result.verdict == "undecided"
    assert all(effect.low is None and effect.high is None for effect in result.effects)
    assert [check.state for check in result.checks if check.name.startswith("ratio of")] == ["passed"] * 3
    assert any("drift" in warning for warning in result.warnings)


def test_a_wrong_printed_ratio_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(SAMPLE.read_text(encoding="utf-8").replace("1.40178", "1.40278"), encoding="utf-8")
    assert "failed    ratio of combined_improvement_factor" in ask("ab", "show", path).out


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("quantity,without", "quantity,before", ":1: not the header"),
        ("qps,28627.5", "qps,fast", ":2: 'fast' is not a positive number"),
        ("cpu_percent", "cpu", ":3: unknown quantity 'cpu'"),
        ("qps,28627.5,39640.9,1.38471\n", "", "has no row qps"),
    ],
)
def test_a_table_that_cannot_be_used_is_one_line(tmp_path: Path, old: str, new: str, says: str) -> None:
    path = tmp_path / "table.csv"
    path.write_text(SAMPLE.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    assert says in ask("ab", "show", path).line


def test_sign_flips_are_those_of_scipy() -> None:
    d = np.random.default_rng(3).normal(0.4, 1, 9)
    exact = permutation_test((d,), np.mean, permutation_type="samples", n_resamples=np.inf)
    assert sign_flip(list(d)) == pytest.approx(exact.pvalue)
    assert sign_flip([0.1, 0.2, 0.3]) == smallest_p(3) == 0.25
    assert sign_flip([]) is None


def test_many_blocks_are_drawn_and_agree_with_all_patterns() -> None:
    d = np.random.default_rng(4).normal(0.3, 1, 21)
    everything = np.zeros(1)
    for value in d:
        everything = np.concatenate((everything + value, everything - value))
    exact = float((np.abs(everything) >= abs(d.sum()) - 1e-9).mean())
    drawn = known(sign_flip(list(d)))
    assert drawn == pytest.approx(exact, abs=5 * math.sqrt(exact * (1 - exact) / (1 << 17)))


@pytest.mark.slow
def test_intervals_cover_and_a_a_alarms_come_at_the_nominal_rate() -> None:
    """Blocks with their own level, windows with noise, a drift that ABBA cancels: 1000 experiments each."""
    random = np.random.default_rng(11)
    for truth in (1.0, 1.05):
        covered = alarms = 0
        for _ in range(1000):
            blocks = np.repeat(random.normal(0, 0.1, 6), 4)
            treated = np.array([letter == "T" for letter in ABBA * 6])
            logs = blocks + treated * math.log(truth) + 0.01 * np.arange(24) + random.normal(0, 0.02, 24)
            given = windows([float(v) for v in np.exp(-logs)])
            actual = known(analysed(given, Gates(load_difference=9)).effect("queries_per_cpu_second"))
            covered += known(actual.low) <= truth <= known(actual.high)
            alarms += known(actual.p_sign) <= 0.05
        assert 0.93 <= covered / 1000 <= 0.97
        assert alarms / 1000 < 0.055 if truth == 1 else alarms / 1000 > 0.8


def test_a_big_effect_is_better_and_its_regime_is_load_driven() -> None:
    noise = np.exp(np.random.default_rng(5).normal(0, 0.01, 16))
    result = analysed(windows([(0.8 if ABBA[n % 4] == "T" else 1.0) * noise[n] for n in range(16)]))
    headline = known(result.effect("queries_per_cpu_second"))
    assert headline.ratio == pytest.approx(1.25, rel=0.02)
    assert (result.verdict, result.regime) == ("better", "load-driven")
    assert "1.2" in result.sentence
    saturated = analysed(windows([(0.8 if ABBA[n % 4] == "T" else 1.0) for n in range(16)], busy=0.95))
    assert saturated.regime == "saturation"


def test_drift_and_carry_over_are_found_where_they_are() -> None:
    random = np.random.default_rng(6)
    treated = [letter == "T" for letter in ABBA * 8]
    after = [False, *treated[:-1]]
    blocks = [n // 4 for n in range(32)]
    noise = random.normal(0, 0.005, 32)
    logs = noise + 0.05 * np.array(treated) + 0.01 * np.arange(32)
    slope = known(drift(list(logs), treated, list(range(32))))
    assert slope.low < 0.01 < slope.high
    assert slope.p < 0.001
    carried = known(carry_over(list(logs), treated, after, blocks))
    assert carried.low < 0 < carried.high
    carried = known(carry_over(list(logs + 0.03 * np.array(after)), treated, after, blocks))
    assert carried.low < 0.03 < carried.high
    assert carried.p < 0.001


def test_tb_cannot_test_carry_over_and_says_so() -> None:
    given = windows([1.0, 1.1, 1.02, 1.11, 1.01, 1.12, 1.0, 1.1], "TB")
    result = analysed(given, schedule="TB")
    assert next(check for check in result.checks if check.name == "carry-over").state == "untested"
    assert any("carry-over cannot be tested" in warning for warning in result.warnings)


def changed(given: list[AbWindow], number: int, **values: object) -> list[AbWindow]:
    return [AbWindow(**{**vars(w), **values}) if w.number == number else w for w in given]


def with_fixed_work(given: list[AbWindow], **other: float) -> list[AbWindow]:
    """Every gap takes 1 ms of CPU time, and those of the named windows (`w6`) another time."""
    return [replace(w, fixed_work_ns=other.get(f"w{w.number}", 1e6)) for w in given]


@pytest.mark.parametrize(
    ("values", "check", "text"),
    [
        ({"kinds": {"Com_select": 20_000.0, "Com_update": 10_000.0}}, "statement mix", "(6T and"),
        ({"queries": 700.0}, "load", "\u221230.0 % off the median (queries/s of 6T)"),
        ({"connections": 400.0}, "load", "(connections of 6T)"),
        ({"host_busy": 0.1}, "high CPU", "at least 10 % busy (6T)"),
    ],
)
def test_what_follows_from_the_load_is_reported_and_excludes_nothing(
    values: dict[str, Any], check: str, text: str
) -> None:
    plain = windows([1.0, 0.8, 0.8, 1.0] * 5)
    result = analysed(changed(plain, 6, **values), Gates(min_cpu=0.2))
    assert (result.blocks, result.blocks_used, result.excluded) == (5, 5, {})
    failed = next(candidate for candidate in result.checks if candidate.name == check)
    assert failed.state == "failed"
    assert text in failed.text
    assert f"{check}: {failed.text}" in result.warnings
    assert result.with_excluded == ()


def test_an_effect_on_the_throughput_of_a_closed_loop_drops_no_block() -> None:
    """Queries vary from block to block more than the limit of the load: the effect is in all nine blocks."""
    random = np.random.default_rng(12)
    given = windows([1.0] * 36)
    level = np.exp(np.repeat(random.normal(0, 0.3, 9), 4))
    given = [
        replace(w, queries=1000 * float(level[w.block - 1]) * (1.47 if w.variant == TREATMENT else 1.0))
        for w in given
    ]
    result = analysed(given)
    queries = known(result.effect("queries"))
    assert result.blocks_used == 9
    assert queries.ratio == pytest.approx(1.47)
    assert next(check for check in result.checks if check.name == "load").state == "failed"


def test_fixed_work_takes_cpu_time() -> None:
    assert 1e4 < conduct.fixed_work_ns() < 1e9


def test_another_speed_of_the_machine_excludes_the_block_in_both_variants_alike() -> None:
    plain = windows([1.0, 0.8, 0.8, 1.0] * 5)
    for number, name in ((6, "6T"), (5, "5B")):
        result = analysed(with_fixed_work(plain, **{f"w{number}": 1.3e6}))
        assert (result.blocks, result.blocks_used) == (5, 4)
        assert result.excluded[number] == "the fixed work before it took +30 % CPU time: another speed"
        assert result.excluded[8] == f"its block contains window {name}"
        assert "1 of 5 blocks are excluded" in result.sentence
        assert [effect.blocks for effect in result.with_excluded][:3] == [5, 5, 5]
        assert "With the excluded blocks:" in ab_text.RENDERERS["text"](result)
        assert "With the excluded blocks:" in ab_text.RENDERERS["markdown"](result)
    shifted = {f"w{w.number}": 1.5e6 for w in plain if w.variant == TREATMENT}
    assert analysed(with_fixed_work(plain, **shifted)).excluded == {}, "an effect of the treatment"
    slow = analysed(with_fixed_work(plain, w6=1.3e6), Gates(fixed_work=0.5))
    assert slow.blocks_used == 5


def test_an_effect_within_two_percent_is_equivalent_and_a_wide_one_is_undecided() -> None:
    equal = analysed(windows([1.0, 1.002, 0.999, 1.0] * 4))
    assert equal.verdict == "equivalent"
    assert equal.sentence.startswith(
        "Treatment is equivalent within 2 %: 0.9995 × the queries per CPU-second ["
    )
    wide = analysed(windows([1.0, 0.9, 0.95, 1.0, 1.0, 1.1, 1.06, 1.0] * 2))
    assert wide.verdict == "undecided"
    assert wide.sentence.endswith(" more blocks would show a 5 % difference."), wide.sentence


def test_without_a_block_left_it_is_not_measured_and_shows_what_was_excluded() -> None:
    plain = windows([1.0, 0.8, 0.8, 1.0] * 4)
    result = analysed(with_fixed_work(plain, w1=2e6, w5=2e6, w9=2e6, w14=2e6))
    assert (result.verdict, result.blocks_used) == ("not measured", 0)
    assert result.sentence == "Not measured: all blocks are excluded (4 of 4)."
    text = ab_text.RENDERERS["text"](result)
    assert "no usable block" in text
    assert "1.2500" in text.partition("With the excluded blocks:")[2]
    assert json.loads(ab_text.RENDERERS["json"](result))["effects"][0]["ratio"] is None
    assert analysed([]).sentence == "Not measured: no window was completed."


def test_too_few_matching_windows_are_not_measured_never_silent() -> None:
    result = analysed(with_fixed_work(windows([1.0, 0.8, 0.8, 1.0] * 4), w1=2e6, w5=2e6))
    assert result.verdict == "not measured"
    assert "2 of 4 blocks are excluded" in result.sentence


def test_an_unfinished_block_does_not_count() -> None:
    given = windows([1.0, 0.8, 0.8, 1.0] * 3 + [1.0, 0.8])
    result = analyse(given, Gates(), Result("x", "", "ABBA", status="aborted"))
    assert result.blocks_used == 3
    assert result.excluded[13] == "its block is incomplete"
    assert result.verdict == "not measured"


def test_distance_of_mixes_leaves_chance_out() -> None:
    random = np.random.default_rng(8)
    shares = random.dirichlet(np.full(3000, 0.1))
    draws = [
        {str(key): float(count) for key, count in enumerate(random.poisson(20_000 * shares))}
        for _ in range(6)
    ]
    actual = [mix_distance(a, b) for a, b in pairwise(draws)]
    assert all(p_value is not None and p_value < 0.01 for p_value in actual)
    assert mix_distance({"a": 9e4, "b": 1e4}, {"a": 7e4, "b": 3e4}) == pytest.approx(0.2, abs=0.005)
    assert mix_distance({}, {"a": 1.0}) is None


def test_every_format_has_every_figure() -> None:
    result = analysed(changed(windows([1.0, 0.8, 0.81, 1.0] * 4), 3, connections=99.0))
    text = ab_text.RENDERERS["text"](result)
    assert max(len(line) for line in text.splitlines()) <= 100
    assert "(connections of 3T)" in text
    whole = json.loads(ab_text.RENDERERS["json"](result))
    assert whole["effects"][2]["ratio"] == pytest.approx(1.24, abs=0.02)
    rows = list(csv.DictReader(io.StringIO(ab_text.RENDERERS["csv"](result))))
    assert float(rows[2]["ratio"]) == whole["effects"][2]["ratio"]
    assert "queries per CPU-second" in ab_text.RENDERERS["markdown"](result)


ONE_FACTOR = "kind: one factor, quantity: queries_per_cpu_second, other: hidden-index, bound: 0.1"
KEPT = Path(__file__).parents[1] / "recordings" / "v1" / "hidden-index"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(KEPT, tmp_path / "run"))


def test_the_kept_experiment_gives_its_figures_again() -> None:
    result = show.result(KEPT)
    headline = known(result.effect("queries_per_cpu_second"))
    assert headline.high is not None
    assert result.verdict == "worse"
    assert 0.1 < (headline.ratio or 0) < headline.high < 0.6
    assert [window.variant[0] for window in result.windows] == list("bttb" * 4)
    assert all(window.digests and window.kinds.get("Com_select") for window in result.windows)
    # a fixed rate of 200/s, the recorder's six statements a second not among them
    assert all(150 < (window.queries or 0) < 250 for window in result.windows)
    assert all(check.state == "passed" for check in result.checks if check.name.startswith("guard"))
    assert len(result.flips) == 8


def test_missing_tables_are_reported(copy: Path) -> None:
    (copy / "manifest.json").unlink()
    (copy / "server" / "mysql_digests.parquet").unlink()
    result = show.result(copy)
    assert "by kind of statement (Com_*)" in next(c.text for c in result.checks if c.name == "statement mix")
    (copy / "server" / "mysql.parquet").unlink()
    result = show.result(copy)
    assert result.verdict == "not measured"
    assert "no two readings of the server's statements" in result.excluded[1]
    (copy / "load" / "guards.json").unlink()
    assert any(check.name == "guards" for check in show.result(copy).checks)


def test_fixed_work_is_read_from_the_phases_and_all_blocks_can_be_excluded(
    copy: Path, tmp_path: Path
) -> None:
    """The first window of each block had another speed: no block is left, and no claim is judged."""
    (copy / "manifest.json").unlink()
    work = {1: 2_000_000, 5: 500_000}

    def worked(stamp: dict[str, Any]) -> dict[str, Any]:
        is_window = stamp["phase"] in ("treatment", "baseline")
        return stamp | ({"fixed_work_ns": work.get(stamp["window"] % 8, 1_000_000)} if is_window else {})

    change_lines(copy / "load" / "phases.jsonl", worked)
    assert ask("ab", "show", copy).out.endswith("Not measured: all blocks are excluded (4 of 4).\n")
    assert ask("report", copy, "-o", tmp_path / "page.html").status == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "all blocks are excluded (4 of 4)" in page
    assert "<h3>With the excluded blocks</h3>" in page
    study = tmp_path / "mine.yml"
    claim = "{id: a, text: t, place: p, published: x, experiment: hidden-index, judge: {%s}}"
    rules = ("kind: effect, quantity: cpu, change: rises", ONE_FACTOR)
    for rule in rules:
        study.write_text(f"title: t\nsource: s\nclaims: [{claim % rule}]\n", encoding="utf-8")
        output = ask("study", study, copy).out
        assert output.count("not comparable") >= 1
        assert "all 4 blocks of hidden-index are excluded" in " ".join(output.split())


@pytest.mark.parametrize(("others", "answer"), [(0.98, "holds"), (1.02, "differs")])
def test_a_rise_and_a_fall_are_not_one_factor_although_they_are_within_the_bound(
    others: float, answer: str
) -> None:
    both = [StudyExperiment(KEPT) for _ in range(2)]
    for side, factor in zip(both, (0.98, others), strict=True):
        cpu = [
            noise * factor if variant == "T" else noise
            for noise in (2.0, 2.001, 2.002, 2.003)
            for variant in ABBA
        ]
        side.result = analysed(windows(cpu))
    rule = OneFactor(kind="one factor", quantity="cpu", other="hidden-index", bound=0.05)
    assert rule.judged(*both).answer == answer


def test_a_directory_that_is_no_experiment_is_one_line() -> None:
    assert "not an A/B experiment" in ask("ab", "show", KEPT.with_name("oltp")).line
