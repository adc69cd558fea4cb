"""Figures for papers: real SVG and PNG files that hold their labels, and are the same when made twice."""

from __future__ import annotations

import sys
import warnings
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from damage import ask
from loadprint.commands.usl.fit import fit
from loadprint.commands.usl.usl_cells import panel
from loadprint.errors import InputError
from loadprint.plotting import ratio_plot, report_plot, scaling_plot, style
from loadprint.rendering.report_data import Course, Distribution, Line, MarkedSpan, Panel, ReportPage, SideOf
from loadprint.tables.table import Table
from numpy.typing import NDArray
from PIL import Image
from programs import printed
from reads import known, report_of

KEPT = Path(__file__).parents[1] / "recordings" / "v1"
STUDY = Path(__file__).parents[2] / "docs" / "published" / "go_vs_sysbench_qps.csv"
SVG = "{http://www.w3.org/2000/svg}"


def texts(path: Path) -> str:
    """All texts of an SVG file; it must be well-formed."""
    root = ET.parse(path).getroot()
    assert root.tag == f"{SVG}svg"
    return " | ".join("".join(element.itertext()) for element in root.iter(f"{SVG}text"))


def pixels(path: Path) -> tuple[int, int, float]:
    """Width, height and dpi of a PNG file, whose every chunk must have its checksum."""
    with Image.open(path) as image:
        image.load()
        return *image.size, image.info["dpi"][0]


def test_the_plot_of_a_sweep_holds_points_curves_and_what_was_measured(tmp_path: Path) -> None:
    for name in ("one.svg", "two.svg", "one.png", "two.png"):
        assert ask("usl", STUDY, "--at", "5=4", "--plot", tmp_path / name, "-o", "/dev/null").status == 0
    said = texts(tmp_path / "one.svg")
    wanted = ("go_mysql_qps", "sysbench_qps", "threads", "throughput", "measured", "extrapolation", "1,024")
    for label in (*wanted, "USL (AICc 162.8)", "saturation (AICc 154.5)", "95 % of the curve"):
        assert label in said, label
    drawn = (tmp_path / "one.svg").read_text()
    assert drawn == (tmp_path / "two.svg").read_text()
    assert "<dc:date>" not in drawn
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()
    width, height, dpi = pixels(tmp_path / "one.png")
    assert (width, round(dpi)) == (round(style.WIDTH * style.DPI), style.DPI)
    assert height > 1000  # two panels


def test_the_matplotlibrc_of_the_working_directory_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "matplotlibrc").write_text("axes.facecolor: red\n", encoding="ascii")
    words = "from loadprint.plotting import style; context = style.styled(); context.__enter__()"
    words += "; import matplotlib; print(matplotlib.rcParams['axes.facecolor'])"
    assert printed(sys.executable, "-c", words, cwd=tmp_path) == "white\n"


def test_a_measured_optimum_is_drawn_and_no_other(tmp_path: Path) -> None:
    n = np.array([1.0, 2, 4, 8, 16, 32, 64])
    for optimum, name in ((22.0, "with.svg"), (None, "without.svg")):
        scaling_plot.write([Panel("x", "users", "tps", n, 10 * n, (), optimum)], tmp_path / name)
    assert (tmp_path / "with.svg").read_text() != (tmp_path / "without.svg").read_text()


def test_ratios_are_the_tables(whole_table: Table) -> None:
    lines = ratio_plot.lines(whole_table)
    result = {(group, row.label): ratio_plot.ratios(row)[1] for group, row in lines}
    row = known(whole_table.row("statements"))
    assert result["Throughput and latency", row.label] == row.versus[1]
    headlines = [row.label for _, row in lines if row.headline]
    assert 1 <= len(headlines) < len(lines)
    few = ratio_plot.lines(whole_table, len(headlines))
    assert [row.label for _, row in few] == headlines


@pytest.fixture(scope="module")
def whole(whole_table: Table) -> ReportPage:
    """A report of kept runs with one of every kind of chart, holes in its lines, and a spike."""
    kept = report_of(KEPT / "oltp", KEPT / "insert")
    holed = [
        replace(course, lines=tuple(replace(line, values=_holed(line)) for line in course.lines))
        for course in kept.courses
        if course.key in ("operations", "cpu_server")
    ]
    phases = MarkedSpan("warmup", 0, 3), MarkedSpan("measure", 3, 20)
    first, *others = (replace(run, phases=phases) for run in kept.runs)
    spiked = replace(first, spikes=(MarkedSpan("checkpoint", 5, 7, 0.4),))
    n, x = (1, 2, 4, 8, 16, 32), (100.0, 190.0, 340.0, 560.0, 800.0, 900.0)
    scaled = (
        panel(fit(n, x), "text", "threads", "operations/s"),
        Panel("cached", "threads", "operations/s", np.array([1.0, 1, 2]), np.array([10.0, 11, 20])),
    )
    courses = (*holed, Course("nothing", "disk", "Nothing", "/s", 1.0, ()))
    shares = np.array([0.1, 0.6, 0.3])
    edges = np.array([1e-6, 2e-6, 4e-6, 8e-6])
    waits = Distribution("waits", "ebpf_sched", "run queue", "µs", 1e6, edges, (shares, shares), (90, 70))
    return replace(
        kept,
        table=whole_table,
        runs=(spiked, *others),
        courses=courses,
        distributions=(waits,),
        scaled=scaled,
    )


