"""Locates this checkout, which has the programs, the studies and the published tables."""

from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[3]
