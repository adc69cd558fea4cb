"""Tail and quantile of Student's t distribution."""

from __future__ import annotations

from functools import lru_cache

from scipy.special import stdtr, stdtrit


def t_tail(t: float, df: float) -> float:
    """P(T > t) for `df` > 0 degrees of freedom, not necessarily an integer."""
    return float(stdtr(df, -t))


@lru_cache(maxsize=4096)
def t_quantile(p: float, df: float) -> float:
    """The value t with P(T < t) = `p`, 0 < p < 1."""
    return float(stdtrit(df, p))
