"""All end-to-end tests run on their own /tmp and /dev/shm, and adopt what their campaigns leave."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from .hosts import Bench, bench
from .machine import isolated


@pytest.fixture(scope="session", autouse=True)
def isolation(request: pytest.FixtureRequest) -> Iterator[None]:
    """Isolate this process before the first temporary directory is made."""
    with isolated() as outside:
        if request.config.option.basetemp:
            # of a process of pytest-xdist, named before this one had its own /tmp
            Path(request.config.option.basetemp).parent.mkdir(parents=True, mode=0o700)
        yield
    if request.session.testsfailed:
        print(f"\n/tmp of the failed tests: {outside}")
    else:
        shutil.rmtree(outside)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A server's host and a load's host."""
    with bench(tmp_path_factory.mktemp("pair")) as made:
        yield made
