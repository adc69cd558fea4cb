"""Computes ranks and Spearman's rank correlation."""

from __future__ import annotations

import numpy as np


def ranked(values: list[float]) -> list[float]:
    """Ranks from 1, ties share their mean rank."""
    array = np.asarray(values)
    return [float((array < value).sum() + (array == value).sum() / 2 + 0.5) for value in values]


def rank_correlation(a: list[float], b: list[float]) -> float | None:
    """Spearman's coefficient; None where one of the lists does not vary."""
    x, y = np.asarray(ranked(a)), np.asarray(ranked(b))
    if len(x) < 3 or x.std() == 0 or y.std() == 0:
        return None
    return float(np.corrcoef(x, y)[0, 1])
