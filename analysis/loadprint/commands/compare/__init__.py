"""`loadprint compare`: sides in one table, with ratios to a reference."""
