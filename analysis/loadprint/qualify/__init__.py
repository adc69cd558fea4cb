"""Is this instance as good as the one we have? Non-inferiority row by row, with a verdict for a pipeline."""
