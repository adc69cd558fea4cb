"""Sentences that summarize rows, by rules that are data."""
