"""Runs of two sides: a lognormal effect of the run, one of its block, and seconds with autocorrelation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.stats
from loadprint.statistics import stats
from loadprint.tables.marks import marked_rows
from loadprint.tables.rows import Column, RowBuilder
from loadprint.tables.table import Row
from reads import repeat_of, row_of

from simulations.series import Floats, Random, noise


@dataclass(frozen=True)
class Truth:
    """What two sides are like; spreads are coefficients of variation, `ratio` the true one."""

    repeats: int = 3
    ratio: float = 1.0
    run: float = 0.03
    block: float = 0.0
    second: float = 0.05
    autocorrelation: float = 0.6
    seconds: int = 60


def seconds_of(random: Random, trials: int, truth: Truth) -> tuple[Floats, Floats]:
    """Side and reference, each (trials, repeats, seconds); repeats of one block have the same index."""
    block = random.normal(0, truth.block, (trials, truth.repeats))
    result = []
    for level in (truth.ratio, 1.0):
        run = random.normal(0, truth.run, (trials, truth.repeats))
        seconds = noise(random, trials * truth.repeats, truth.seconds, truth.second, truth.autocorrelation)
        means = level * np.exp(run + block)
        result.append(means[..., None] * (1 + seconds.reshape(trials, truth.repeats, truth.seconds)))
    return result[0], result[1]


def coverage(random: Random, trials: int, truth: Truth, *, paired: bool) -> tuple[float, float]:
    """Shares of trials whose interval holds the true ratio, and whose interval excludes 1."""
    side, reference = (result.mean(axis=2) for result in seconds_of(random, trials, truth))
    held = found = 0
    for x, y in zip(side.tolist(), reference.tolist(), strict=True):
        result = stats.ratio(x, y, paired=paired)
        assert result.low is not None
        assert result.high is not None
        held += result.low <= truth.ratio <= result.high
        found += not result.low <= 1 <= result.high
    return held / trials, found / trials


def naive_alarms(random: Random, trials: int, truth: Truth) -> float:
    """Share of A/A trials that Welch's t over all seconds of all repeats calls different at 5 %."""
    side, reference = (result.reshape(trials, -1) for result in seconds_of(random, trials, truth))
    return float((scipy.stats.ttest_ind(side, reference, axis=1, equal_var=False).pvalue < 0.05).mean())


def alarms(random: Random, trials: int, *, rows: int, headlines: int, repeats: int) -> tuple[float, float]:
    """A/A comparisons of two sides with `rows` rows, whose runs share half of their effect between rows.

    Share of headline rows that got a verdict, and share of comparisons with any Benjamini–Hochberg mark.
    """
    verdicts = marked = 0
    for _ in range(trials):
        compared = _judged(random, rows, headlines, repeats)
        marks = [versus.mark for row in compared for versus in row.versus if versus]
        verdicts += sum(mark in ("better", "worse") for mark in marks)
        marked += "*" in marks
    return verdicts / trials / headlines, marked / trials


def _judged(random: Random, rows: int, headlines: int, repeats: int) -> Sequence[Row]:
    columns = []
    for name in ("a", "b"):
        shared = random.normal(0, 0.02, (repeats, 1))
        values = np.exp(shared + random.normal(0, 0.02, (repeats, rows)))
        runs = tuple(
            repeat_of({f"q.n{place}": value for place, value in enumerate(row)}, name)
            for row in values.tolist()
        )
        columns.append(Column(name, runs, paired=False))
    builder = RowBuilder(columns, 0)
    metrics = [row_of(f"row{place}", f"q.n{place}") for place in range(rows)]
    built = [
        replace(row, better="higher") if place < headlines else row
        for place, row in enumerate(builder.rows(metrics))
    ]
    return marked_rows(built, [place < headlines for place in range(rows)], builder)
