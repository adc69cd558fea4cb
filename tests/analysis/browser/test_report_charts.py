"""The charts of a report in a browser: all are drawn, show values, zoom, and leave out runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from loadprint.commands.report.page import page as written
from playwright.sync_api import BrowserContext, Page, expect
from reads import report_of

from browser.pages import DESKTOP, SECTIONS, area, chart, eventually, every_chart_is_drawn, painted, shot

pytestmark = pytest.mark.browser


def value(page: Page, key: str, share: float) -> str:
    """What the legend of a chart over time reads with the cursor at a share of its width."""
    box = area(page, key)
    page.mouse.move(box["x"] + share * box["width"], box["y"] + 20)
    return page.locator(f'figure[data-key="{key}"] .u-legend').inner_text()


def test_every_section_shows_and_every_chart_is_drawn(opened: Page) -> None:
    for name in SECTIONS:
        expect(opened.locator(f"#{name} h2")).to_be_visible()
    every_chart_is_drawn(opened, 20)
    assert opened.title().startswith("a campaign of the tests")
    opened.evaluate("window.scrollTo({ top: 0, behavior: 'instant' })")
    shot(opened, "light")


@pytest.mark.slow
def test_the_cursor_tells_values_in_all_charts_at_once(opened: Page) -> None:
    expect(chart(opened, "operations").locator("figcaption")).to_contain_text("oltp")
    # repeats of `oltp` do 100, 101, 102 in every third second, one and two more in the others
    legend = value(opened, "operations", 0.5)
    assert re.match(r"at\s*\d+ s\s*oltp 1\s*10\d\s*oltp 2\s*10\d\s*oltp 3\s*10\d", legend)
    other = opened.locator('figure[data-key="cpu_server@0"] .u-legend')
    expect(other).to_contain_text(re.compile(r"at:?\s*\d+ s"))
    expect(other).to_contain_text(re.compile(r"user:?\s*0\.1"))


@pytest.mark.slow
def test_dragging_zooms_all_charts_and_they_come_back(opened: Page) -> None:
    wholes = {key: value(opened, key, 0.002) for key in ("operations", "pressure_io")}
    box = area(opened, "operations")
    opened.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 40)
    opened.mouse.down()
    opened.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 40, steps=4)
    opened.mouse.up()
    for key, whole in wholes.items():
        eventually(opened, f"{key}: not zoomed", lambda k=key, w=whole: value(opened, k, 0.002) != w)  # type: ignore[misc]
    opened.locator('figure[data-key="operations"] .u-over').dblclick()
    for key, whole in wholes.items():
        eventually(opened, f"{key}: zoomed", lambda k=key, w=whole: value(opened, k, 0.002) == w)  # type: ignore[misc]


@pytest.mark.slow
def test_a_click_on_a_name_hides_its_run_in_all_charts(opened: Page) -> None:
    before = {key: painted(opened, key) for key in ("operations", "pressure_cpu")}
    chart(opened, "operations").locator(".u-legend th", has_text="insert").first.click()
    for key, pixels in before.items():
        eventually(opened, f"{key}: still drawn", lambda k=key, p=pixels: painted(opened, k) < p)  # type: ignore[misc]


@pytest.mark.slow
def test_flame_graphs_enlarge_search_and_compare(opened: Page) -> None:
    opened.locator("#flames").scroll_into_view_if_needed()
    frames, details = opened.locator("#flame g.frame"), opened.locator("#flame-details")

    def frame(name: str) -> Any:
        return opened.locator(f'#flame g.frame[name="{name}"]')

    expect(frame("tcp_sendmsg_locked").locator("rect")).to_be_visible()
    frame("MYSQLparse").hover()
    expect(details).to_have_text(re.compile(r"^MYSQLparse: .* µs per client statement, .* %, .* × oltp \["))
    rects = (frame(name).locator("rect").first for name in ("MYSQLparse", "[mysqld]"))
    colours = {rect.get_attribute("fill") for rect in rects}
    opened.locator(".flame-view").nth(1).click()
    expect(opened.locator(".flame-view").nth(1)).to_have_attribute("aria-pressed", "true")
    assert frame("MYSQLparse").locator("rect").get_attribute("fill") not in colours
    every = frames.count()
    frame("dispatch_sql_command").click()
    eventually(opened, "the path is not enlarged", lambda: frames.count() < every)
    frame("server CPU").click()
    eventually(opened, "the other paths do not come back", lambda: frames.count() == every)
    plain = frame("tcp_sendmsg_locked").locator("rect").get_attribute("fill")
    opened.locator("#flame-search").fill("tcp_")
    expect(details).to_have_text(re.compile(r"^\d+ functions, [\d.]+ % of the time$"))
    assert frame("tcp_sendmsg_locked").locator("rect").get_attribute("fill") != plain
    shot(opened, "flames")


@pytest.mark.slow
def test_the_page_of_one_run_draws_all_its_charts(
    context: BrowserContext, file: Path, tmp_path: Path
) -> None:
    run = file.parent / "execution" / "b1-oltp-r1"
    path = tmp_path / "run.html"
    path.write_text(written(report_of(run)), encoding="utf-8")
    page = context.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.set_viewport_size(DESKTOP)  # type: ignore[arg-type]
    page.goto(path.as_uri())
    assert page.locator("h1").inner_text().endswith("b1-oltp-r1")
    assert page.locator("#rows thead th").count() == 3
    assert page.locator("#rows .axis").count() == 0
    for name in ("table", "comparable", "time", "latency", "ebpf", "settings", "made"):
        expect(page.locator(f"#{name} h2")).to_be_visible()
    every_chart_is_drawn(page, 15)
    page.evaluate("window.scrollTo({ top: 0, behavior: 'instant' })")
    shot(page, "run")
    page.close()
    assert wrong == []
