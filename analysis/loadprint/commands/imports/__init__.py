"""`loadprint import`: recordings of other tools as run directories, and published tables."""
