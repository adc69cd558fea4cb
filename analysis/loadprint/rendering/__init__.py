"""Renders plain values as text, Markdown, CSV and JSON."""
