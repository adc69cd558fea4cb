"""The page of a report in a browser: its table and links; nothing in it acts or is loaded."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from browser.pages import HOSTILE, PHONE, SECTIONS, chart, eventually, shot

pytestmark = pytest.mark.browser


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
    expect(opened.locator("#row-count")).to_have_text("0 of all rows")
    opened.locator("#row-filter").fill("")
    opened.locator("#row-statements .metric").hover()
    expect(opened.locator("#tip")).to_be_visible()
    expect(opened.locator("#tip")).to_contain_text("higher is better")
    opened.keyboard.press("Escape")
    expect(opened.locator("#tip")).to_be_hidden()
    note = opened.locator("#row-operations sup a").first
    note.hover()
    expect(opened.locator("#tip")).to_have_text("the sides count different operations: no ratio")
    note.click()
    expect(opened.locator(note.get_attribute("href") or "")).to_be_visible()


@pytest.mark.slow
def test_a_link_of_a_sentence_shows_its_row(opened: Page) -> None:
    opened.locator("#rows-first").click()
    link = opened.locator("#sentences .cites a").first
    target = link.get_attribute("href") or ""
    link.click()
    expect(opened.locator(target)).to_be_visible()
    expect(opened.locator(target)).to_be_in_viewport()


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


@pytest.mark.slow
def test_text_stands_out(opened: Page) -> None:
    lowest = contrasts(opened)
    assert lowest
    assert lowest[0][0] >= 4.5, lowest


@pytest.mark.slow
def test_a_phone_scrolls_tables_in_their_own_box(opened: Page) -> None:
    opened.set_viewport_size(PHONE)  # type: ignore[arg-type]
    opened.locator("#rows-further").click()
    chart(opened, "operations")
    wide = "document.documentElement.scrollWidth"
    eventually(opened, "the page is too wide", lambda: opened.evaluate(wide) == PHONE["width"])
    assert opened.evaluate("document.querySelector('#table .scroll').scrollWidth") > PHONE["width"]
    shot(opened, "phone")


@pytest.mark.slow
def test_paper_shows_every_section_and_row(opened: Page) -> None:
    opened.locator("#row-filter").fill("await")
    opened.emulate_media(media="print")
    for name in SECTIONS:
        expect(opened.locator(f"#{name} h2")).to_be_visible()
    assert opened.locator("#rows tbody tr:visible").count() == opened.locator("#rows tbody tr").count()
    expect(opened.locator(".notes li").last).to_be_visible()
    expect(opened.locator("nav")).to_be_hidden()
    shot(opened, "print")


@pytest.mark.slow
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


@pytest.mark.slow
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
