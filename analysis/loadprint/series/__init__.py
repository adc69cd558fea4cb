"""What a run did over time: series on one axis, and the spikes in them."""
