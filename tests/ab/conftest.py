"""The server under the experiments, and a bench for each test."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from .bench import NOBODY, Bench, Server, production


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


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory of another user, which all can enter, unlike tmp_path."""
    directory = Path(tempfile.mkdtemp(prefix="loadprint-test-"))
    directory.chmod(0o755)
    os.chown(directory, NOBODY, NOBODY)
    yield directory
    shutil.rmtree(directory)


@pytest.fixture
def shared(place: Path) -> Path:
    """A directory of root in which everyone can make entries, as /tmp."""
    os.chown(place, 0, 0)
    place.chmod(0o1777)
    return place
