"""`loadprint show`: one run as a table, with its course over time."""
