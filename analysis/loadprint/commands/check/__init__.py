"""`loadprint check`: mistakes of the configuration that ruin results, each with its evidence and its mend."""
