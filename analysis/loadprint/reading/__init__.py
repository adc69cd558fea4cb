"""Recordings, read: run directories and executions, their files, clocks and tables."""
