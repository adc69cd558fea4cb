"""`loadprint export` and `loadprint fleet`: one Parquet data set of many machines, compared."""
