"""`loadprint compare`: compares sides in one table, with ratios to a reference."""
