"""The page of a report in a real browser: it opens offline, shows every section, and does what it promises.

Screenshots are kept under tests/artefacts/report; their paths are printed.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import insert, oltp
from loadprint.commands.operands import resolve
from loadprint.commands.report.collect import collect
from loadprint.commands.report.page import page as written
from playwright.sync_api import BrowserContext, ConsoleMessage, Page, Request, expect, sync_playwright
from profiles import INSERT, OLTP, Samples, profiled, write_stacks
from recordings import Host, Rows, make_execution

pytestmark = pytest.mark.browser

CHROMIUM = "/usr/bin/chromium"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",  # a container may have little of it
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
TIMEOUT_MS = 180_000  # far longer than any wait of a passing test
ARTEFACTS = Path(__file__).parent.parent / "artefacts" / "report"
SECTIONS = (
    "table",
    "sentences",
    "comparable",
    "probes",
    "time",
    "latency",
    "ebpf",
    "flames",
    "settings",
    "made",
    "absent",
)
DESKTOP, PHONE = {"width": 1440, "height": 1000}, {"width": 390, "height": 844}
HOSTILE = "</script><img src=x onerror=\"document.title='acted'\">"


# the bounds of the eBPF tables up to 2^24 ns: 0 to 15 singly, then eight to each power of two
BOUNDS = [
    *range(16),
    *(2**power + step * 2 ** (power - 3) for power in range(4, 24) for step in range(8)),
    None,
]
RECORDED = Path(__file__).parent.parent / "recordings" / "v1"


def kernel(ticks: range) -> dict[str, tuple[Rows, dict[str, Any]]]:
    """Waits that spread over many buckets, most of them in the middle."""
    counts = {
        "run queue": [100 * (60 < place < 110) + 5 * (30 < place < 150) for place in range(len(BOUNDS) - 1)],
        "lock": [20 * (100 < place < 160) for place in range(len(BOUNDS) - 1)],
    }
    rows = [
        {"tick": t, "role": "server", "state": state, "sum_ns": 10**8 * t, "buckets": [n * t for n in own]}
        for state, own in counts.items()
        for t in ticks
    ]
    return {"ebpf_sched": (rows, {"shape": "histogram", "columns": {"buckets": {"bounds": BOUNDS}}})}


def recorded(host: Host, samples: Samples) -> Host:
    """A host with kernel histograms and sampled stacks."""
    stacks = profiled(server=samples)
    return replace(host, more=lambda ticks: kernel(ticks) | stacks(ticks), seconds=40)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of two sides with recorded latencies, kernel histograms and a label that wants to act."""
    folder = tmp_path_factory.mktemp("report")

    sides = {
        "oltp": [recorded(oltp(k), OLTP) for k in (0, 1, 2)],
        "insert": [recorded(insert(k), INSERT) for k in (0, 2, 1)],
    }
    plans = {"oltp": {"label": "OLTP"}, "insert": {"label": f"insert {HOSTILE}"}}
    execution = make_execution(folder / "execution", sides, "oltp", plans)
    for run in execution.glob("b*"):
        name = "oltp" if "oltp" in run.name else "insert"
        shutil.copy(RECORDED / name / "load" / "latency.hlog", run / "load")
        write_stacks(run, server=OLTP if name == "oltp" else INSERT)
    result, declared = resolve([str(execution)])
    path = folder / "report.html"
    path.write_text(written(collect(result, declared)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserContext]:
    """A browser with a separate profile."""
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            tmp_path_factory.mktemp("profile"),
            executable_path=CHROMIUM,
            args=FLAGS,
            timeout=TIMEOUT_MS,
            # what scrolls is there at once, so that the mouse meets it
            reduced_motion="reduce",
        )
        context.set_default_timeout(TIMEOUT_MS)
        expect.set_options(timeout=TIMEOUT_MS)
        yield context
        context.close()


