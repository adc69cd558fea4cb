"""From sides to a table, a plain value."""
