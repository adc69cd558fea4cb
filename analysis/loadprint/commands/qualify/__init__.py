"""Is the new instance as good as the old one? Non-inferiority row by row, with a verdict for a pipeline."""
