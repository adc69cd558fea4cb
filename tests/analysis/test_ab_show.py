"""A kept experiment is worked out again from its recording; a damaged one is a line, never a traceback."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from loadprint.__main__ import main
from loadprint.commands.ab import show
from reads import known
from recordings import read_lines, write_lines

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
    assert result.verdict == "inconclusive"
    assert "no two readings of the server's statements" in result.excluded[1]
    (copy / "load" / "guards.json").unlink()
    assert any(check.name == "guards" for check in show.result(copy).checks)


def test_fixed_work_is_read_from_the_phases_and_all_blocks_can_be_excluded(
    copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first window of each block had another speed: no block is left, and no claim is judged."""
    (copy / "manifest.json").unlink()
    phases = copy / "load" / "phases.jsonl"
    stamps = read_lines(phases)
    for stamp in stamps:
        if stamp["phase"] in ("treatment", "baseline"):
            stamp["fixed_work_ns"] = 2_000_000 if stamp["window"] % 4 == 1 else 1_000_000
            if stamp["window"] % 8 == 5:
                stamp["fixed_work_ns"] = 500_000
    write_lines(phases, stamps)
    assert main(["ab", "show", str(copy)]) == 0
    shown = capsys.readouterr().out
    assert shown.endswith("Inconclusive: all blocks are excluded (4 of 4).\n")
    assert main(["report", str(copy), "-o", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "all blocks are excluded (4 of 4)" in page
    assert "<h3>With the excluded blocks</h3>" in page
    study = tmp_path / "mine.yml"
    claim = "{id: a, text: t, place: p, published: x, experiment: hidden-index, judge: {%s}}"
    rules = ("kind: effect, quantity: cpu, change: rises", ONE_FACTOR)
    for rule in rules:
        study.write_text(f"title: t\nsource: s\nclaims: [{claim % rule}]\n", encoding="utf-8")
        assert main(["study", str(study), str(copy)]) == 0
        told = capsys.readouterr().out
        assert told.count("not comparable") >= 1
        assert "all 4 blocks of hidden-index are excluded" in " ".join(told.split())


def test_a_directory_that_is_no_experiment_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ab", "show", str(KEPT.with_name("oltp"))]) == 2
    assert "not an A/B experiment" in capsys.readouterr().err
