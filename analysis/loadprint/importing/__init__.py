"""Imports recordings of other tools: one module reads each tool's files, `writer` writes a run directory."""