def _holed(line: Line) -> NDArray[np.float64]:
    return np.where(line.seconds.astype(int) == 4, np.nan, line.values)


def test_every_figure_of_a_report_is_written_and_labelled(whole: ReportPage, tmp_path: Path) -> None:
    result = report_plot.write(whole, tmp_path / "new" / "plots")
    names = {path.name for path in result}
    stems = ("ratios", "time-throughput", "time-cpu", "latency", "histogram-ebpf-sched", "scaling")
    assert names == {f"{stem}.{ending}" for stem in stems for ending in ("svg", "png")}
    said = {path.stem: texts(path) for path in result if path.suffix == ".svg"}
    for stem, labels in {
        "ratios": ("Ratios to oltp", "client statements", "ratio to oltp", "Kernel"),
        "time-throughput": (
            "Operations",
            "/s",
            "seconds since the start of the measured",
            "warmup",
            "checkpoint spikes",
            "oltp",
        ),
        "time-cpu": ("Server's set (CPU 0): insert, repeat 1", "cores", "user", "system"),
        "latency": ("oltp_read_write", "percentile", "latency, ms", "99.9", "insert"),
        "histogram-ebpf-sched": ("run queue", "share, %", "µs"),
        "scaling": ("text", "cached", "threads", "operations/s", "USL"),
    }.items():
        for label in labels:
            assert label in said[stem], (stem, label)
    for path in result:
        if path.suffix == ".png":
            assert pixels(path)[0] == round(style.WIDTH * style.DPI)
    again = report_plot.write(whole, tmp_path / "again", ("svg",))
    assert [path.read_text() for path in again] == [
        path.read_text() for path in result if path.suffix == ".svg"
    ]


def test_of_many_sides_only_those_drawn_are_named(whole: ReportPage, tmp_path: Path) -> None:
    many = tuple(SideOf(f"side-{place}", "", "row") for place in range(30))
    said = replace(whole, sides=many, scaled=(), table=None)
    colours = report_plot.colours(said)
    assert list(colours) == [0, 1]
    result = report_plot.write(said, tmp_path, ("svg",))
    for path in result:
        assert "side-7" not in texts(path)
    assert "side-1" in texts(tmp_path / "latency.svg")


def test_names_are_names_whatever_they_hold(whole: ReportPage, tmp_path: Path) -> None:
    evil = "$\\frac{1$ </svg><script>\x07 \u6570\u636e"
    said = replace(whole, sides=(SideOf(evil, evil, evil), SideOf("b", "b", "b")))
    said = replace(said, percentiles=(replace(said.percentiles[0], kind=evil),), scaled=())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = report_plot.write(said, tmp_path)
    drawn = {path.stem: texts(path) for path in result if path.suffix == ".svg"}
    assert "$\\frac{1$ </svg><script>\ufffd \u6570\u636e" in drawn["latency"]
    assert not list(ET.parse(tmp_path / "latency.svg").getroot().iter(f"{SVG}script"))


def test_report_writes_its_figures(tmp_path: Path) -> None:
    page, figures = tmp_path / "page.html", tmp_path / "figures"
    assert ask("report", KEPT / "oltp", KEPT / "insert", "-o", page, "--plots", figures).status == 0
    assert page.is_file()
    wanted = {"ratios", "time-throughput", "time-cpu", "time-disk", "time-network", "time-kernel"}
    assert wanted <= {file.stem for file in figures.iterdir()}
    assert "client statements" in texts(figures / "ratios.svg")


def test_a_report_of_nothing_has_no_figures(tmp_path: Path) -> None:
    empty = ReportPage("A", (), ())
    assert report_plot.write(empty, tmp_path) == ()


def test_a_place_that_cannot_be_written_is_one_line(whole: ReportPage, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="name a writable directory"):
        report_plot.write(whole, tmp_path / "file")
    with pytest.raises(InputError, match=r"is neither \.svg nor \.png"):
        scaling_plot.write([], tmp_path / "plot.gif")
