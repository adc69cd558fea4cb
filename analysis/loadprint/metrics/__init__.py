"""Reads the quantities of a run and derives the rows of a table from them."""