@pytest.fixture
def opened(context: BrowserContext, file: Path) -> Iterator[Page]:
    """The page, fresh; a request to anywhere else, an error or a refusal fails the test."""
    page = context.new_page()
    page.set_viewport_size(DESKTOP)  # type: ignore[arg-type]
    page.emulate_media(color_scheme="light")
    wrong: list[str] = []

    def console(message: ConsoleMessage) -> None:
        if message.type == "error":
            wrong.append(message.text)

    def request(sent: Request) -> None:
        if sent.url.partition("#")[0] != file.as_uri():
            wrong.append(sent.url)

    page.on("console", console)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", request)
    page.goto(file.as_uri())
    yield page
    page.close()
    assert wrong == []


def shot(page: Page, name: str) -> None:
    """Keep what a person would see."""
    ARTEFACTS.mkdir(parents=True, exist_ok=True)
    path = ARTEFACTS / f"{name}.png"
    page.screenshot(path=path)
    print(f"screenshot: {path}")


def eventually(page: Page, what: str, is_so: Callable[[], bool]) -> None:
    """Wait until something is so: the page may still be drawing."""
    until = time.monotonic() + TIMEOUT_MS / 1000
    while not is_so():
        assert time.monotonic() < until, what
        page.wait_for_timeout(50)


def chart(page: Page, key: str) -> Any:
    """A chart, scrolled to and drawn."""
    result = page.locator(f'figure[data-key="{key}"]')
    result.scroll_into_view_if_needed()
    expect(result.locator("canvas")).to_be_visible()
    return result


def painted(page: Page, key: str) -> int:
    """How many pixels of a chart have colour."""
    return int(
        page.evaluate(
            """key => {
              const canvas = document.querySelector(`figure[data-key="${key}"] canvas`);
              const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
              let coloured = 0;
              for (let at = 0; at < data.length; at += 4) {
                const [red, green, blue, alpha] = data.slice(at, at + 4);
                const spread = Math.max(red, green, blue) - Math.min(red, green, blue);
                if (alpha > 100 && spread > 40) coloured += 1;
              }
              return coloured;
            }""",
            key,
        )
    )


def area(page: Page, key: str) -> Any:
    """Where a chart's plotting area is on the screen, once it stays there."""
    over, seen = chart(page, key).locator(".u-over"), []

    def rests() -> bool:
        seen.append(over.bounding_box())
        return len(seen) > 1 and seen[-1] is not None and seen[-1] == seen[-2]

    eventually(page, f"{key} does not come to rest", rests)
    return seen[-1]


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
    keys = opened.locator("figure.chart").evaluate_all("all => all.map(one => one.dataset.key)")
    assert len(keys) > 20
    for key in keys:
        chart(opened, key)
        eventually(opened, f"{key} is empty", lambda key=key: painted(opened, key) > 30)  # type: ignore[misc]
    assert opened.title().startswith("a campaign of the tests")
    opened.evaluate("window.scrollTo({ top: 0, behavior: 'instant' })")
    shot(opened, "light")


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


def test_runs_are_chosen_by_their_boxes(opened: Page) -> None:
    chart(opened, "operations")
    eventually(opened, "the chart is empty", lambda: painted(opened, "operations") > 30)
    before = painted(opened, "operations")
    opened.locator("#picker .of-side").nth(1).locator("input").first.uncheck()
    expect(opened.locator("#picker .of-side").nth(1).locator("input").nth(1)).not_to_be_checked()
    eventually(opened, "the run is still drawn", lambda: painted(opened, "operations") < before)


def test_the_table_filters_and_explains(opened: Page) -> None:
    rows = opened.locator("#rows tbody tr:not(.group):visible")
    every = opened.locator("#rows tbody tr:not(.group)").count()
    few = rows.count()
    assert few < every
    opened.locator("#rows-further").click()
    expect(rows).to_have_count(every)
    opened.locator("#row-filter").fill("disk await")
    eventually(opened, "the filter keeps too many rows", lambda: 1 < rows.count() < few + 10)
    expect(opened.locator("#row-count")).to_contain_text("of all rows")
    opened.locator("#row-filter").fill("no such metric")
    expect(opened.locator("#row-none")).to_be_visible()
    opened.locator("#row-filter").fill("")
    opened.locator("#row-statements .metric").hover()
    expect(opened.locator("#tip")).to_be_visible()
    expect(opened.locator("#tip")).to_contain_text("higher is better")
    opened.keyboard.press("Escape")
    expect(opened.locator("#tip")).to_be_hidden()


