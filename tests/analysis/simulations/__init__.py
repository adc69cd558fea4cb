"""Data with a known truth: what an interval, a mark or a verdict of the analysis is worth."""
