"""Prints the tables of docs/statistics.md: what intervals, alarms and refusals are worth on known truth.

Two minutes on one core; asserts nothing, tests/analysis/test_simulations.py does.
    .venv/bin/python tests/analysis/simulations/coverage.py [--trials 4000]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))
from simulations import runs, series

SEED = 20240607


def random() -> np.random.Generator:
    """Every cell has the same seed, so that a table can be printed in parts."""
    return np.random.default_rng(SEED)


def intervals(trials: int) -> None:
    """Coverage of 95 % intervals, and how often they detect a true difference of ten percent."""
    print("95 % intervals of a ratio of 1.1: share that contains it, share that excludes 1\n")
    print("| repeats | run effect | Welch's t | | paired in blocks (5 %) | |")
    print("|--:|--:|--:|--:|--:|--:|")
    for repeats in (3, 5, 10):
        for run in (0.01, 0.03, 0.05):
            truth = runs.Truth(repeats, 1.1, run)
            welch = runs.coverage(random(), trials, truth, paired=False)
            truth = runs.Truth(repeats, 1.1, run, block=0.05)
            paired = runs.coverage(random(), trials, truth, paired=True)
            cells = " | ".join(f"{100 * share:.1f} %" for share in (*welch, *paired))
            print(f"| {repeats} | {100 * run:.0f} % | {cells} |")


def alarms(trials: int) -> None:
    """False alarms between equals, by the run and by the second."""
    print("\nA/A: share of comparisons of equal sides that report a difference at 5 %\n")
    print("| run effect | t over all seconds | t over runs |")
    print("|--:|--:|--:|")
    for run in (0.0, 0.01, 0.02, 0.03, 0.05):
        truth = runs.Truth(5, run=run)
        naive = runs.naive_alarms(random(), trials // 2, truth)
        _, own = runs.coverage(random(), trials, truth, paired=False)
        print(f"| {100 * run:.0f} % | {100 * naive:.0f} % | {100 * own:.1f} % |")
    verdicts, marked = runs.alarms(random(), trials // 4, rows=60, headlines=8, repeats=3)
    print(f"\nOf 60 rows, three repeats a side: {100 * verdicts:.1f} % of 8 headlines have a verdict;")
    print(f"{100 * marked:.1f} % of comparisons have any `*` among the other 52 rows.")


def refused(made: series.Floats) -> str:
    """The share that never settled."""
    return f"{100 * series.refused(made):.0f} %"


def steady(trials: int) -> None:
    """Refusals of what is steady."""
    print("\nSteady series that are refused (should be 5 % at most), noise of 10 %\n")
    print(
        "| seconds | autocorrelation 0 | 0.5 | 0.8 "
        "| three repeats, 0.8 | 3 cycles of 30 % | five in step | bursts |"
    )
    print("|--:|--:|--:|--:|--:|--:|--:|--:|")
    for seconds in (15, 30, 60, 120, 300, 600):
        cells = [
            refused(series.stationary(random(), trials, seconds, 0.1, autocorrelation))
            for autocorrelation in (0, 0.5, 0.8)
        ]
        three = series.stationary(random(), trials * 3, seconds, 0.1, 0.8).reshape(trials, 3, seconds)
        cells += [refused(three), refused(series.sawtooth(random(), trials, seconds, 3, 0.3))]
        cells.append(refused(series.cycles_in_step(random(), 5, seconds, 3, 0.3)))
        cells.append(refused(series.bursty(random(), trials, seconds)))
        print(f"| {seconds} | {' | '.join(cells)} |")


def drifting(trials: int) -> None:
    """Refusals of what drifts."""
    print("\nDrifts over the window that are refused; one run, and three repeats together\n")
    heads = [f"{drift:.0%} of {repeats}" for repeats in (1, 3) for drift in (0.05, 0.07, 0.1, 0.15)]
    print(f"| seconds | noise | autocorrelation | {' | '.join(head.replace('%', ' %') for head in heads)} |")
    print("|--:|--:|--:|" + "--:|" * len(heads))
    for seconds in (15, 30, 60, 120, 300, 600):
        for spread, autocorrelation in ((0.02, 0.0), (0.03, 0.5), (0.03, 0.8), (0.1, 0.3)):
            cells = []
            for repeats in (1, 3):
                for drift in (0.05, 0.07, 0.1, 0.15):
                    line = drift * (np.arange(seconds) / seconds - 0.5)
                    made = (
                        1 + line + series.noise(random(), trials * repeats, seconds, spread, autocorrelation)
                    )
                    cells.append(refused(made.reshape(trials, repeats, seconds)))
            print(f"| {seconds} | {100 * spread:.0f} % | {autocorrelation:g} | {' | '.join(cells)} |")


def ramps(trials: int) -> None:
    """Refusals of warm-ups."""
    decays = (0.05, 0.1, 0.2, 0.5, 1.0)
    print("\nWarm-ups that are refused, by time constant as a share of the window; ", end="")
    print("noise 2 %, autocorrelation 0.5\n")
    print(f"| seconds | missing at first | {' | '.join(f'{decay:g}' for decay in decays)} |")
    print("|--:|--:|" + "--:|" * len(decays))
    for seconds in (30, 60, 120, 300):
        for depth in (0.1, 0.2, 0.5):
            cells = [refused(series.ramp(random(), trials, seconds, depth, decay, 0.02)) for decay in decays]
            print(f"| {seconds} | {100 * depth:.0f} % | {' | '.join(cells)} |")


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--trials", type=int, default=4000)
    trials = parser.parse_args().trials
    intervals(trials)
    alarms(trials)
    for part in (steady, drifting, ramps):
        part(max(200, trials // 4))


if __name__ == "__main__":
    main()