def test_flame_graphs_enlarge_search_and_compare(opened: Page) -> None:
    opened.locator("#flames").scroll_into_view_if_needed()
    frames, details = opened.locator("#flame g.frame"), opened.locator("#flame-details")

    def frame(name: str) -> Any:
        return opened.locator(f'#flame g.frame[name="{name}"]')

    expect(frame("tcp_sendmsg_locked").locator("rect")).to_be_visible()
    frame("MYSQLparse").hover()
    expect(details).to_have_text(re.compile(r"^MYSQLparse: .* µs per client statement, .* %, .* × oltp \["))
    colours = {frame(name).locator("rect").get_attribute("fill") for name in ("MYSQLparse", "[mysqld]")}
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


def test_a_link_of_a_sentence_shows_its_row(opened: Page) -> None:
    opened.locator("#rows-headline").click()
    link = opened.locator("#sentences .cites a").first
    target = link.get_attribute("href") or ""
    link.click()
    expect(opened.locator(target)).to_be_visible()
    expect(opened.locator(target)).to_be_in_viewport()


def test_dark_and_light_follow_the_system_and_the_button(opened: Page) -> None:
    def paper() -> str:
        return str(opened.evaluate("getComputedStyle(document.body).backgroundColor"))

    light = paper()
    opened.emulate_media(color_scheme="dark")
    expect(opened.locator("html")).to_have_attribute("data-theme", "dark")
    eventually(opened, "the paper is not dark", lambda: paper() != light)
    chart(opened, "operations")
    shot(opened, "dark")
    opened.locator("#theme").click()
    expect(opened.locator("#theme-name")).to_have_text("Light")
    eventually(opened, "the paper is not light", lambda: paper() == light)
    opened.locator("#theme").click()
    opened.locator("#theme").click()
    expect(opened.locator("#theme-name")).to_have_text("Auto")


CONTRASTS = """() => {
  const linear = (value) => (value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  const parse = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const parts = [0.2126, 0.7152, 0.0722];
  const light = (rgb) => parts.reduce((sum, part, at) => sum + part * linear(rgb[at] / 255), 0);
  const behind = (node) => {
    for (let one = node; one; one = one.parentElement) {
      const colour = parse(getComputedStyle(one).backgroundColor);
      if (colour.length === 3 || colour[3] > 0.99) return colour;
    }
    return [255, 255, 255];
  };
  const results = [];
  for (const node of document.querySelectorAll("body *")) {
    const own = [...node.childNodes].some((one) => one.nodeType === 3 && one.textContent.trim());
    if (!own || !node.checkVisibility()) continue;
    const pair = [light(parse(getComputedStyle(node).color)), light(behind(node))].sort((x, y) => y - x);
    const what = `${node.tagName}.${node.className} ${node.textContent.trim().slice(0, 30)}`;
    results.push([(pair[0] + 0.05) / (pair[1] + 0.05), what]);
  }
  return results.sort((x, y) => x[0] - y[0]).slice(0, 5);
}"""


def contrasts(page: Page) -> list[tuple[float, str]]:
    """Contrast (WCAG 2, relative luminance) of visible texts with what is behind them, the five lowest."""
    return [(float(ratio), str(what)) for ratio, what in page.evaluate(CONTRASTS)]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out(opened: Page, scheme: Any) -> None:
    opened.emulate_media(color_scheme=scheme)
    expect(opened.locator("html")).to_have_attribute("data-theme", scheme)
    lowest = contrasts(opened)
    assert lowest
    assert lowest[0][0] >= 4.5, lowest


