"""Time series of a run on one axis, and checkpoint spikes in them."""
