"""The server under the experiments, and a bench for each test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from .bench import Bench, Server, production


@pytest.fixture(scope="session")
def server() -> Server:
    assert "LOADPRINT_TEST_SOCKET" in os.environ, "run it as: tests/with-server .venv/bin/pytest … tests/ab"
    return Server(dict(os.environ))


@pytest.fixture(scope="session", autouse=True)
def load(server: Server) -> Iterator[None]:
    """What production does, all the time."""
    with production(server, 200):
        yield


@pytest.fixture
def bench(tmp_path: Path, server: Server) -> Iterator[Bench]:
    made = Bench(tmp_path, server)
    yield made
    made.clean_up()
