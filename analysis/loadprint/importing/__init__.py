"""Other tools' recordings as run directories: one module reads each tool's files, `writer` writes."""
