"""Throughput by concurrency: the Universal Scalability Law, its rivals, and how far they can be believed."""
