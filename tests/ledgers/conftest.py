"""A server for each file of tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .server import Server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Server(tmp_path_factory.mktemp("server"))
    made.initialise()
    yield made
    made.kill()
