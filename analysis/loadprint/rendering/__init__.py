"""Plain values laid out as text, Markdown, CSV and JSON."""
