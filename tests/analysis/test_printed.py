"""Printed tables: numbers as intervals, ratios within rounding, misprinted cells, files of other shapes."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from damage import refused
from loadprint.errors import InputError
from loadprint.importing.printed_number import parse
from loadprint.importing.printed_table import AGREES, DIFFERS, PrintedTable, read
from loadprint.importing.printed_text import RENDERERS
from loadprint.rendering.printout import WIDTH
from programs import printed
from reads import known

PUBLISHED = Path(__file__).parents[2] / "docs" / "published"
BLOG = PUBLISHED / "hammerdb_blog_sar.csv"


def table(path: Path, text: str, reference: str | None = None) -> PrintedTable:
    path.write_text(text, encoding="utf-8")
    return read(path, reference)


def test_the_published_ratios_agree_within_rounding_and_two_cells_are_misprinted() -> None:
    result = read(BLOG)
    assert (result.judged, result.agreeing) == (13, 13)
    assert result.reference == "hammerdb"
    said = [
        (misprint.metric, misprint.column, misprint.text, misprint.low, misprint.high)
        for misprint in result.misprints
    ]
    assert said == [
        ("sysstat_io_nvme0n1_read_kB/s", "sysbench", "2,535,38", 2_535_380, 2_535_389),
        ("average context switches/sec", "sysbench", "1,610,78", 1_610_780, 1_610_789),
    ]
    # 36.51/0.04 is 912.75, and 835.79 was printed: 0.04 stands for 0.035 to 0.045
    waits = next(row for row in result.rows if row.metric == "%iowait")
    ratio = known(waits.ratios[0])
    assert (ratio.value, ratio.span.low, ratio.span.high) == pytest.approx(
        (912.75, 811.22, 1043.29), abs=0.01
    )
    assert waits.verdict == AGREES


def test_sections_and_cells_are_printed_as_they_were() -> None:
    text = RENDERERS["text"](read(BLOG))
    assert max(map(len, text.splitlines())) <= WIDTH
    sections = [line for line in text.splitlines() if line.endswith("METRICS")]
    assert sections == ["CPU METRICS", "DISK METRICS", "NETWORK METRICS", "OTHER METRICS"]
    assert "2,535,38¹" in text
    assert "13 of 13 printed ratios agree within rounding." in text
    assert "2 cells are misprinted." in text


def test_every_format_holds_the_ranges() -> None:
    result = read(BLOG)
    rows = list(csv.DictReader(io.StringIO(RENDERERS["csv"](result))))
    wrong = [row for row in rows if row["misprint"]]
    assert [(float(row["meant_low"]), float(row["meant_high"])) for row in wrong] == [
        (2_535_380, 2_535_389),
        (1_610_780, 1_610_789),
    ]
    output = json.loads(RENDERERS["json"](result))
    assert output["agreeing"] == 13
    assert [misprint["low"] for misprint in output["misprints"]] == [2_535_380, 1_610_780]
    assert "| %iowait | 36.51 | 0.04 | 912.75 |" in RENDERERS["markdown"](result)


@pytest.mark.parametrize(
    "name", ["dynimize_sample", "go_vs_sysbench_qps", "hammerdb_versions", "myarm_builds_tps"]
)
def test_no_published_table_crashes_and_all_fit(name: str) -> None:
    result = read(PUBLISHED / f"{name}.csv")
    for render in RENDERERS.values():
        render(result)
    assert max(map(len, RENDERERS["text"](result).splitlines())) <= WIDTH
    assert result.misprints == ()
    assert result.agreeing == result.judged


def test_one_column_of_numbers_is_refused() -> None:
    with pytest.raises(InputError, match="a comparison needs two"):
        read(PUBLISHED / "specsdm91.csv")


def test_a_printed_number_stands_for_all_that_print_like_it() -> None:
    random = np.random.default_rng(5)
    for true in random.lognormal(4, 4, 2000):
        for decimals in (0, 2, 5):
            result = known(parse(f"{true:,.{decimals}f}"))
            assert result.span is not None
            assert result.span.low <= true <= result.span.high
            assert result.span.high - result.span.low <= 1.001 * 10.0**-decimals + 1e-9 * true


def test_ratios_of_rounded_numbers_always_agree(tmp_path: Path) -> None:
    random = np.random.default_rng(6)
    lines = ["metric,a,b,printed_ratio"]
    for number in range(300):
        a, b = random.lognormal(3, 2, 2)
        lines.append(f'm{number},"{a:,.2f}","{b:,.1f}",{a / max(b, 0.06):.3f}' if b > 0.06 else "m,1,1,1")
    result = table(tmp_path / "t.csv", "\n".join(lines))
    assert result.agreeing == result.judged == 300
    assert result.reference == "b"


def test_a_ratio_beyond_rounding_does_not_agree(tmp_path: Path) -> None:
    result = table(tmp_path / "t.csv", "metric,a,b,printed_ratio\nx,2.00,4.00,0.50\ny,2.00,4.00,0.52\n")
    assert [row.verdict for row in result.rows] == [AGREES, DIFFERS]
    assert "1 of 2 printed ratios agree within rounding; 1 does not." in RENDERERS["text"](result)


@pytest.mark.parametrize(
    ("text", "wrong", "meant"),
    [
        ("2,535,38", "its last digit is missing", (2_535_380, 2_535_389)),
        ("12,3", "its last 2 digits are missing", (12_300, 12_399)),
        ("1,23,456", "groups of thousands have 1, 2, 3 digits", None),
        ("1,234,5678", "groups of thousands have 1, 3, 4 digits", None),
        ("twelve", "is not a number", None),
        ("1.2.3", "is not a number", None),
    ],
)
def test_what_is_wrong_with_a_number(text: str, wrong: str, meant: tuple[float, float] | None) -> None:
    result = known(parse(text))
    assert result.value is None
    assert wrong in result.wrong
    assert (None if result.meant is None else (result.meant.low, result.meant.high)) == meant


def test_a_printed_ratio_narrows_a_misprinted_cell(tmp_path: Path) -> None:
    result = table(tmp_path / "t.csv", 'metric,a,b,printed_ratio\nx,"1,23,456",200,6.173\ny,10,5,2.00\n')
    misprint = result.misprints[0]
    # 6.1725 to 6.1735 times 199.5 to 200.5
    assert (misprint.low, misprint.high) == (1232, 1237)


def test_the_reference_is_the_first_without_printed_ratios_and_can_be_named(tmp_path: Path) -> None:
    text = "users,old,new,newest\n80,1.00,0.93,2\n256,1.00,1.03,n/a\n"
    result = table(tmp_path / "t.csv", text)
    assert result.reference == "old"
    assert [ratio and ratio.value for ratio in result.rows[0].ratios] == [None, 0.93, 2.0]
    assert table(tmp_path / "t.csv", text, "new").rows[0].ratios[0] is not None
    with pytest.raises(InputError, match="not a column of the table"):
        read(tmp_path / "t.csv", "other")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "is empty"),
        ("metric,a,b\n", "has no rows"),
        ("metric,a,a\nx,1,2\n", "two columns have the same name"),
        ("metric,a,b\nx,1,234,5\n", "has 4 cells, the first line 3"),
        ("metric,a\nx,1\n", "a comparison needs two"),
        ('metric,a,b\n"x,1,2\n', "is not a CSV file"),
        ('metric,a,b\nx,"998,5",7\ny,"1950,25",8\n', "record 2: `998,5`, as all numbers with a comma"),
    ],
)
def test_a_file_that_is_not_a_table_is_refused(tmp_path: Path, text: str, what: str) -> None:
    with pytest.raises(InputError, match=what):
        table(tmp_path / "t.csv", text)


def test_bytes_that_are_not_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"metric,a,b\nx,\xff,2\n")
    with pytest.raises(InputError, match="not UTF-8 text"):
        read(tmp_path / "t.csv")


def test_the_command_needs_no_out_and_makes_no_run(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "loadprint", "import", "table", BLOG, "--format", "json"]
    assert json.loads(printed(*words, cwd=tmp_path))["judged"] == 13
    assert list(tmp_path.iterdir()) == []
    refused("import", "table", tmp_path / "nowhere.csv")
