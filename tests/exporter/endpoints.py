"""Starts the programs that serve or scrape metrics, and reads what they serve."""

from __future__ import annotations

import contextlib
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from ports import free_port
from programs import running, wait_for

# Options of node_exporter: more to compare, without what other programs make and remove between two answers.
_PASSING = "^(lo$|lp|veth|docker|br-|tap|tun|vnet|cni|cali)"
LASTING = (
    "--collector.interrupts",
    f"--collector.netdev.device-exclude={_PASSING}",
    f"--collector.netclass.ignored-devices={_PASSING}",
    "--no-collector.arp",
    "--no-collector.filesystem",
)


def fetch(url: str, accept: str = "text/plain") -> str:
    """The body of an answer that must be 200."""
    with urllib.request.urlopen(
        urllib.request.Request(url, headers={"Accept": accept}), timeout=60
    ) as answer:
        body: bytes = answer.read()
        return body.decode()


@contextlib.contextmanager
def node_exporter(log: Path, *arguments: object) -> Iterator[str]:
    """Debian's node_exporter; gives its URL."""
    url = f"http://127.0.0.1:{free_port()}/metrics"
    address = url.removeprefix("http://").removesuffix("/metrics")
    program = ["prometheus-node-exporter", f"--web.listen-address={address}"]
    with running([*program, *arguments], log) as process:

        def answers() -> str | None:
            assert process.poll() is None, log.read_text()
            try:
                return fetch(url)
            except urllib.error.HTTPError as error:
                return str(error)  # of an endpoint with TLS
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                return None

        wait_for("node_exporter", answers, 120)
        yield url
