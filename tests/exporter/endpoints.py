"""Starts the programs that serve or scrape metrics, and reads what they serve."""

from __future__ import annotations

import contextlib
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from ports import free_port

ROOT = Path(__file__).parents[2]
COLLECT = ROOT / "target/release/loadprint-collect"
FIXTURES = ROOT / "tests/fixtures/host/t0"
# Options of node_exporter that leave out what other programs make and remove while two answers are compared.
_PASSING = "^(lo$|lp|veth|docker|br-|tap|tun|vnet|cni|cali)"
LASTING = (
    f"--collector.netdev.device-exclude={_PASSING}",
    f"--collector.netclass.ignored-devices={_PASSING}",
    "--no-collector.arp",
    "--no-collector.filesystem",
)
Labels = frozenset[tuple[str, str]]
T = TypeVar("T")


def wait_for(what: str, get: Callable[[], T | None]) -> T:
    """Polls until there is something; the limit is far beyond what any machine needs."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if result := get():
            return result
        time.sleep(0.05)
    raise AssertionError(f"waited in vain for {what}")


def fetch(url: str, accept: str = "text/plain") -> str:
    """The body of an answer that must be 200."""
    with urllib.request.urlopen(
        urllib.request.Request(url, headers={"Accept": accept}), timeout=60
    ) as answer:
        body: bytes = answer.read()
        return body.decode()


@contextlib.contextmanager
def running(arguments: list[object], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A program that ends with the block; what it prints goes to `log`."""
    with log.open("wb") as output:
        process = subprocess.Popen([str(argument) for argument in arguments], stdout=output, stderr=output)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(120)


@contextlib.contextmanager
def node_exporter(log: Path, *arguments: object) -> Iterator[str]:
    """Debian's node_exporter; gives its URL."""
    url = f"http://127.0.0.1:{free_port()}/metrics"
    address = url.removeprefix("http://").removesuffix("/metrics")
    program = [
        "prometheus-node-exporter",
        f"--web.listen-address={address}",
        "--collector.interrupts",
        *arguments,
    ]
    with running([*program], log) as process:

        def answers() -> str | None:
            assert process.poll() is None, log.read_text()
            try:
                return fetch(url)
            except urllib.error.HTTPError as error:
                return str(error)  # of an endpoint with TLS
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                return None

        wait_for("node_exporter", answers)
        yield url
