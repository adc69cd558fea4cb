"""Executions that swept something: their cells, as pivot tables."""
