"""Rows in plain words, by rules that are data."""