def test_a_phone_scrolls_tables_in_their_own_box(opened: Page) -> None:
    opened.set_viewport_size(PHONE)  # type: ignore[arg-type]
    opened.locator("#rows-further").click()
    chart(opened, "operations")
    wide = "document.documentElement.scrollWidth"
    eventually(opened, "the page is too wide", lambda: opened.evaluate(wide) == PHONE["width"])
    assert opened.evaluate("document.querySelector('#table .scroll').scrollWidth") > PHONE["width"]
    shot(opened, "phone")


def test_paper_shows_every_section_and_row(opened: Page) -> None:
    opened.locator("#row-filter").fill("await")
    opened.emulate_media(media="print", color_scheme="dark")
    expect(opened.locator("html")).to_have_attribute("data-theme", "light")
    expect(opened.locator("figure.chart:not([data-drawn])")).to_have_count(0)
    for name in SECTIONS:
        expect(opened.locator(f"#{name} h2")).to_be_visible()
    assert opened.locator("#rows tbody tr:visible").count() == opened.locator("#rows tbody tr").count()
    expect(opened.locator("nav")).to_be_hidden()
    shot(opened, "print")


def test_nothing_of_a_recording_acts_and_nothing_can_be_loaded(context: BrowserContext, file: Path) -> None:
    page = context.new_page()
    page.goto(file.as_uri())
    assert HOSTILE in page.locator(".sides").inner_text()
    assert page.title() != "acted"
    assert page.locator("img").count() == 0
    refused = page.evaluate(
        """() => new Promise((done) => {
          document.addEventListener("securitypolicyviolation", (event) => done(event.violatedDirective));
          const image = document.createElement("img");
          image.src = "https://192.0.2.1/x.png";
          document.body.append(image);
        })"""
    )
    page.close()
    assert refused == "img-src"


def test_footnotes_are_those_of_the_rows_shown(opened: Page) -> None:
    visible = """what => [...new Set([...document.querySelectorAll(what)].filter(one => one.checkVisibility())
        .map(one => one.id || one.getAttribute("href").slice(1)))].sort()"""
    cited, shown = '#rows sup a[href^="#note-"]', ".notes li"

    few = opened.evaluate(visible, shown)
    assert few == opened.evaluate(visible, cited)
    expect(opened.locator("#notes-more")).to_be_visible()
    opened.click("#rows-further")
    every = opened.evaluate(visible, shown)
    assert every == opened.evaluate(visible, cited)
    assert set(few) < set(every)
    expect(opened.locator("#notes-more")).to_be_hidden()
    # a number stays with its text in every view
    assert all(
        f"note-{note.get_attribute('value')}" == note.get_attribute("id")
        for note in opened.locator(shown).all()
    )

    opened.click("#rows-headline")
    opened.emulate_media(media="print")
    assert opened.evaluate(visible, shown) == every


def test_the_first_screen_says_what_differs_and_what_speaks_against_it(opened: Page) -> None:
    lead = opened.locator("header .lead")
    expect(lead).to_be_in_viewport()
    assert (lead.text_content() or "").startswith(
        (opened.locator("#sentences .sentence").first.text_content() or "")[:40]
    )
    answers = {
        (chip.locator("span").text_content() or ""): "doubted" in (chip.get_attribute("class") or "")
        for chip in opened.locator(".verdicts li").all()
    }
    assert answers["comparable"] is False
    assert answers["disturbed"] is True  # no canary ran


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
    keys = page.locator("figure.chart").evaluate_all("all => all.map(one => one.dataset.key)")
    assert len(keys) > 15
    for key in keys:
        chart(page, key)
        eventually(page, f"{key} is empty", lambda key=key: painted(page, key) > 30)  # type: ignore[misc]
    page.evaluate("window.scrollTo({ top: 0, behavior: 'instant' })")
    shot(page, "run")
    page.close()
    assert wrong == []
