"""`loadprint qualify`: tests whether a new instance is not worse than the old one, row by row."""
