"""The bench, and the runs that the tests share: each dose is given once. The matrix is printed at the end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .bench import Bench, Ledgers
from .doses import Give

MATRIX = pytest.StashKey[list[str]]()


class Runs:
    """One run for each dose, made when a test needs it."""

    def __init__(self, bench: Bench, lines: list[str]) -> None:
        self.bench, self.lines = bench, lines
        self.made: dict[Give, Ledgers] = {}

    def of(self, give: Give) -> Ledgers:
        """The run with a dose."""
        if give not in self.made:
            with give(self.bench):
                self.made[give] = self.bench.run(give.__name__)
        return self.made[give]


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with Bench(Path(tmp_path_factory.mktemp("doses"))).open() as made:
        yield made


@pytest.fixture(scope="session")
def lines(request: pytest.FixtureRequest) -> list[str]:
    """Lines that are printed at the end."""
    return request.config.stash.setdefault(MATRIX, [])


@pytest.fixture(scope="session")
def runs(bench: Bench, lines: list[str]) -> Runs:
    return Runs(bench, lines)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print what was measured, also if all tests pass."""
    for line in config.stash.get(MATRIX, []):
        terminalreporter.write_line(line)
