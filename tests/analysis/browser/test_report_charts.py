"""The charts of a report in a browser: all are drawn, show values, zoom, and leave out runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from loadprint.commands.operands import resolve
from loadprint.commands.report.collect import collect
from loadprint.commands.report.page import page as written
from playwright.sync_api import BrowserContext, Page, expect

from browser.pages import DESKTOP, SECTIONS, area, chart, eventually, every_chart_is_drawn, painted, shot

pytestmark = pytest.mark.browser


def scale(page: Page, key: str) -> str:
    """What the axis of seconds of a chart reads, by the cursor at both of its ends."""
    box = area(page, key)
    ends = []
    for share in (0.002, 0.998):
        page.mouse.move(box["x"] + share * box["width"], box["y"] + 20)
        ends.append(page.locator(f'figure[data-key="{key}"] .at').inner_text())
    return " to ".join(ends)


def test_every_section_shows_and_every_chart_is_drawn(opened: Page) -> None:
    for name in SECTIONS:
        expect(opened.locator(f"#{name} h2")).to_be_visible()
    every_chart_is_drawn(opened, 20)
    assert opened.title().startswith("a campaign of the tests")
    opened.evaluate("window.scrollTo({ top: 0, behavior: 'instant' })")
    shot(opened, "light")


@pytest.mark.slow
def test_the_cursor_tells_values_in_all_charts_at_once(opened: Page) -> None:
    first = chart(opened, "operations")
    expect(first.locator(".readout")).to_contain_text("oltp")
    box = area(opened, "operations")
    opened.mouse.move(box["x"] + box["width"] / 2, box["y"] + 30)
    # repeats of `oltp` do 100, 101, 102 in every third second, one and two more in the others
    expect(first.locator(".readout .summary").first).to_have_text(
        re.compile(r"^10\d(\.\d+)?\s+10\d(\.\d+)?\s+10\d")
    )
    other = opened.locator('figure[data-key="latency_p95"], figure[data-key="cpu_server@0"]').first
    expect(other.locator(".readout .at")).to_be_visible()
    opened.mouse.move(2, 2)
    expect(first.locator(".readout")).to_contain_text("oltp")


@pytest.mark.slow
def test_dragging_zooms_all_charts_and_they_come_back(opened: Page) -> None:
    whole = scale(opened, "operations")

    def drag() -> None:
        chart(opened, "operations")
        own = area(opened, "operations")
        opened.mouse.move(own["x"] + 0.4 * own["width"], own["y"] + 40)
        opened.mouse.down()
        opened.mouse.move(own["x"] + 0.6 * own["width"], own["y"] + 40, steps=4)
        opened.mouse.up()
        expect(opened.locator("#zoom-out")).to_be_visible()

    def is_whole(key: str, expected: bool) -> None:
        eventually(opened, f"{key}: zoomed", lambda: (scale(opened, key) == whole) == expected)

    drag()
    is_whole("operations", False)
    # drawn only now, and zoomed as the others are
    is_whole("psi_io", False)
    opened.keyboard.press("Escape")
    expect(opened.locator("#zoom-out")).to_be_hidden()
    is_whole("operations", True)
    is_whole("psi_io", True)
    drag()
    opened.locator('figure[data-key="operations"] .u-over').dblclick()
    expect(opened.locator("#zoom-out")).to_be_hidden()
    is_whole("operations", True)


@pytest.mark.slow
def test_the_keyboard_moves_and_zooms(opened: Page) -> None:
    figure = chart(opened, "operations")
    figure.locator(".canvas").focus()
    opened.keyboard.press("ArrowRight")
    before = figure.locator(".readout .at").inner_text()
    opened.keyboard.press("ArrowRight")
    expect(figure.locator(".readout .at")).not_to_have_text(before)
    opened.keyboard.press("+")
    expect(opened.locator("#zoom-out")).to_be_visible()
    opened.keyboard.press("Escape")
    expect(opened.locator("#zoom-out")).to_be_hidden()


@pytest.mark.slow
def test_runs_are_chosen_by_their_boxes(opened: Page) -> None:
    chart(opened, "operations")
    eventually(opened, "the chart is empty", lambda: painted(opened, "operations") > 30)
    before = painted(opened, "operations")
    opened.locator("#picker .of-side").nth(1).locator("input").first.uncheck()
    expect(opened.locator("#picker .of-side").nth(1).locator("input").nth(1)).not_to_be_checked()
    eventually(opened, "the run is still drawn", lambda: painted(opened, "operations") < before)


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
    sides, _ = resolve([str(run)], minimum=1)
    path = tmp_path / "run.html"
    path.write_text(written(collect(sides, None)), encoding="utf-8")
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
