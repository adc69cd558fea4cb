"""What tests of a page do in a browser: wait, find charts, keep screenshots in tests/artefacts/report."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect

TIMEOUT_MS = 180_000  # far longer than any wait of a passing test
ARTEFACTS = Path(__file__).parents[2] / "artefacts" / "report"
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


def every_chart_is_drawn(page: Page, more_than: int) -> None:
    """Scroll to each chart; the page has more than a number of them, and none is empty."""
    keys = page.locator("figure.chart").evaluate_all("all => all.map(one => one.dataset.key)")
    assert len(keys) > more_than
    for key in keys:
        chart(page, key)
        eventually(page, f"{key} is empty", lambda key=key: painted(page, key) > 30)  # type: ignore[misc]


def area(page: Page, key: str) -> Any:
    """Where a chart's plotting area is on the screen, once it stays there."""
    over, seen = chart(page, key).locator(".u-over"), []

    def rests() -> bool:
        seen.append(over.bounding_box())
        return len(seen) > 1 and seen[-1] is not None and seen[-1] == seen[-2]

    eventually(page, f"{key} does not come to rest", rests)
    return seen[-1]
