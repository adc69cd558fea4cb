"""Ledgers of servers and recorders that lack something."""
