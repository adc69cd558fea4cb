"""Builds the table of a comparison, a plain value."""
