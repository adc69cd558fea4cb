"""A dose of a known size appears in its own row of a ledger, and in no other by more than a tenth of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest

from .conftest import Runs
from .doses import DOSES

LEAST_US = 1000.0  # far above the differences between equal runs
TENTH = 0.1


@pytest.mark.parametrize("name", DOSES)
def test_a_dose_is_in_its_row_of_the_time_ledger(name: str, runs: Runs) -> None:
    dose = DOSES[name]
    base, dosed = runs.of(dose.base), runs.of(dose.give)
    check(runs, name, dose.expected(base, dosed), growth(base.time, dosed.time, dose.rows))


@pytest.mark.parametrize("name", [name for name, dose in DOSES.items() if dose.groups])
def test_a_dose_of_work_is_in_its_groups_of_the_cpu_ledger(name: str, runs: Runs) -> None:
    dose = DOSES[name]
    base, dosed = runs.of(dose.base), runs.of(dose.give)
    check(runs, f"{name}, CPU", dose.expected(base, dosed), growth(base.cpu, dosed.cpu, dose.groups))


def growth(
    base: Mapping[str, float], dosed: Mapping[str, float], own: Iterable[str]
) -> tuple[float, dict[str, float]]:
    """The increase of the rows `own` together, and those of all other rows."""
    grown = {row: dosed.get(row, 0.0) - base.get(row, 0.0) for row in {*base, *dosed} - {"latency", "server"}}
    return sum(grown.pop(row, 0.0) for row in own), grown


def check(runs: Runs, name: str, expected: float, grown: tuple[float, dict[str, float]]) -> None:
    """Assert that only the own rows have the dose."""
    own, others = grown
    largest = max(others, key=lambda row: abs(others[row]))
    line = f"{name:18}{expected:8.0f}{own:8.0f}   {largest} {others[largest]:+.0f}"
    runs.lines.append(line)
    assert expected > LEAST_US, line
    assert own == pytest.approx(expected, rel=TENTH), line
    assert abs(others[largest]) <= TENTH * expected, line
