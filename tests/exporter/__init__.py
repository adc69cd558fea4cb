"""Tests of what Prometheus scrapes: promtool, node_exporter and Prometheus are the judges."""
