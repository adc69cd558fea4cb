"""Compares sides: verdicts, rows and sentences in one table."""
