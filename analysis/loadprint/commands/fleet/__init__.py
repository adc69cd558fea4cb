"""`loadprint export` and `loadprint fleet`: write one Parquet data set of many machines, and compare them."""
