"""Many runs of many machines: recordings as one Parquet data set, and tables over all of it."""
