"""Statistics over runs; trend, noise and gaps within one run."""
