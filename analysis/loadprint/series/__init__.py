"""The intervals that a generator reports, and checkpoint spikes in series."""
