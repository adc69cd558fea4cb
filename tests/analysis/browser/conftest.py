"""A report of two sides, and a browser that opens it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import insert, oltp
from loadprint.commands.report.page import page as written
from playwright.sync_api import BrowserContext, ConsoleMessage, Page, Request, expect, sync_playwright
from profiles import INSERT, OLTP, Samples, profiled, write_stacks
from reads import report_of
from recordings import Host, Tables, histogram, histograms, make_execution, write_latencies

from browser.pages import DESKTOP, HOSTILE, TIMEOUT_MS

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
# the bounds of the eBPF tables up to 2^24 ns: 0 to 15 singly, then eight to each power of two
BOUNDS = [
    *range(16),
    *(2**power + step * 2 ** (power - 3) for power in range(4, 24) for step in range(8)),
    None,
]


def kernel(ticks: range) -> Tables:
    """Waits that spread over many buckets, most of them in the middle."""
    counts = {
        "run queue": [100 * (60 < place < 110) + 5 * (30 < place < 150) for place in range(len(BOUNDS) - 1)],
        "lock": [20 * (100 < place < 160) for place in range(len(BOUNDS) - 1)],
    }
    rows = (histogram(ticks, own, 10**8, role="server", state=state) for state, own in counts.items())
    return {"ebpf_sched": histograms(rows, BOUNDS)}


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
        is_oltp = "oltp" in run.name
        typical = 6_000_000 if is_oltp else 280_000_000
        values = np.random.default_rng(1).lognormal(math.log(typical), 0.2, (40, 50)).astype(int)
        write_latencies(run, "oltp_read_write" if is_oltp else "arm_commit", values.tolist())
        write_stacks(run, {"server": OLTP if is_oltp else INSERT})
    path = folder / "report.html"
    path.write_text(written(report_of(execution)), encoding="utf-8")
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
